/* Reading of safetensors. */
#include "store/safetensors.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <jansson.h>
#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fail.h"
#include "base/file.h"
#include "base/finite.h"
#include "base/half.h"
#include "base/memory.h"
#include "store/tensor_packed.h"

#define HEADER_MAX_BYTES ((int64_t)100 * 1000 * 1000) /* the format's own limit */

struct sti_tensor_file {
    sti_arena *arena;
    const char *path;
    int fd;
    int64_t data_offset, data_bytes;
    sti_tensor_row *rows;   /* [count], by offset */
    sti_tensor_row **names; /* [count], by name */
    int64_t count;
    sti_tensor_text *texts;
    int64_t text_count;
    void *memory; /* that the tensors lie in, of a file without fd */
};

static const struct {
    const char *name;
    sti_tensor_type type;
    int bytes;
} types[] = {
    {"F32", STI_TENSOR_F32, 4},       {"I32", STI_TENSOR_I32, 4},
    {"I64", STI_TENSOR_I64, 8},       {"U8", STI_TENSOR_U8, 1},
    {"F64", STI_TENSOR_OTHER, 8},     {"F16", STI_TENSOR_F16, 2},
    {"BF16", STI_TENSOR_BF16, 2},     {"U64", STI_TENSOR_OTHER, 8},
    {"U32", STI_TENSOR_OTHER, 4},     {"U16", STI_TENSOR_OTHER, 2},
    {"I16", STI_TENSOR_OTHER, 2},     {"I8", STI_TENSOR_OTHER, 1},
    {"BOOL", STI_TENSOR_OTHER, 1},    {"F8_E4M3", STI_TENSOR_OTHER, 1},
    {"F8_E5M2", STI_TENSOR_OTHER, 1},
};

static stint_status no_memory(const sti_tensor_file *f)
{
    return sti_fail_context(STINT_E_MEMORY, "%s", f->path);
}

static stint_status read_texts(sti_tensor_file *f, const json_t *table)
{
    if (!json_is_object(table))
        return sti_fail(STINT_E_INPUT, "%s: __metadata__ is no object of texts",
                        f->path);
    size_t n = json_object_size(table);
    f->texts = sti_arena_alloc(f->arena, (n + 1) * sizeof *f->texts);
    if (!f->texts)
        return no_memory(f);
    const char *key;
    json_t *value;
    json_object_foreach((json_t *)(uintptr_t)table, key, value)
    {
        if (!json_is_string(value))
            return sti_fail(STINT_E_INPUT, "%s: __metadata__ '%.80s' is not a text",
                            f->path, key);
        sti_tensor_text *t = &f->texts[f->text_count++];
        t->key = sti_arena_strdup(f->arena, key);
        t->text = sti_arena_strdup(f->arena, json_string_value(value));
        if (!t->key || !t->text)
            return no_memory(f);
    }
    return STINT_OK;
}

/* Elements times size, or -1 when it does not fit. */
static int64_t tensor_bytes(const sti_tensor_row *row, int each_bytes)
{
    int64_t bytes = each_bytes;
    for (int i = 0; i < row->rank; i++)
        if (row->dim[i] == 0)
            return 0;
    for (int i = 0; i < row->rank; i++) {
        if (row->dim[i] > INT64_MAX / bytes)
            return -1;
        bytes *= row->dim[i];
    }
    return bytes;
}

static stint_status read_shape(sti_tensor_file *f, const json_t *shape,
                               sti_tensor_row *row)
{
    if (!json_is_array(shape) || json_array_size(shape) > STI_TENSOR_MAX_RANK)
        return sti_fail(STINT_E_INPUT,
                        "%s: '%.80s' has no shape of at most %d dimensions", f->path,
                        row->name, STI_TENSOR_MAX_RANK);
    row->rank = (int)json_array_size(shape);
    for (int i = 0; i < row->rank; i++) {
        const json_t *dim = json_array_get(shape, (size_t)i);
        if (!json_is_integer(dim) || json_integer_value(dim) < 0)
            return sti_fail(STINT_E_INPUT,
                            "%s: '%.80s' has a dimension that is no count", f->path,
                            row->name);
        row->dim[i] = json_integer_value(dim);
    }
    return STINT_OK;
}

