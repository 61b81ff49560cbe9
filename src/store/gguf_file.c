#define _GNU_SOURCE /* O_CLOEXEC */

#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fail.h"
#include "base/file.h"
#include "base/finite.h"
#include "base/memory.h"
#include "store/gguf_priv.h"

#define HEAD_FIRST ((size_t)1 << 20) /* bytes that are looked at first */
#define HEAD_MOST  ((size_t)1 << 30)
#define NAME_MOST  256
#define PIECE      ((int64_t)1 << 16) /* numbers read at once, at least */

/* Types of values. */
enum { U8, I8, U16, I16, U32, I32, F32, BOOL, TEXT, ARRAY, U64, I64, F64, VALUE_TYPES };
static const size_t value_bytes[VALUE_TYPES] = {1, 1, 2, 2, 4, 4, 4, 1, 0, 0, 8, 8, 8};

/* ---- the head, byte by byte ---- */

typedef struct cursor {
    const uint8_t *at, *end;
    bool short_of; /* it ended before what was wanted */
} cursor;

static const uint8_t *take(cursor *c, uint64_t bytes)
{
    if (c->short_of || bytes > (uint64_t)(c->end - c->at)) {
        c->short_of = true;
        return NULL;
    }
    const uint8_t *at = c->at;
    c->at += bytes;
    return at;
}

static uint64_t number_at(const uint8_t *at, size_t bytes)
{
    uint64_t n = 0;
    for (size_t i = 0; at && i < bytes; i++)
        n |= (uint64_t)at[i] << 8 * i;
    return n;
}

static uint64_t take_number(cursor *c, size_t bytes)
{
    return number_at(take(c, bytes), bytes);
}

static stint_status broken(const sti_gguf *f, const char *what)
{
    return sti_fail(STINT_E_INPUT, "%s: %s; take another copy", f->path, what);
}

/* A name of letters, kept; *out is NULL where the head ends first. */
static stint_status take_name(sti_gguf *f, cursor *c, const char **out)
{
    const uint64_t length = take_number(c, 8);
    const uint8_t *text = take(c, length);
    *out = NULL;
    if (c->short_of)
        return STINT_OK;
    if (length < 1 || length > NAME_MOST || memchr(text, 0, length))
        return broken(f, "a name in it is empty, too long, or holds a NUL");
    char *copy = sti_arena_alloc(f->arena, length + 1);
    if (!copy)
        return STINT_E_MEMORY;
    memcpy(copy, text, length);
    *out = copy;
    return STINT_OK;
}

/* Over one value of a type, which is no array. */
static void skip(cursor *c, uint32_t type)
{
    take(c, type == TEXT ? take_number(c, 8) : value_bytes[type]);
}

static stint_status take_value(sti_gguf *f, cursor *c, gguf_value *v)
{
    stint_status st = take_name(f, c, &v->key);
    if (st != STINT_OK)
        return st;
    v->type = (uint32_t)take_number(c, 4);
    v->at = c->at;
    if (!c->short_of && v->type >= VALUE_TYPES)
        return broken(f, "a value in it is of an unknown type");
    if (c->short_of || v->type != ARRAY) {
        if (!c->short_of)
            skip(c, v->type);
        return STINT_OK;
    }
    v->item = (uint32_t)take_number(c, 4);
    const uint64_t count = take_number(c, 8);
    v->at = c->at;
    if (!c->short_of && (v->item >= VALUE_TYPES || v->item == ARRAY))
        return broken(f, "an array in it is of an unknown type");
    if (count > (uint64_t)f->bytes)
        return broken(f, "an array in it is longer than the file");
    v->count = (int64_t)count;
    if (!c->short_of && v->item != TEXT)
        take(c, count * value_bytes[v->item]);
    for (uint64_t i = 0; v->item == TEXT && i < count && !c->short_of; i++)
        skip(c, TEXT);
    return STINT_OK;
}

