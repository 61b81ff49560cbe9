/* Reading compact model files: to the tensors and texts of the model file that they
 * stand for. */
#include <inttypes.h>
#include <jansson.h>
#include <string.h>
#include <zlib.h>

#include "base/fail.h"
#include "base/units.h"
#include "codec/weights.h"
#include "store/compact_file.h"
#include "store/compact_priv.h"
#include "store/model_meta.h"
#include "store/recipe_cut.h"

#define HEAD_MAX_BYTES ((size_t)64 << 20)
#define COUNT_MAX      ((int64_t)1 << 28) /* numbers of a model: 1 GiB of them */
#define TENSORS_MAX    100000

typedef struct compact_reader {
    const sti_tensor_file *file;
    sti_arena *arena;
    json_t *head;
    sti_tensor_row *rows; /* [count] */
    sti_weight_form *forms;
    int64_t count, numbers; /* of all tensors */
    sti_tensor_text *texts;
    int64_t text_count;
    float *data; /* [numbers] */
} compact_reader;

static stint_status damaged(const compact_reader *r, const char *what)
{
    return sti_fail(STINT_E_INPUT,
                    "%s: a compact model, but damaged: %s; take another copy",
                    sti_tensor_file_path(r->file), what);
}

static const sti_tensor_row *bytes_of(const compact_reader *r, const char *name)
{
    const sti_tensor_row *row = sti_tensor_file_find(r->file, name);
    return row && row->type == STI_TENSOR_U8 && row->rank == 1 ? row : NULL;
}

static stint_status read_bytes(const compact_reader *r, const char *name,
                               uint8_t **bytes_out, size_t *n_bytes_out)
{
    const sti_tensor_row *row = bytes_of(r, name);
    if (!row)
        return damaged(r, "it lacks its head or its weights");
    uint8_t *bytes = sti_alloc(row->bytes, "compact model");
    stint_status st =
        bytes ? sti_tensor_file_read(r->file, row, bytes) : STINT_E_MEMORY;
    if (st != STINT_OK) {
        sti_free(bytes);
        return st;
    }
    *bytes_out = bytes;
    *n_bytes_out = row->bytes;
    return STINT_OK;
}

/* ---- the head ---- */

static stint_status inflate_head(compact_reader *r)
{
    uint8_t *packed = NULL;
    size_t n_bytes = 0, length = 0;
    char *text = NULL;
    stint_status st;
    STI_TRY(read_bytes(r, STI_COMPACT_HEAD, &packed, &n_bytes));
    for (int i = 0; i < 4 && n_bytes >= 4; i++)
        length |= (size_t)packed[i] << 8 * i;
    if (n_bytes < 4 || length == 0 || length > HEAD_MAX_BYTES) {
        st = damaged(r, "the length of its head is impossible");
        goto out;
    }
    text = sti_alloc(length, "compact head");
    STI_TRY(text ? STINT_OK : STINT_E_MEMORY);
    uLongf got = (uLongf)length;
    if (uncompress((Bytef *)text, &got, packed + 4, (uLong)(n_bytes - 4)) != Z_OK ||
        got != length) {
        st = damaged(r, "its head cannot be inflated");
        goto out;
    }
    r->head = json_loadb(text, length, JSON_REJECT_DUPLICATES, NULL);
    st = json_is_object(r->head) ? STINT_OK : damaged(r, "its head is no object");
out:
    sti_free(packed);
    sti_free(text);
    return st;
}

static bool flag_of(const json_t *object, const char *key)
{
    return json_is_true(json_object_get(object, key));
}

static int64_t int_of(const json_t *object, const char *key)
{
    return json_integer_value(json_object_get(object, key)); /* 0: not there */
}

static bool read_patterns(const json_t *list, sti_weight_form *f)
{
    const size_t count = json_array_size(list);
    if (count > STI_WEIGHT_PATTERNS_MAX)
        return false;
    f->patterns = (int)count;
    for (size_t i = 0; i < count; i++) {
        const json_int_t taps = json_integer_value(json_array_get(list, i));
        f->pattern[i] = (uint16_t)(taps > 0 && taps < 1 << 9 ? taps : 0);
    }
    return true;
}

