/* .npy: magic, version, length, then a Python dictionary of three keys. Only what NumPy
 * writes is understood, and all of it is checked before it is believed. */
#define _GNU_SOURCE /* O_CLOEXEC */
#include "base/npy.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fail.h"
#include "base/file.h"
#include "base/memory.h"
#include "base/text.h"

enum { HEADER_MAX = 1 << 16, ALIGNMENT = 64 };

/* The header's text, read from the left. */
typedef struct cursor {
    const char *at, *end;
    const char *begin;
    const char *name;
} cursor;

static stint_status bad_header(const cursor *c, const char *wanted)
{
    return sti_fail(STINT_E_INPUT,
                    "%s: no .npy header that NumPy writes: %s expected at byte %td of "
                    "its text",
                    c->name, wanted, c->at - c->begin);
}

static void skip_spaces(cursor *c)
{
    while (c->at < c->end && (*c->at == ' ' || *c->at == '\n'))
        c->at++;
}

static bool skip_word(cursor *c, const char *word)
{
    skip_spaces(c);
    const size_t length = strlen(word);
    if ((size_t)(c->end - c->at) < length || memcmp(c->at, word, length) != 0)
        return false;
    c->at += length;
    return true;
}

/* 'text' or "text" without escapes. */
static stint_status read_quoted(cursor *c, char *out, size_t size)
{
    skip_spaces(c);
    const char quote = c->at < c->end ? *c->at : '\0';
    if (quote != '\'' && quote != '"')
        return bad_header(c, "a quoted word");
    const char *begin = ++c->at;
    while (c->at < c->end && *c->at != quote)
        c->at++;
    const size_t length = (size_t)(c->at - begin);
    if (c->at == c->end || length >= size || memchr(begin, '\0', length))
        return bad_header(c, "a short quoted word");
    memcpy(out, begin, length);
    out[length] = '\0';
    c->at++;
    return STINT_OK;
}

static stint_status read_descr(cursor *c, sti_npy *npy)
{
    char descr[32];
    skip_spaces(c);
    if (c->at < c->end && *c->at == '[')
        return sti_fail(STINT_E_UNSUPPORTED,
                        "%s: elements are structures; save one of their fields",
                        c->name);
    stint_status status = read_quoted(c, descr, sizeof descr);
    if (status != STINT_OK)
        return status;
    if (!strchr("<>|=", descr[0]) || !descr[1] || !strchr("fiubcV", descr[1]))
        return sti_fail(STINT_E_UNSUPPORTED,
                        "%s: elements '%s' are no numbers of a fixed size", c->name,
                        descr);
    int bytes = 0;
    const char *digit = descr + 2;
    for (; *digit >= '0' && *digit <= '9' && bytes < 1000; digit++)
        bytes = 10 * bytes + (*digit - '0');
    if (*digit || bytes < 1 || bytes > 64)
        return sti_fail(STINT_E_INPUT,
                        "%s: elements '%s' have no size from 1 to 64 bytes", c->name,
                        descr);
    npy->kind = descr[1];
    npy->item_bytes = bytes;
    npy->big_endian = descr[0] == '>' && bytes > 1 && descr[1] != 'V';
    return STINT_OK;
}

static stint_status read_dim(cursor *c, sti_npy *npy)
{
    int64_t dim = 0;
    skip_spaces(c);
    if (c->at == c->end || *c->at < '0' || *c->at > '9')
        return bad_header(c, "a length");
    for (; c->at < c->end && *c->at >= '0' && *c->at <= '9'; c->at++)
        if (__builtin_mul_overflow(dim, INT64_C(10), &dim) ||
            __builtin_add_overflow(dim, (int64_t)(*c->at - '0'), &dim))
            return sti_fail(STINT_E_INPUT, "%s: a length in the shape is beyond 2^63",
                            c->name);
    if (npy->rank == STI_NPY_RANK)
        return sti_fail(STINT_E_INPUT, "%s: more than %d axes", c->name, STI_NPY_RANK);
    npy->dim[npy->rank++] = dim;
    return STINT_OK;
}

/* (), (3,) or (3, 4). */
static stint_status read_shape(cursor *c, sti_npy *npy)
{
    if (!skip_word(c, "("))
        return bad_header(c, "a tuple");
    while (!skip_word(c, ")")) {
        const stint_status status = read_dim(c, npy);
        if (status != STINT_OK)
            return status;
        if (!skip_word(c, ",")) {
            if (npy->rank < 2 || !skip_word(c, ")"))
                return bad_header(c, "',' in the tuple");
            break;
        }
    }
    return STINT_OK;
}

static stint_status read_order(cursor *c, sti_npy *npy)
{
    if (skip_word(c, "True"))
        npy->fortran_order = true;
    else if (!skip_word(c, "False"))
        return bad_header(c, "True or False");
    return STINT_OK;
}