static stint_status read_offsets(sti_tensor_file *f, const json_t *offsets,
                                 int each_bytes, sti_tensor_row *row)
{
    const json_t *begin = json_array_get(offsets, 0), *end = json_array_get(offsets, 1);
    if (json_array_size(offsets) != 2 || !json_is_integer(begin) ||
        !json_is_integer(end))
        return sti_fail(STINT_E_INPUT, "%s: '%.80s' has no data_offsets [begin, end]",
                        f->path, row->name);
    int64_t from = json_integer_value(begin), to = json_integer_value(end);
    if (from < 0 || to < from || to > f->data_bytes)
        return sti_fail(STINT_E_INPUT,
                        "%s: '%.80s' lies at [%" PRId64 ", %" PRId64
                        "), but there are %" PRId64
                        " bytes of tensors; the file may be cut off",
                        f->path, row->name, from, to, f->data_bytes);
    int64_t want = tensor_bytes(row, each_bytes);
    if (want != to - from)
        return sti_fail(STINT_E_INPUT,
                        "%s: '%.80s' has %" PRId64
                        " bytes, but not as its type and shape want",
                        f->path, row->name, to - from);
    row->bytes = (size_t)want;
    row->offset = f->data_offset + from;
    return STINT_OK;
}

static stint_status read_row(sti_tensor_file *f, const char *name, const json_t *entry,
                             sti_tensor_row *row)
{
    row->name = sti_arena_strdup(f->arena, name);
    if (!row->name)
        return no_memory(f);
    if (!json_is_object(entry))
        return sti_fail(STINT_E_INPUT, "%s: '%.80s' is no object", f->path, name);
    const char *dtype = json_string_value(json_object_get(entry, "dtype"));
    size_t t = 0, n = sizeof types / sizeof types[0];
    while (t < n && dtype && strcmp(types[t].name, dtype) != 0)
        t++;
    if (!dtype || t == n)
        return sti_fail(STINT_E_INPUT, "%s: '%.80s' is of unknown type '%.20s'",
                        f->path, name, dtype ? dtype : "");
    row->type = types[t].type;
    stint_status st = read_shape(f, json_object_get(entry, "shape"), row);
    if (st == STINT_OK)
        st = read_offsets(f, json_object_get(entry, "data_offsets"), types[t].bytes,
                          row);
    return st;
}

static int by_offset(const void *a, const void *b)
{
    const sti_tensor_row *x = a, *y = b;
    if (x->offset != y->offset)
        return x->offset < y->offset ? -1 : 1;
    /* An empty tensor goes before the one that begins where it lies. */
    if (x->bytes != y->bytes)
        return x->bytes < y->bytes ? -1 : 1;
    return strcmp(x->name, y->name);
}

static int by_name(const void *a, const void *b)
{
    const sti_tensor_row *const *x = a, *const *y = b;
    return strcmp((*x)->name, (*y)->name);
}

/* Tensors must follow one another from the first byte to the last. */
static stint_status check_layout(const sti_tensor_file *f)
{
    int64_t at = f->data_offset;
    for (int64_t i = 0; i < f->count; i++) {
        const sti_tensor_row *row = &f->rows[i];
        if (row->offset != at)
            return sti_fail(STINT_E_INPUT, "%s: '%.80s' %s", f->path, row->name,
                            row->offset < at ? "overlaps the tensor before it"
                                             : "follows a gap");
        at += (int64_t)row->bytes;
    }
    if (at != f->data_offset + f->data_bytes)
        return sti_fail(STINT_E_INPUT,
                        "%s: %" PRId64 " bytes at the end belong to no tensor", f->path,
                        f->data_offset + f->data_bytes - at);
    return STINT_OK;
}

static void sort_rows(sti_tensor_file *f)
{
    qsort(f->rows, (size_t)f->count, sizeof *f->rows, by_offset);
    for (int64_t i = 0; i < f->count; i++)
        f->names[i] = &f->rows[i];
    qsort(f->names, (size_t)f->count, sizeof f->names[0], by_name);
}

static stint_status read_rows(sti_tensor_file *f, const json_t *header)
{
    size_t n = json_object_size(header);
    f->rows = sti_arena_alloc(f->arena, (n + 1) * sizeof *f->rows);
    f->names = sti_arena_alloc(f->arena, (n + 1) * sizeof(sti_tensor_row *));
    if (!f->rows || !f->names)
        return no_memory(f);
    const char *name;
    json_t *entry;
    json_object_foreach((json_t *)(uintptr_t)header, name, entry)
    {
        stint_status st = strcmp(name, "__metadata__") == 0
                              ? read_texts(f, entry)
                              : read_row(f, name, entry, &f->rows[f->count++]);
        if (st != STINT_OK)
            return st;
    }
    sort_rows(f);
    return check_layout(f);
}