static bool read_number(const json_t *object, sti_weight_form *f)
{
    const char *word = json_string_value(json_object_get(object, "number"));
    for (int i = 0; word && i <= STI_WEIGHT_INT; i++)
        if (strcmp(word, sti_compact_numbers[i]) == 0) {
            f->number = (sti_weight_number)i;
            f->bits = (int)(int_of(object, "bits") & 0xff);
            return true;
        }
    return !word;
}

static bool read_form(const json_t *object, const sti_tensor_row *row,
                      sti_weight_form *f)
{
    *f = sti_weight_form_plain(row->rank, row->dim);
    f->elements = flag_of(object, "elements");
    f->block_rows = int_of(object, "block_rows");
    f->block_columns = int_of(object, "block_columns");
    f->whole_columns = flag_of(object, "columns");
    f->kernels = flag_of(object, "kernels");
    f->rank = int_of(object, "rank");
    return json_is_object(object) &&
           read_patterns(json_object_get(object, "patterns"), f) &&
           read_number(object, f) && sti_weight_form_is_sound(f);
}

/* Elements of a shape, -1: more than a model may have. */
static int64_t read_shape(const json_t *list, sti_tensor_row *row)
{
    int64_t count = 1;
    if (!json_is_array(list) || json_array_size(list) > STI_TENSOR_MAX_RANK)
        return -1;
    row->rank = (int)json_array_size(list);
    for (int i = 0; i < row->rank; i++) {
        const json_int_t dim = json_integer_value(json_array_get(list, (size_t)i));
        if (dim < 1 || dim > COUNT_MAX || count > COUNT_MAX / dim)
            return -1;
        row->dim[i] = dim;
        count *= dim;
    }
    return count;
}

static stint_status read_tensor(compact_reader *r, const json_t *entry, int64_t i)
{
    sti_tensor_row *row = &r->rows[i];
    const char *name = json_string_value(json_object_get(entry, "name"));
    const int64_t count = read_shape(json_object_get(entry, "shape"), row);
    if (!name || count < 0 || r->numbers > COUNT_MAX - count ||
        !read_form(json_object_get(entry, "form"), row, &r->forms[i]))
        return damaged(r, "a tensor in its head is impossible");
    row->name = sti_arena_strdup(r->arena, name);
    row->type = STI_TENSOR_F32;
    row->bytes = (size_t)count * sizeof(float);
    row->offset = r->numbers; /* a number, until there is memory */
    row->planar = flag_of(entry, "planar");
    row->thin = r->forms[i].whole_columns;
    r->numbers += (count + 15) / 16 * 16; /* each begins at 64 bytes */
    return row->name ? STINT_OK : STINT_E_MEMORY;
}

static stint_status read_tensors(compact_reader *r)
{
    const json_t *list = json_object_get(r->head, "tensors");
    const size_t count = json_array_size(list);
    if (count == 0 || count > TENSORS_MAX)
        return damaged(r, "its head names no tensors");
    r->rows = sti_arena_alloc(r->arena, count * sizeof *r->rows);
    r->forms = sti_arena_alloc(r->arena, count * sizeof *r->forms);
    if (!r->rows || !r->forms)
        return STINT_E_MEMORY;
    stint_status st = STINT_OK;
    for (size_t i = 0; i < count && st == STINT_OK; i++)
        st = read_tensor(r, json_array_get(list, i), r->count++);
    return st;
}

static stint_status join_recipe(compact_reader *r, const char **text)
{
    char words[1024];
    sti_text whole = {0};
    stint_status st = sti_recipe_join(*text, sti_tensor_file_path(r->file), &whole);
    if (st == STINT_E_USAGE) { /* the file is at fault, not who gave it */
        snprintf(words, sizeof words, "%s", stint_last_error());
        st = sti_fail(STINT_E_INPUT, "the recipe in the model cannot be read: %s",
                      words);
    }
    if (st == STINT_OK) {
        *text = sti_arena_strdup(r->arena, whole.data ? whole.data : "");
        st = *text ? STINT_OK : STINT_E_MEMORY;
    }
    sti_text_fini(&whole);
    return st;
}