static stint_status read_dictionary(cursor *c, sti_npy *npy)
{
    static const char *const keys[] = {"descr", "fortran_order", "shape"};
    stint_status (*const readers[])(cursor *, sti_npy *) = {read_descr, read_order,
                                                            read_shape};
    bool seen[3] = {false, false, false};
    if (!skip_word(c, "{"))
        return bad_header(c, "'{'");
    while (!skip_word(c, "}")) {
        char key[32];
        int which = 0;
        stint_status status = read_quoted(c, key, sizeof key);
        if (status != STINT_OK)
            return status;
        while (which < 3 && strcmp(key, keys[which]) != 0)
            which++;
        if (which == 3 || seen[which])
            return sti_fail(STINT_E_INPUT, "%s: the .npy header has the key '%s' %s",
                            c->name, key, which == 3 ? "that none has" : "twice");
        seen[which] = true;
        if (!skip_word(c, ":"))
            return bad_header(c, "':'");
        if ((status = readers[which](c, npy)) != STINT_OK)
            return status;
        if (!skip_word(c, ",")) {
            if (!skip_word(c, "}"))
                return bad_header(c, "',' or '}'");
            break;
        }
    }
    for (int i = 0; i < 3; i++)
        if (!seen[i])
            return sti_fail(STINT_E_INPUT, "%s: the .npy header has no '%s'", c->name,
                            keys[i]);
    skip_spaces(c);
    return c->at == c->end ? STINT_OK : bad_header(c, "the end");
}

static stint_status check_bytes(sti_npy *npy, const char *name, size_t data_bytes)
{
    size_t bytes;
    npy->count = 1;
    for (int i = 0; i < npy->rank; i++)
        if (__builtin_mul_overflow(npy->count, npy->dim[i], &npy->count))
            return sti_fail(STINT_E_INPUT, "%s: the shape's product is beyond 2^63",
                            name);
    if (!sti_mul_bytes(npy->count, (size_t)npy->item_bytes, &bytes) ||
        bytes != data_bytes)
        return sti_fail(STINT_E_INPUT,
                        "%s: the header promises %" PRId64
                        " elements of %d bytes, but %zu bytes follow it",
                        name, npy->count, npy->item_bytes, data_bytes);
    if (npy->rank < 2)
        npy->fortran_order = false;
    return STINT_OK;
}

stint_status sti_npy_parse(const void *bytes, size_t n_bytes, const char *name,
                           sti_npy *npy_out)
{
    const unsigned char *b = bytes;
    sti_npy npy = {0};
    if (n_bytes < 12 || memcmp(b, "\x93NUMPY", 6) != 0)
        return sti_fail(STINT_E_INPUT,
                        "%s: no .npy file (%zu bytes, other first bytes)", name,
                        n_bytes);
    if (b[6] < 1 || b[6] > 3 || b[7] != 0)
        return sti_fail(STINT_E_UNSUPPORTED,
                        "%s: .npy version %d.%d; 1.0 to 3.0 are known", name, b[6],
                        b[7]);
    const size_t front = b[6] == 1 ? 10 : 12;
    size_t length = b[8] | (size_t)b[9] << 8;
    if (b[6] > 1)
        length |= (size_t)b[10] << 16 | (size_t)b[11] << 24;
    if (length > n_bytes - front || length > HEADER_MAX)
        return sti_fail(
            STINT_E_INPUT,
            "%s: a header of %zu bytes in a file of %zu; one has at most %d", name,
            length, n_bytes, HEADER_MAX);
    const char *text = (const char *)b + front;
    cursor c = {.at = text, .end = text + length, .begin = text, .name = name};
    stint_status status = read_dictionary(&c, &npy);
    if (status == STINT_OK)
        status = check_bytes(&npy, name, n_bytes - front - length);
    if (status != STINT_OK)
        return status;
    npy.data = b + front + length;
    *npy_out = npy;
    return STINT_OK;
}

/* ---- files ---- */

size_t sti_npy_file_length(const char *path)
{
    struct stat facts;
    const size_t length = strlen(path);
    for (size_t i = length; i > 4; i--)
        if (path[i] == ':' && strncmp(path + i - 4, ".npz", 4) == 0)
            return stat(path, &facts) == 0 ? length : i;
    return length;
}

/* A map of the whole file. */
static stint_status map_file(const char *path, void **map_out, size_t *bytes_out)
{
    struct stat facts;
    int fd = -1;
    stint_status status = sti_file_open(path, &fd);
    if (status != STINT_OK)
        return status;
    if (fstat(fd, &facts) != 0) {
        status = sti_fail_errno("%s: cannot be looked at", path);
    } else if (facts.st_size == 0) {
        status = sti_fail(STINT_E_INPUT, "%s: no .npy file, but empty", path);
    } else {
        *bytes_out = (size_t)facts.st_size;
        *map_out = mmap(NULL, *bytes_out, PROT_READ, MAP_PRIVATE, fd, 0);
        if (*map_out == MAP_FAILED)
            status = sti_fail_errno("%s: cannot be mapped", path);
    }
    close(fd);
    return status;
}