/* Tensors that the file's text says it has in blocks. */
static stint_status take_packed(sti_tensor_file *f)
{
    const char *text = sti_tensor_file_text(f, STI_META_PACKED);
    sti_packed_line line;
    char name[256];
    while (text && *text) {
        if (!sti_packed_line_read(&text, &line) || line.name_bytes >= sizeof name)
            return sti_fail(STINT_E_INPUT,
                            "%s: a line of '" STI_META_PACKED
                            "' in its metadata is none; take another copy",
                            f->path);
        memcpy(name, line.name, line.name_bytes);
        name[line.name_bytes] = '\0';
        const sti_tensor_row *row = sti_tensor_file_find(f, name);
        if (!row || !sti_packed_take(&line, &f->rows[row - f->rows]))
            return sti_fail(STINT_E_INPUT,
                            "%s: '%.80s' is not in blocks, as '" STI_META_PACKED
                            "' in its metadata says; take another copy",
                            f->path, name);
    }
    return STINT_OK;
}

static stint_status parse_header(sti_tensor_file *f, const char *text, size_t n_bytes)
{
    json_error_t error;
    if (n_bytes == 0 || text[0] != '{')
        return sti_fail(STINT_E_INPUT,
                        "%s: no safetensors file: its header is no JSON "
                        "object",
                        f->path);
    json_t *header = json_loadb(text, n_bytes, JSON_REJECT_DUPLICATES, &error);
    if (!header)
        return sti_fail(STINT_E_INPUT,
                        "%s: its header is damaged: %s at byte %d; take another copy",
                        f->path, error.text, error.position + 8);
    stint_status st = read_rows(f, header);
    json_decref(header);
    return st == STINT_OK ? take_packed(f) : st;
}

static uint64_t from_little_endian(const uint8_t bytes[8])
{
    uint64_t value = 0;
    for (int i = 7; i >= 0; i--)
        value = value << 8 | bytes[i];
    return value;
}

static stint_status read_header(sti_tensor_file *f)
{
    struct stat info;
    uint8_t prefix[8];
    if (fstat(f->fd, &info) != 0)
        return sti_fail_errno("%s: cannot be read", f->path);
    if (info.st_size < 8)
        return sti_fail(STINT_E_INPUT,
                        "%s: no safetensors file: %" PRId64 " bytes are too few",
                        f->path, (int64_t)info.st_size);
    stint_status st = sti_read_at(f->fd, f->path, 0, prefix, sizeof prefix);
    if (st != STINT_OK)
        return st;
    uint64_t length = from_little_endian(prefix);
    if (memcmp(prefix, "GGUF", 4) == 0)
        return sti_fail(STINT_E_INPUT,
                        "%s: a GGUF file, where a model file is wanted; `stint import "
                        "gguf` makes one of it",
                        f->path);
    if (length > (uint64_t)HEADER_MAX_BYTES || length > (uint64_t)info.st_size - 8)
        return sti_fail(STINT_E_INPUT,
                        "%s: no safetensors file, or cut off: a header of %" PRIu64
                        " bytes in a file of %" PRId64,
                        f->path, length, (int64_t)info.st_size);
    f->data_offset = 8 + (int64_t)length;
    f->data_bytes = (int64_t)info.st_size - f->data_offset;
    char *text = sti_alloc((size_t)length + 1, "safetensors header");
    if (!text)
        return no_memory(f);
    st = sti_read_at(f->fd, f->path, 8, text, (size_t)length);
    if (st == STINT_OK)
        st = parse_header(f, text, (size_t)length);
    sti_free(text);
    return st;
}

/* A folder that was given for a model, as any command takes one, has its own words. */
static stint_status cannot_open(sti_arena *arena, const char *path, stint_status st)
{
    const char *folder = sti_path_folder(arena, path);
    if (access(path, F_OK) != 0 && errno == ENOENT && folder &&
        sti_path_is_dir(folder) &&
        strcmp(sti_path_name(path), "model.safetensors") == 0) {
        const char *kept = sti_path_join(arena, folder, "checkpoints");
        if (kept && sti_path_is_dir(kept))
            return sti_fail(STINT_E_INPUT,
                            "%s holds no model.safetensors yet, only checkpoints of a "
                            "run; `stint train` with --resume finishes it",
                            folder);
        return sti_fail(STINT_E_INPUT,
                        "%s holds no model.safetensors; give a model file, or the "
                        "folder of a finished run",
                        folder);
    }
    return st;
}