static stint_status read_texts(compact_reader *r)
{
    json_t *table = json_object_get(r->head, "texts");
    const char *key;
    json_t *value;
    stint_status st = STINT_OK;
    r->texts =
        sti_arena_alloc(r->arena, (json_object_size(table) + 1) * sizeof *r->texts);
    if (!r->texts)
        return STINT_E_MEMORY;
    json_object_foreach(table, key, value)
    {
        sti_tensor_text *t = &r->texts[r->text_count++];
        if (!json_is_string(value))
            return damaged(r, "a text in its head is none");
        t->key = sti_arena_strdup(r->arena, key);
        t->text = sti_arena_strdup(r->arena, json_string_value(value));
        if (!t->key || !t->text)
            return STINT_E_MEMORY;
        if (strcmp(key, STI_META_RECIPE) == 0 && flag_of(r->head, "recipe_cut"))
            st = join_recipe(r, &t->text);
        if (st != STINT_OK)
            return st;
    }
    return st;
}

/* ---- the weights ---- */

static stint_status unpack(compact_reader *r, const uint8_t *bytes, size_t n_bytes)
{
    sti_weights_reader *reader = NULL;
    stint_status st = sti_weights_reader_create(bytes, n_bytes, &reader);
    for (int64_t i = 0; i < r->count && st == STINT_OK; i++) {
        float *x = r->data + r->rows[i].offset;
        st = sti_weights_reader_next(reader, &r->forms[i], x);
        r->rows[i].data = x;
    }
    if (st == STINT_OK)
        st = sti_weights_reader_end(reader);
    sti_weights_reader_destroy(reader);
    return st == STINT_OK ? st
                          : sti_fail_context(st, "%s", sti_tensor_file_path(r->file));
}

static stint_status read_weights(compact_reader *r)
{
    uint8_t *bytes = NULL;
    size_t n_bytes = 0;
    stint_status st = read_bytes(r, STI_COMPACT_WEIGHTS, &bytes, &n_bytes);
    if (st != STINT_OK)
        return st;
    if ((int64_t)sti_crc32c(0, bytes, n_bytes) != int_of(r->head, "crc32c")) {
        st = damaged(r, "its weights have another checksum");
    } else {
        r->data = sti_alloc_array(r->numbers, sizeof *r->data, "weights");
        st = r->data ? unpack(r, bytes, n_bytes) : STINT_E_MEMORY;
    }
    sti_free(bytes);
    return st;
}

/* ---- the whole ---- */

static stint_status check_version(const sti_tensor_file *file)
{
    int64_t version = 0;
    const char *text = sti_tensor_file_text(file, STI_COMPACT_KEY);
    if (sti_parse_int(text, &version) != STINT_OK || version < 1)
        return sti_fail(STINT_E_INPUT,
                        "%s: %s is '%.40s', no version; take another copy",
                        sti_tensor_file_path(file), STI_COMPACT_KEY, text);
    if (version > STI_COMPACT_VERSION)
        return sti_fail(STINT_E_UNSUPPORTED,
                        "%s: a compact model of version %" PRId64
                        ", this build reads up to %d; take a newer Stint, or have the "
                        "model written by `stint export dense` there",
                        sti_tensor_file_path(file), version, STI_COMPACT_VERSION);
    return STINT_OK;
}

static stint_status expand(compact_reader *r, sti_tensor_file **file_out)
{
    stint_status st;
    STI_TRY(check_version(r->file));
    STI_TRY(inflate_head(r));
    STI_TRY(read_tensors(r));
    STI_TRY(read_texts(r));
    STI_TRY(read_weights(r));
    STI_TRY(sti_tensor_file_from_memory(sti_tensor_file_path(r->file), r->rows,
                                        r->count, r->texts, r->text_count, r->data,
                                        file_out));
    r->data = NULL; /* the file's now */
out:
    return st;
}

stint_status sti_model_tensors_open(const char *path, sti_tensor_file **file_out)
{
    sti_tensor_file *file = NULL;
    compact_reader r = {0};
    stint_status st = sti_tensor_file_open(path, &file);
    if (st != STINT_OK)
        return st;
    if (!sti_tensor_file_text(file, STI_COMPACT_KEY)) {
        *file_out = file;
        return STINT_OK;
    }
    r.file = file;
    r.arena = sti_arena_create("compact model");
    st = r.arena ? expand(&r, file_out) : STINT_E_MEMORY;
    json_decref(r.head);
    sti_free(r.data);
    sti_arena_destroy(r.arena);
    sti_tensor_file_close(file);
    return st;
}
