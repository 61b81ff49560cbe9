/* .npz: a zip archive with a .npy for each array, as numpy.savez and savez_compressed
 * write it. */
#include <archive.h>
#include <archive_entry.h>
#include <string.h>

#include "base/fail.h"
#include "base/memory.h"
#include "base/npy.h"
#include "base/shown.h"
#include "base/text.h"

enum { FIRST_BYTES = 1 << 16, NAMES_MOST = 10 };

typedef struct npz {
    struct archive *archive;
    const char *path, *name; /* name NULL: the only array */
    sti_text names;          /* of the arrays that are there, for messages */
    int64_t arrays;
    unsigned char *bytes;
    size_t used, capacity;
} npz;

static stint_status damaged(const npz *z)
{
    const char *why = archive_error_string(z->archive);
    return sti_fail(STINT_E_INPUT, "%s: no whole .npz file: %s", z->path,
                    why ? why : "not a zip archive");
}

static stint_status grow(npz *z)
{
    const size_t more = z->capacity ? 2 * z->capacity : FIRST_BYTES;
    void *larger = more > z->capacity ? sti_realloc(z->bytes, more, "npz") : NULL;
    if (!larger)
        return STINT_E_MEMORY;
    z->bytes = larger;
    z->capacity = more;
    return STINT_OK;
}

/* The bytes of the entry that was reached. What its header says of their number is not
 * believed: memory grows with what comes. */
static stint_status read_entry(npz *z)
{
    for (z->used = 0;;) {
        if (z->used == z->capacity) {
            const stint_status status = grow(z);
            if (status != STINT_OK)
                return status;
        }
        const la_ssize_t got =
            archive_read_data(z->archive, z->bytes + z->used, z->capacity - z->used);
        if (got < 0)
            return damaged(z);
        if (got == 0)
            return STINT_OK;
        z->used += (size_t)got;
    }
}

/* Length of an entry's name without ".npy"; 0: it is no array. */
static size_t array_length(const char *entry)
{
    const size_t length = entry ? strlen(entry) : 0;
    return length > 4 && strcmp(entry + length - 4, ".npy") == 0 ? length - 4 : 0;
}

/* Names of the first arrays, for a message. */
static void list_name(npz *z, const char *entry, size_t length)
{
    sti_text name = {0};
    sti_text_add_bytes(&name, entry, length);
    sti_text_add(&z->names, z->arrays > 1 ? ", " : "");
    sti_text_add_shown(&z->names, name.failed ? "" : name.data, "");
    z->names.failed |= name.failed;
    sti_text_fini(&name);
}

/* *done_out: what was wanted is read. */
static stint_status take_entry(npz *z, const char *entry, bool *done_out)
{
    const size_t length = array_length(entry);
    if (length == 0)
        return STINT_OK;
    z->arrays++;
    if (z->arrays <= NAMES_MOST)
        list_name(z, entry, length);
    else if (z->arrays == NAMES_MOST + 1)
        sti_text_add(&z->names, ", ...");
    if (z->name) {
        *done_out = strlen(z->name) == length && memcmp(z->name, entry, length) == 0;
        return *done_out ? read_entry(z) : STINT_OK;
    }
    return z->arrays == 1 ? read_entry(z) : STINT_OK;
}

static stint_status no_array(const npz *z)
{
    const char *names = z->names.data ? z->names.data : "";
    if (z->arrays == 0)
        return sti_fail(STINT_E_INPUT, "%s: holds no arrays", z->path);
    if (z->name)
        return sti_fail(STINT_E_INPUT, "%s: holds no array '%s'; there %s %s", z->path,
                        z->name, z->arrays == 1 ? "is" : "are", names);
    return sti_fail(STINT_E_INPUT,
                    "%s: holds several arrays, %s; add a colon and the name of one: "
                    "FILE.npz:NAME",
                    z->path, names);
}

static stint_status find_array(npz *z)
{
    bool done = false;
    while (!done) {
        struct archive_entry *entry = NULL;
        const int code = archive_read_next_header(z->archive, &entry);
        if (code == ARCHIVE_EOF)
            break;
        if (code == ARCHIVE_FATAL || code == ARCHIVE_FAILED)
            return damaged(z);
        const char *name = archive_entry_pathname_utf8(entry);
        const stint_status status =
            take_entry(z, name ? name : archive_entry_pathname(entry), &done);
        if (status != STINT_OK)
            return status;
    }
    if (z->names.failed)
        return STINT_E_MEMORY;
    return done || (!z->name && z->arrays == 1) ? STINT_OK : no_array(z);
}

stint_status sti_npz_extract(const void *zip, size_t zip_bytes, const char *path,
                             const char *name, void **npy_out, size_t *bytes_out)
{
    npz z = {.archive = archive_read_new(), .path = path, .name = name};
    stint_status status = z.archive ? STINT_OK : STINT_E_MEMORY;
    if (status == STINT_OK &&
        (archive_read_support_format_zip(z.archive) != ARCHIVE_OK ||
         archive_read_open_memory(z.archive, zip, zip_bytes) != ARCHIVE_OK))
        status = damaged(&z);
    if (status == STINT_OK)
        status = find_array(&z);
    archive_read_free(z.archive);
    sti_text_fini(&z.names);
    if (status != STINT_OK) {
        sti_free(z.bytes);
        return status;
    }
    *npy_out = z.bytes;
    *bytes_out = z.used;
    return STINT_OK;
}