stint_status sti_tensor_file_open(const char *path, sti_tensor_file **file_out)
{
    sti_arena *arena = sti_arena_create("safetensors");
    if (!arena)
        return STINT_E_MEMORY;
    stint_status st = STINT_E_MEMORY;
    sti_tensor_file *f = sti_arena_alloc(arena, sizeof *f);
    if (!f) {
        sti_arena_destroy(arena);
        return st;
    }
    f->arena = arena;
    f->fd = -1;
    f->path = sti_arena_strdup(arena, path);
    if (f->path) {
        st = sti_file_open(path, &f->fd);
        st = st == STINT_OK ? read_header(f) : cannot_open(arena, path, st);
    }
    if (st != STINT_OK) {
        sti_tensor_file_close(f);
        return st;
    }
    *file_out = f;
    return STINT_OK;
}

/* Rows and texts with names of their own; offsets count from the first tensor. */
static stint_status copy_rows(sti_tensor_file *f, const sti_tensor_row *rows,
                              const sti_tensor_text *texts)
{
    int64_t offset = 0;
    f->rows = sti_arena_alloc(f->arena, (size_t)(f->count + 1) * sizeof *f->rows);
    f->names =
        sti_arena_alloc(f->arena, (size_t)(f->count + 1) * sizeof(sti_tensor_row *));
    f->texts =
        sti_arena_alloc(f->arena, (size_t)(f->text_count + 1) * sizeof *f->texts);
    if (!f->rows || !f->names || !f->texts)
        return no_memory(f);
    for (int64_t i = 0; i < f->count; i++) {
        f->rows[i] = rows[i];
        f->rows[i].offset = offset;
        offset += (int64_t)rows[i].bytes;
        if (!(f->rows[i].name = sti_arena_strdup(f->arena, rows[i].name)))
            return no_memory(f);
    }
    for (int64_t i = 0; i < f->text_count; i++) {
        f->texts[i].key = sti_arena_strdup(f->arena, texts[i].key);
        f->texts[i].text = sti_arena_strdup(f->arena, texts[i].text);
        if (!f->texts[i].key || !f->texts[i].text)
            return no_memory(f);
    }
    sort_rows(f);
    for (int64_t i = 1; i < f->count; i++)
        if (strcmp(f->names[i - 1]->name, f->names[i]->name) == 0)
            return sti_fail(STINT_E_INPUT, "%s: '%.80s' is there twice", f->path,
                            f->names[i]->name);
    return STINT_OK;
}

stint_status sti_tensor_file_from_memory(const char *path, const sti_tensor_row *rows,
                                         int64_t count, const sti_tensor_text *texts,
                                         int64_t text_count, void *take_data,
                                         sti_tensor_file **file_out)
{
    sti_arena *arena = sti_arena_create("tensors in memory");
    sti_tensor_file *f = arena ? sti_arena_alloc(arena, sizeof *f) : NULL;
    stint_status st = STINT_E_MEMORY;
    if (f) {
        *f = (sti_tensor_file){.arena = arena,
                               .fd = -1,
                               .path = sti_arena_strdup(arena, path),
                               .count = count,
                               .text_count = text_count};
        st = f->path ? copy_rows(f, rows, texts) : STINT_E_MEMORY;
    }
    if (st != STINT_OK) {
        sti_arena_destroy(arena);
        return st;
    }
    f->memory = take_data;
    *file_out = f;
    return STINT_OK;
}

void sti_tensor_file_close(sti_tensor_file *f)
{
    if (!f)
        return;
    if (f->fd >= 0)
        close(f->fd);
    sti_free(f->memory);
    sti_arena_destroy(f->arena);
}

const char *sti_tensor_file_path(const sti_tensor_file *f)
{
    return f->path;
}

stint_status sti_tensor_file_map(const sti_tensor_file *f, sti_file_map **map_out)
{
    return sti_file_map_create(f->fd, f->path, (size_t)(f->data_offset + f->data_bytes),
                               map_out);
}

int64_t sti_tensor_file_count(const sti_tensor_file *f)
{
    return f->count;
}

const sti_tensor_row *sti_tensor_file_row(const sti_tensor_file *f, int64_t i)
{
    return &f->rows[i];
}

const sti_tensor_row *sti_tensor_file_find(const sti_tensor_file *f, const char *name)
{
    int64_t low = 0, high = f->count;
    while (low < high) {
        int64_t mid = low + (high - low) / 2;
        int order = strcmp(f->names[mid]->name, name);
        if (order == 0)
            return f->names[mid];
        if (order < 0)
            low = mid + 1;
        else
            high = mid;
    }
    return NULL;
}

const char *sti_tensor_file_text(const sti_tensor_file *f, const char *key)
{
    for (int64_t i = 0; i < f->text_count; i++)
        if (strcmp(f->texts[i].key, key) == 0)
            return f->texts[i].text;
    return NULL;
}