/* The array of a .npz stays in memory; the file is not needed any more. */
static stint_status take_from_npz(const char *path, const char *name, sti_npy *npy,
                                  sti_npy *parsed)
{
    void *bytes = NULL;
    size_t n_bytes = 0;
    stint_status status =
        sti_npz_extract(npy->map, npy->map_bytes, path, name, &bytes, &n_bytes);
    if (status == STINT_OK)
        status = sti_npy_parse(bytes, n_bytes, path, parsed);
    parsed->copy = bytes;
    return status;
}

static stint_status open_mapped(const char *path, const char *name, sti_npy *npy)
{
    sti_npy parsed = {0};
    stint_status status;
    if (npy->map_bytes > 4 && memcmp(npy->map, "PK\3\4", 4) == 0) {
        status = take_from_npz(path, name, npy, &parsed);
    } else if (name) {
        status = sti_fail(STINT_E_INPUT, "%s: no .npz file, so nothing in it is '%s'",
                          path, name);
    } else {
        status = sti_npy_parse(npy->map, npy->map_bytes, path, &parsed);
    }
    if (status == STINT_OK)
        status = sti_npy_straighten(&parsed, path);
    if (status != STINT_OK) {
        sti_free(parsed.copy);
        return status;
    }
    if (!parsed.copy) {
        parsed.map = npy->map;
        parsed.map_bytes = npy->map_bytes;
    } else {
        munmap(npy->map, npy->map_bytes);
    }
    *npy = parsed;
    return STINT_OK;
}

stint_status sti_npy_open(const char *path, sti_npy *npy_out)
{
    sti_npy npy = {0};
    const size_t length = sti_npy_file_length(path);
    sti_text file = {0};
    sti_text_add_bytes(&file, path, length);
    if (file.failed)
        return STINT_E_MEMORY;
    stint_status status = map_file(file.data, &npy.map, &npy.map_bytes);
    if (status == STINT_OK) {
        status = open_mapped(file.data, path[length] ? path + length + 1 : NULL, &npy);
        if (status != STINT_OK)
            munmap(npy.map, npy.map_bytes);
    }
    sti_text_fini(&file);
    if (status == STINT_OK)
        *npy_out = npy;
    return status;
}

size_t sti_npy_reading_bytes(const char *path)
{
    sti_npy npy = {0};
    void *map = NULL;
    size_t bytes, taken = 0;
    const size_t length = strlen(path);
    if (length < 4 || strcmp(path + length - 4, ".npy") != 0 ||
        map_file(path, &map, &bytes) != STINT_OK)
        return 0;
    if (sti_npy_parse(map, bytes, path, &npy) == STINT_OK)
        taken = npy.big_endian || npy.fortran_order ? 2 * bytes : bytes;
    munmap(map, bytes);
    return taken;
}

void sti_npy_close(sti_npy *npy)
{
    if (npy->map)
        munmap(npy->map, npy->map_bytes);
    sti_free(npy->copy);
    *npy = (sti_npy){0};
}

static void add_description(sti_text *text, const char *descr, int rank,
                            const int64_t *dim)
{
    sti_text_printf(text, "{'descr': '%s', 'fortran_order': False, 'shape': (", descr);
    for (int i = 0; i < rank; i++)
        sti_text_printf(text, i + 1 < rank ? "%" PRId64 ", " : "%" PRId64, dim[i]);
    sti_text_add(text, rank == 1 ? ",), }" : "), }");
    while (!text->failed && (10 + text->length + 1) % ALIGNMENT != 0)
        sti_text_add(text, " ");
    sti_text_add(text, "\n");
}

void sti_npy_header(sti_text *out, const char *descr, int rank, const int64_t *dim)
{
    sti_text text = {0};
    add_description(&text, descr, rank, dim);
    const unsigned char front[10] = {0x93,
                                     'N',
                                     'U',
                                     'M',
                                     'P',
                                     'Y',
                                     1,
                                     0,
                                     (unsigned char)text.length,
                                     (unsigned char)(text.length >> 8)};
    sti_text_add_bytes(out, front, sizeof front);
    sti_text_add_bytes(out, text.data, text.length);
    out->failed = out->failed || text.failed;
    sti_text_fini(&text);
}

stint_status sti_npy_begin(sti_writer *writer, const char *descr, int rank,
                           const int64_t *dim)
{
    sti_text text = {0};
    sti_npy_header(&text, descr, rank, dim);
    const stint_status status =
        text.failed ? STINT_E_MEMORY : sti_writer_add(writer, text.data, text.length);
    sti_text_fini(&text);
    return status;
}

stint_status sti_npy_write(const char *path, const char *descr, int rank,
                           const int64_t *dim, const void *data, size_t n_bytes)
{
    sti_writer *writer = NULL;
    stint_status status = sti_writer_open(path, &writer);
    if (status == STINT_OK)
        status = sti_npy_begin(writer, descr, rank, dim);
    if (status == STINT_OK && n_bytes > 0)
        status = sti_writer_add(writer, data, n_bytes);
    if (status == STINT_OK)
        status = sti_writer_commit(writer);
    else
        sti_writer_abort(writer);
    return status;
}