static stint_status take_tensor(sti_gguf *f, cursor *c, sti_gguf_tensor *t)
{
    stint_status st = take_name(f, c, &t->name);
    const uint64_t rank = take_number(c, 4);
    int64_t count = 1;
    if (st != STINT_OK || c->short_of)
        return st;
    if (rank < 1 || rank > STI_GGUF_RANK)
        return broken(f, "a tensor in it has no or too many dimensions");
    t->rank = (int)rank;
    for (int i = 0; i < t->rank; i++) {
        const uint64_t dim = take_number(c, 8);
        if (!c->short_of &&
            (dim < 1 || dim > (uint64_t)INT64_MAX / (uint64_t)count / 8))
            return broken(f,
                          "a tensor in it has a dimension of nothing, or beyond all");
        t->dim[t->rank - 1 - i] = (int64_t)dim;
        count *= c->short_of ? 1 : (int64_t)dim;
    }
    t->number = (uint32_t)take_number(c, 4);
    t->type = sti_gguf_type_find(t->number);
    const uint64_t offset = take_number(c, 8);
    if (c->short_of)
        return STINT_OK;
    if (offset > (uint64_t)f->bytes)
        return broken(f, "a tensor in it begins behind its end");
    t->offset = (int64_t)offset;
    if (t->type && t->dim[t->rank - 1] % t->type->block != 0)
        return sti_fail(
            STINT_E_INPUT,
            "%s: '%s' has rows of %" PRId64 " numbers, which are no blocks of "
            "%s (%" PRId64 ")",
            f->path, t->name, t->dim[t->rank - 1], t->type->name, t->type->block);
    if (t->type)
        t->bytes = (size_t)(count / t->type->block) * t->type->block_bytes;
    return STINT_OK;
}

/* Everything but the tensors' bytes. */
static stint_status parse(sti_gguf *f, cursor *c)
{
    stint_status st = STINT_OK;
    const uint8_t *magic = take(c, 4);
    const uint64_t version = take_number(c, 4);
    const uint64_t tensors = take_number(c, 8), values = take_number(c, 8);
    if (c->short_of || memcmp(magic, "GGUF", 4) != 0)
        return broken(f, "no GGUF file");
    if (version != 2 && version != 3)
        return sti_fail(STINT_E_UNSUPPORTED,
                        "%s: GGUF of version %" PRIu64 "%s; versions 2 and 3 are read",
                        f->path, version, version >> 24 ? " (a big-endian file)" : "");
    if (tensors > (uint64_t)f->bytes / 24 || values > (uint64_t)f->bytes / 12)
        return broken(f, "it says that it holds more than it has room for");
    f->value = sti_arena_alloc(f->arena, (size_t)(values + 1) * sizeof *f->value);
    f->tensor = sti_arena_alloc(f->arena, (size_t)(tensors + 1) * sizeof *f->tensor);
    if (!f->value || !f->tensor)
        return STINT_E_MEMORY;
    f->values = f->tensors = 0;
    for (; f->values < (int64_t)values && st == STINT_OK && !c->short_of; f->values++)
        st = take_value(f, c, &f->value[f->values]);
    for (; f->tensors < (int64_t)tensors && st == STINT_OK && !c->short_of;
         f->tensors++)
        st = take_tensor(f, c, &f->tensor[f->tensors]);
    return st;
}

/* ---- opening ---- */

static int by_offset(const void *a, const void *b)
{
    const sti_gguf_tensor *x = a, *y = b;
    return x->offset < y->offset ? -1 : x->offset > y->offset;
}

static int by_name(const void *a, const void *b)
{
    const sti_gguf_tensor *x = a, *y = b;
    return strcmp(x->name, y->name);
}

stint_status sti_gguf_sort_names(sti_gguf *f)
{
    if (f->tensors > 0)
        qsort(f->tensor, (size_t)f->tensors, sizeof *f->tensor, by_name);
    for (int64_t i = 1; i < f->tensors; i++)
        if (strcmp(f->tensor[i - 1].name, f->tensor[i].name) == 0)
            return sti_fail(STINT_E_INPUT, "%s: '%s' is there twice", f->path,
                            f->tensor[i].name);
    return STINT_OK;
}

/* Tensors where they can be, none over another; afterwards by name. */
static stint_status check_places(sti_gguf *f, int64_t head)
{
    int64_t align = 32, end = 0;
    if (sti_gguf_has(f, "general.alignment") &&
        (!sti_gguf_int(f, "general.alignment", &align) || align < 1 || align > 1 << 20))
        return broken(f, "\"general.alignment\" is no alignment");
    f->data = (head + align - 1) / align * align;
    if (f->tensors > 0)
        qsort(f->tensor, (size_t)f->tensors, sizeof *f->tensor, by_offset);
    for (int64_t i = 0; i < f->tensors; i++) {
        sti_gguf_tensor *t = &f->tensor[i];
        if (t->offset % align != 0 || t->offset < end)
            return sti_fail(
                STINT_E_INPUT, "%s: '%s' %s; take another copy", f->path, t->name,
                t->offset < end ? "lies over another tensor" : "is not aligned");
        t->offset += f->data;
        if (t->offset > f->bytes || (int64_t)t->bytes > f->bytes - t->offset)
            return sti_fail(
                STINT_E_INPUT,
                "%s: '%s' ends behind the file's end: it was cut short; take "
                "another copy",
                f->path, t->name);
        end = t->offset - f->data + (int64_t)t->bytes;
    }
    return sti_gguf_sort_names(f);
}