const sti_tensor_text *sti_tensor_file_texts(const sti_tensor_file *f,
                                             int64_t *count_out)
{
    *count_out = f->text_count;
    return f->texts;
}

stint_status sti_tensor_file_read_part(const sti_tensor_file *f,
                                       const sti_tensor_row *row, int64_t first,
                                       size_t n_bytes, void *out)
{
    if (!row->data)
        return sti_read_at(f->fd, f->path, row->offset + first, out, n_bytes);
    memcpy(out, (const char *)row->data + first, n_bytes);
    return STINT_OK;
}

stint_status sti_tensor_file_read(const sti_tensor_file *f, const sti_tensor_row *row,
                                  void *data_out)
{
    if (row->packed)
        return sti_packed_read(f->fd, f->path, row, 0, row->dim[0] * row->dim[1],
                               data_out);
    return sti_tensor_file_read_part(f, row, 0, row->bytes, data_out);
}

stint_status sti_tensor_file_read_f32(const sti_tensor_file *f,
                                      const sti_tensor_row *row, int64_t first,
                                      int64_t count, float *out)
{
    if (row->packed)
        return sti_packed_read(f->fd, f->path, row, first, count, out);
    if (row->type == STI_TENSOR_F32)
        return sti_tensor_file_read_part(f, row, first * 4, (size_t)count * 4, out);
    if (row->type != STI_TENSOR_F16 && row->type != STI_TENSOR_BF16)
        return sti_fail(STINT_E_UNSUPPORTED,
                        "%s: '%.80s' holds neither F32, F16 nor BF16; save it as one "
                        "of these",
                        f->path, row->name);
    /* Short numbers wait in the second half of `out`, which they leave one by one. */
    const char *from = (const char *)out + 2 * count;
    stint_status st = sti_tensor_file_read_part(f, row, first * 2, (size_t)count * 2,
                                                (char *)out + 2 * count);
    for (int64_t i = 0; i < count && st == STINT_OK; i++) {
        uint16_t bits;
        memcpy(&bits, from + 2 * i, sizeof bits);
        out[i] = row->type == STI_TENSOR_F16 ? sti_float_of_half(bits)
                                             : sti_float_of_bfloat(bits);
    }
    return st;
}

stint_status sti_tensor_file_read_finite(const sti_tensor_file *f,
                                         const sti_tensor_row *row, int64_t first,
                                         int64_t count, float *out)
{
    stint_status st = sti_tensor_file_read_f32(f, row, first, count, out);
    const int64_t bad = st == STINT_OK ? sti_first_not_finite(out, count) : -1;
    if (bad < 0)
        return st;
    return sti_fail(STINT_E_INPUT,
                    "%s: element %" PRId64 " of '%.80s' is %s, no finite number, so "
                    "that nothing can be computed with it; take another copy",
                    f->path, first + bad, row->name,
                    isnan(out[bad]) ? "NaN" : "infinite");
}

/* Numbers that are read together: what lies in blocks down the columns comes 32 rows at
 * a time. */
static int64_t piece_of(const sti_tensor_row *row)
{
    const int64_t rows = row->packed_down ? 32 * row->dim[1] : 0;
    return rows > 4096 ? rows : 4096;
}

stint_status sti_tensor_file_add_finite_sha256(const sti_tensor_file *f,
                                               const sti_tensor_row *row,
                                               sti_sha256 *state)
{
    const int64_t count = (int64_t)(row->bytes / sizeof(float)), most = piece_of(row);
    float *piece = sti_alloc_array(count < most ? count + 1 : most, sizeof *piece,
                                   "tensor hashed");
    stint_status st = piece ? STINT_OK : STINT_E_MEMORY;
    for (int64_t done = 0, n; done < count && st == STINT_OK; done += n) {
        n = count - done < most ? count - done : most;
        st = sti_tensor_file_read_finite(f, row, done, n, piece);
        if (st == STINT_OK)
            sti_sha256_add(state, piece, (size_t)n * sizeof *piece);
    }
    sti_free(piece);
    return st;
}

stint_status sti_tensor_file_add_sha256(const sti_tensor_file *f,
                                        const sti_tensor_row *row, sti_sha256 *state)
{
    char piece[16384];
    if (row->packed)
        return sti_tensor_file_add_finite_sha256(f, row, state);
    for (size_t done = 0; done < row->bytes;) {
        size_t n = row->bytes - done < sizeof piece ? row->bytes - done : sizeof piece;
        stint_status st = sti_tensor_file_read_part(f, row, (int64_t)done, n, piece);
        if (st != STINT_OK)
            return st;
        sti_sha256_add(state, piece, n);
        done += n;
    }
    return STINT_OK;
}
