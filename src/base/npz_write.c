/* Writing of .npz: a zip archive (PKWARE's APPNOTE 6.3, sections 4.3.7, 4.3.12, 4.3.16)
 * whose members are stored as they are. */
#include <string.h>
#include <zlib.h>

#include "base/fail.h"
#include "base/file.h"
#include "base/npy.h"
#include "base/shown.h"

#define ZIP_MOST ((size_t)0xffff0000u)

enum { LOCAL = 0x04034b50, CENTRAL = 0x02014b50, END = 0x06054b50, VERSION = 20 };

typedef struct zip {
    sti_writer *writer;
    sti_text central;
    size_t at; /* bytes written */
    int64_t members;
} zip;

static void add_number(sti_text *out, size_t value, int bytes)
{
    for (int i = 0; i < bytes; i++) {
        const unsigned char byte = (unsigned char)(value >> (8 * i));
        sti_text_add_bytes(out, &byte, 1);
    }
}

/* What local and central headers share: version needed to name length. The time is that
 * of the format's first day, so that the same arrays give the same file. */
static void add_common(sti_text *out, uint32_t crc, size_t n_bytes, size_t name_bytes)
{
    add_number(out, VERSION, 2);
    add_number(out, 1u << 11, 2); /* names are UTF-8 */
    add_number(out, 0, 2);        /* stored */
    add_number(out, 0, 2);
    add_number(out, 1u << 5 | 1, 2);
    add_number(out, crc, 4);
    add_number(out, n_bytes, 4);
    add_number(out, n_bytes, 4);
    add_number(out, name_bytes, 2);
    add_number(out, 0, 2); /* no further fields */
}

static uint32_t crc_of(const sti_text *header, const sti_npz_array *a)
{
    uLong crc = crc32_z(0, (const Bytef *)header->data, header->length);
    return (uint32_t)(a->n_bytes ? crc32_z(crc, a->data, a->n_bytes) : crc);
}

static void add_central(zip *z, const char *name, uint32_t crc, size_t n_bytes)
{
    add_number(&z->central, CENTRAL, 4);
    add_number(&z->central, VERSION, 2);
    add_common(&z->central, crc, n_bytes, strlen(name));
    add_number(&z->central, 0, 2); /* comment */
    add_number(&z->central, 0, 2); /* disk */
    add_number(&z->central, 0, 2);
    add_number(&z->central, 0, 4);
    add_number(&z->central, z->at, 4);
    sti_text_add(&z->central, name);
    z->members++;
}

static stint_status add_member(zip *z, const sti_npz_array *a)
{
    sti_text name = {0}, header = {0}, local = {0};
    stint_status st = STINT_OK;
    sti_text_printf(&name, "%s.npy", a->name);
    sti_npy_header(&header, a->descr, a->rank, a->dim);
    if (name.failed || header.failed)
        st = STINT_E_MEMORY;
    else if (name.length > 65000 || a->n_bytes > ZIP_MOST - z->at - header.length)
        st = sti_fail(STINT_E_UNSUPPORTED,
                      "'%.80s': a .npz of 4 GiB and more is not written here",
                      sti_shown(a->name));
    if (st == STINT_OK) {
        const size_t n_bytes = header.length + a->n_bytes;
        const uint32_t crc = crc_of(&header, a);
        add_central(z, name.data, crc, n_bytes);
        add_number(&local, LOCAL, 4);
        add_common(&local, crc, n_bytes, name.length);
        sti_text_add(&local, name.data);
        sti_text_add_bytes(&local, header.data, header.length);
        st = local.failed || z->central.failed
                 ? STINT_E_MEMORY
                 : sti_writer_add(z->writer, local.data, local.length);
        z->at += local.length + a->n_bytes;
    }
    if (st == STINT_OK && a->n_bytes)
        st = sti_writer_add(z->writer, a->data, a->n_bytes);
    sti_text_fini(&name);
    sti_text_fini(&header);
    sti_text_fini(&local);
    return st;
}

static stint_status add_end(zip *z)
{
    const size_t central = z->central.length;
    add_number(&z->central, END, 4);
    add_number(&z->central, 0, 4); /* disks */
    add_number(&z->central, (size_t)z->members, 2);
    add_number(&z->central, (size_t)z->members, 2);
    add_number(&z->central, central, 4);
    add_number(&z->central, z->at, 4);
    add_number(&z->central, 0, 2);
    return z->central.failed
               ? STINT_E_MEMORY
               : sti_writer_add(z->writer, z->central.data, z->central.length);
}

stint_status sti_npz_write(const char *path, const sti_npz_array *arrays, int64_t count)
{
    zip z = {0};
    stint_status st = sti_writer_open(path, &z.writer);
    if (st != STINT_OK)
        return st;
    for (int64_t i = 0; i < count && st == STINT_OK; i++)
        st = count > 65000 ? sti_fail(STINT_E_UNSUPPORTED, "too many arrays for a .npz")
                           : add_member(&z, &arrays[i]);
    if (st == STINT_OK)
        st = add_end(&z);
    if (st == STINT_OK)
        st = sti_writer_commit(z.writer);
    else
        sti_writer_abort(z.writer);
    sti_text_fini(&z.central);
    return st;
}