/* More and more of the file until the head is in it. */
static stint_status read_head(sti_gguf *f)
{
    for (size_t ask = HEAD_FIRST;; ask *= 4) {
        f->head_bytes = ask < (uint64_t)f->bytes ? ask : (size_t)f->bytes;
        sti_free(f->head);
        f->head = sti_alloc(f->head_bytes ? f->head_bytes : 1, "head of a GGUF file");
        if (!f->head)
            return STINT_E_MEMORY;
        stint_status st = sti_read_at(f->fd, f->path, 0, f->head, f->head_bytes);
        cursor c = {.at = f->head, .end = f->head + f->head_bytes};
        if (st == STINT_OK)
            st = parse(f, &c);
        if (st != STINT_OK)
            return st;
        if (!c.short_of)
            return check_places(f, c.at - f->head);
        if (f->head_bytes == (size_t)f->bytes || ask >= HEAD_MOST)
            return broken(f, "it ends within its head: it was cut short");
    }
}

stint_status sti_gguf_open_one(const char *path, sti_gguf **file_out)
{
    sti_arena *arena = sti_arena_create("GGUF file");
    sti_gguf *f = arena ? sti_arena_alloc(arena, sizeof *f) : NULL;
    struct stat stat;
    if (!f) {
        sti_arena_destroy(arena);
        return STINT_E_MEMORY;
    }
    f->arena = arena;
    f->fd = -1;
    f->path = sti_arena_strdup(arena, path);
    stint_status st = f->path ? sti_file_open(path, &f->fd) : STINT_E_MEMORY;
    if (st == STINT_OK && fstat(f->fd, &stat) != 0)
        st = sti_fail(STINT_E_IO, "%s: cannot be looked at", path);
    if (st == STINT_OK) {
        f->bytes = (int64_t)stat.st_size;
        st = read_head(f);
    }
    if (st != STINT_OK) {
        sti_gguf_close(f);
        return st;
    }
    *file_out = f;
    return STINT_OK;
}

void sti_gguf_close(sti_gguf *f)
{
    if (!f)
        return;
    for (int64_t i = 0; i < f->parts; i++)
        sti_gguf_close(f->part[i]);
    if (f->fd >= 0)
        close(f->fd);
    sti_free(f->head);
    sti_arena_destroy(f->arena);
}

bool sti_gguf_is(const char *path)
{
    char magic[4] = "";
    const int fd = open(path, O_RDONLY | O_CLOEXEC);
    const bool is = fd >= 0 && read(fd, magic, 4) == 4 && memcmp(magic, "GGUF", 4) == 0;
    if (fd >= 0)
        close(fd);
    return is;
}

const char *sti_gguf_path(const sti_gguf *f)
{
    return f->path;
}

/* ---- keys ---- */

static const gguf_value *value_find(const sti_gguf *f, const char *key)
{
    for (int64_t i = 0; i < f->values; i++)
        if (strcmp(f->value[i].key, key) == 0)
            return &f->value[i];
    return NULL;
}

bool sti_gguf_has(const sti_gguf *f, const char *key)
{
    return value_find(f, key) != NULL;
}

static bool int_of(uint32_t type, const uint8_t *at, int64_t *out)
{
    const size_t bytes = type < VALUE_TYPES ? value_bytes[type] : 0;
    const uint64_t n = number_at(at, bytes);
    switch (type) {
    case U8:
    case U16:
    case U32:
    case BOOL:
        *out = (int64_t)n;
        return true;
    case I8:
        *out = (int8_t)n;
        return true;
    case I16:
        *out = (int16_t)n;
        return true;
    case I32:
        *out = (int32_t)n;
        return true;
    case U64:
    case I64:
        *out = (int64_t)n;
        return type == I64 || n <= INT64_MAX;
    default:
        return false;
    }
}

static bool float_of(uint32_t type, const uint8_t *at, double *out)
{
    const uint64_t bits = number_at(at, type == F32 ? 4 : 8);
    const uint32_t low = (uint32_t)bits;
    float x;
    int64_t n;
    if (type == F32) {
        memcpy(&x, &low, sizeof x);
        *out = (double)x;
    } else if (type == F64) {
        memcpy(out, &bits, sizeof *out);
    } else if (int_of(type, at, &n)) {
        *out = (double)n;
    } else {
        return false;
    }
    return true;
}

bool sti_gguf_int(const sti_gguf *f, const char *key, int64_t *out)
{
    const gguf_value *v = value_find(f, key);
    return v && int_of(v->type, v->at, out);
}

bool sti_gguf_float(const sti_gguf *f, const char *key, double *out)
{
    const gguf_value *v = value_find(f, key);
    return v && v->type != ARRAY && v->type != TEXT && float_of(v->type, v->at, out);
}

bool sti_gguf_bool(const sti_gguf *f, const char *key, bool *out)
{
    const gguf_value *v = value_find(f, key);
    if (v && v->type == BOOL)
        *out = *v->at != 0;
    return v && v->type == BOOL;
}

const char *sti_gguf_text(const sti_gguf *f, const char *key)
{
    const gguf_value *v = value_find(f, key);
    if (!v || v->type != TEXT)
        return NULL;
    const uint64_t length = number_at(v->at, 8);
    if (memchr(v->at + 8, 0, length))
        return NULL;
    char *copy = sti_arena_alloc(f->arena, length + 1);
    if (copy)
        memcpy(copy, v->at + 8, length);
    return copy;
}

bool sti_gguf_array(const sti_gguf *f, const char *key, sti_gguf_items *items)
{
    const gguf_value *v = value_find(f, key);
    if (!v || v->type != ARRAY)
        return false;
    *items = (sti_gguf_items){.type = v->item,
                              .count = v->count,
                              .at = v->at,
                              .end = f->head + f->head_bytes};
    return true;
}

bool sti_gguf_next_text(sti_gguf_items *items, const char **text, size_t *bytes)
{
    if (items->type != TEXT || items->next >= items->count)
        return false;
    *bytes = (size_t)number_at(items->at, 8);
    *text = (const char *)items->at + 8;
    items->at += 8 + *bytes;
    items->next++;
    return true;
}

bool sti_gguf_next_float(sti_gguf_items *items, double *out)
{
    if (items->type == TEXT || items->next >= items->count ||
        !float_of(items->type, items->at, out))
        return false;
    items->at += value_bytes[items->type];
    items->next++;
    return true;
}

bool sti_gguf_next_int(sti_gguf_items *items, int64_t *out)
{
    if (items->type == TEXT || items->next >= items->count ||
        !int_of(items->type, items->at, out))
        return false;
    items->at += value_bytes[items->type];
    items->next++;
    return true;
}

/* ---- tensors ---- */

const sti_gguf_tensor *sti_gguf_find(const sti_gguf *f, const char *name)
{
    const sti_gguf_tensor key = {.name = name};
    return f->tensors > 0
               ? bsearch(&key, f->tensor, (size_t)f->tensors, sizeof key, by_name)
               : NULL;
}

int64_t sti_gguf_tensor_count(const sti_gguf *f)
{
    return f->tensors;
}

const sti_gguf_tensor *sti_gguf_tensor_at(const sti_gguf *f, int64_t i)
{
    return &f->tensor[i];
}

static stint_status read_piece(const sti_gguf *f, const sti_gguf_tensor *t,
                               int64_t first, int64_t count, uint8_t *bytes, float *out)
{
    const sti_gguf_type *type = t->type;
    const int64_t blocks = count / type->block, begin = first / type->block;
    stint_status st =
        sti_read_at(f->fd, f->path, t->offset + begin * (int64_t)type->block_bytes,
                    bytes, (size_t)blocks * type->block_bytes);
    if (st != STINT_OK)
        return st;
    for (int64_t b = 0; b < blocks; b++)
        type->read(bytes + (size_t)b * type->block_bytes, out + b * type->block);
    const int64_t bad = sti_first_not_finite(out, count);
    return bad < 0 ? STINT_OK
                   : sti_fail(STINT_E_INPUT,
                              "%s: '%s' is infinite or NaN at number %" PRId64, f->path,
                              t->name, first + bad);
}

stint_status sti_gguf_read(const sti_gguf *f, const sti_gguf_tensor *t, int64_t first,
                           int64_t count, float *out)
{
    const sti_gguf_type *type = t->type;
    const sti_gguf *part = t->part > 0 ? f->part[t->part - 1] : f;
    if (!type)
        return sti_fail(STINT_E_UNSUPPORTED,
                        "%s: '%s' is of type %" PRIu32
                        ", which is not read here; %s are",
                        f->path, t->name, t->number, STI_GGUF_TYPES);
    const int64_t most = PIECE < count ? PIECE : count;
    uint8_t *bytes = sti_alloc((size_t)(most / type->block + 1) * type->block_bytes,
                               "blocks of a tensor");
    stint_status st = bytes ? STINT_OK : STINT_E_MEMORY;
    for (int64_t i = 0, n; i < count && st == STINT_OK; i += n) {
        n = count - i < PIECE ? count - i : PIECE;
        st = read_piece(part, t, first + i, n, bytes, out + i);
    }
    sti_free(bytes);
    return st;
}
