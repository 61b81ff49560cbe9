/* Writing compact model files; reading is in compact_read.c. */
#include "store/compact_file.h"

#include <inttypes.h>
#include <string.h>
#include <zlib.h>

#include "base/fail.h"
#include "base/json.h"
#include "codec/weights.h"
#include "store/compact_priv.h"
#include "store/model_meta.h"
#include "store/recipe_cut.h"

const char *const sti_compact_numbers[] = {"f32", "f16", "int"};

static void add_form(sti_json *j, const sti_weight_form *f)
{
    sti_json_begin_object(j, "form");
    if (f->elements)
        sti_json_bool(j, "elements", true);
    if (f->block_rows > 0) {
        sti_json_int(j, "block_rows", f->block_rows);
        sti_json_int(j, "block_columns", f->block_columns);
    }
    if (f->whole_columns)
        sti_json_bool(j, "columns", true);
    if (f->kernels)
        sti_json_bool(j, "kernels", true);
    if (f->patterns > 0) {
        sti_json_begin_array(j, "patterns");
        for (int i = 0; i < f->patterns; i++)
            sti_json_int(j, NULL, f->pattern[i]);
        sti_json_end_array(j);
    }
    if (f->number != STI_WEIGHT_F32)
        sti_json_text(j, "number", sti_compact_numbers[f->number]);
    if (f->number == STI_WEIGHT_INT)
        sti_json_int(j, "bits", f->bits);
    if (f->rank > 0)
        sti_json_int(j, "rank", f->rank);
    sti_json_end_object(j);
}

static void add_tensor(sti_json *j, const sti_compact_tensor *t)
{
    sti_json_begin_object(j, NULL);
    sti_json_text(j, "name", t->name);
    sti_json_begin_array(j, "shape");
    for (int i = 0; i < t->rank; i++)
        sti_json_int(j, NULL, t->dim[i]);
    sti_json_end_array(j);
    add_form(j, &t->weight.form);
    if (t->planar)
        sti_json_bool(j, "planar", true);
    sti_json_end_object(j);
}

static stint_status add_texts(sti_json *j, const sti_tensor_text *texts, int64_t count)
{
    sti_text recipe = {0};
    stint_status st = STINT_OK;
    bool cut = false;
    sti_json_begin_object(j, "texts");
    for (int64_t i = 0; i < count && st == STINT_OK; i++) {
        const char *text = texts[i].text;
        if (strcmp(texts[i].key, STI_META_RECIPE) == 0) {
            st = sti_recipe_cut(text, &recipe, &cut);
            text = recipe.data ? recipe.data : "";
        }
        sti_json_text(j, texts[i].key, text);
    }
    sti_json_end_object(j);
    sti_json_bool(j, "recipe_cut", cut);
    sti_text_fini(&recipe);
    return st;
}

static stint_status make_head(const sti_tensor_text *texts, int64_t text_count,
                              const sti_compact_tensor *tensors, int64_t count,
                              uint32_t crc, sti_text *head)
{
    sti_json j = {.out = head};
    sti_json_begin_object(&j, NULL);
    stint_status st = add_texts(&j, texts, text_count);
    if (st != STINT_OK)
        return st;
    sti_json_begin_array(&j, "tensors");
    for (int64_t i = 0; i < count; i++)
        add_tensor(&j, &tensors[i]);
    sti_json_end_array(&j);
    sti_json_int(&j, "crc32c", crc);
    sti_json_end_object(&j);
    return head->failed ? STINT_E_MEMORY : STINT_OK;
}

/* The length of the text in 4 bytes, little-endian, then zlib's stream. */
static stint_status deflate_head(const sti_text *head, uint8_t **bytes_out,
                                 size_t *n_bytes_out)
{
    uLongf room = compressBound((uLong)head->length);
    uint8_t *bytes = sti_alloc(room + 4, "compact head");
    if (!bytes)
        return STINT_E_MEMORY;
    for (int i = 0; i < 4; i++)
        bytes[i] = (uint8_t)(head->length >> 8 * i);
    if (compress2(bytes + 4, &room, (const Bytef *)head->data, (uLong)head->length,
                  Z_BEST_COMPRESSION) != Z_OK) {
        sti_free(bytes);
        return sti_fail(STINT_E_MEMORY, "out of memory to deflate a model's texts");
    }
    *bytes_out = bytes;
    *n_bytes_out = room + 4;
    return STINT_OK;
}

static stint_status add_weights(sti_weights_writer *writer,
                                const sti_compact_tensor *tensors, int64_t count,
                                double *bits)
{
    stint_status st = STINT_OK;
    for (int64_t i = 0; i < count && st == STINT_OK; i++)
        st = sti_weights_writer_add(writer, tensors[i].name, &tensors[i].weight,
                                    bits ? &bits[i] : NULL);
    return st;
}

/* Columns in which anything is left; what is kept in all. */
static int64_t live_columns(const sti_weight *w, int64_t *kept_out)
{
    int64_t live = 0;
    *kept_out = 0;
    for (int64_t c = 0; c < w->form.columns; c++) {
        int64_t kept = 0;
        for (int64_t r = 0; r < w->form.rows; r++)
            kept += w->x[r * w->form.columns + c] != 0;
        live += kept > 0;
        *kept_out += kept;
    }
    return live;
}

/* Convolutions of 64 channels and filters and more of which a third is left or less:
 * dense ones of 3 x 3 take Winograd's 16 products for 36 and near the machine's peak,
 * and what is copied for narrow ones costs more than they. Empty filters do not count,
 * as they are cut out. Dense layers keep a fifth if with one image they wait for memory
 * (16 MiB of weights and more), a twentieth from 4 MiB on; smaller ones lie in a cache,
 * where with one image the dense kernel is as fast at any share. First layers are few
 * products, and by them what follows begins in the planar layout. */
bool sti_compact_planar_pays(const sti_compact_tensor *t)
{
    enum { WIDE = 64, LARGE = 1 << 20, LARGEST = 1 << 22, COLOURS = 4 };
    int64_t kept;
    if (t->rank != 4 && t->rank != 2)
        return false;
    const int64_t live = live_columns(&t->weight, &kept);
    const int64_t count = t->weight.form.rows * live;
    if (t->rank == 2)
        return (count >= LARGE && 20 * kept <= count) ||
               (count >= LARGEST && 5 * kept <= count);
    return live >= WIDE &&
           (t->dim[2] <= COLOURS || (t->dim[2] >= WIDE && 3 * kept <= count));
}

void sti_compact_choose_planar(sti_compact_tensor *tensors, int64_t count)
{
    bool any = false;
    for (int64_t i = 0; i < count; i++) {
        tensors[i].planar = sti_compact_planar_pays(&tensors[i]);
        any |= tensors[i].planar && (tensors[i].rank == 2 || tensors[i].dim[2] > 4);
    }
    for (int64_t i = 0; i < count && !any; i++)
        tensors[i].planar = false;
}

stint_status sti_compact_make(const sti_tensor_text *texts, int64_t text_count,
                              const sti_compact_tensor *tensors, int64_t count,
                              sti_text *out, sti_compact_sizes *sizes)
{
    static const sti_tensor_text version = {STI_COMPACT_KEY, "1"};
    sti_tensor_row rows[2] = {{.name = STI_COMPACT_HEAD, .type = STI_TENSOR_U8},
                              {.name = STI_COMPACT_WEIGHTS, .type = STI_TENSOR_U8}};
    sti_weights_writer *writer = NULL;
    sti_text head = {0};
    uint8_t *deflated = NULL;
    const uint8_t *weights = NULL;
    const size_t before = out->length;
    stint_status st;
    STI_TRY(sti_weights_writer_create(&writer));
    STI_TRY(add_weights(writer, tensors, count, sizes->tensor_bits));
    STI_TRY(sti_weights_writer_finish(writer, &weights, &rows[1].bytes));
    STI_TRY(make_head(texts, text_count, tensors, count,
                      sti_crc32c(0, weights, rows[1].bytes), &head));
    STI_TRY(deflate_head(&head, &deflated, &rows[0].bytes));
    rows[0].data = deflated;
    rows[1].data = weights;
    for (int i = 0; i < 2; i++) {
        rows[i].rank = 1;
        rows[i].dim[0] = (int64_t)rows[i].bytes;
    }
    STI_TRY(sti_tensor_file_make(rows, 2, &version, 1, out));
    sizes->head_bytes = (int64_t)rows[0].bytes;
    sizes->weights_bytes = (int64_t)rows[1].bytes;
    sizes->bytes = (int64_t)(out->length - before);
out:
    sti_weights_writer_destroy(writer);
    sti_text_fini(&head);
    sti_free(deflated);
    return st;
}

stint_status sti_compact_write(const char *path, const sti_tensor_text *texts,
                               int64_t text_count, const sti_compact_tensor *tensors,
                               int64_t count, sti_compact_sizes *sizes)
{
    sti_text file = {0};
    stint_status st = sti_compact_make(texts, text_count, tensors, count, &file, sizes);
    if (st == STINT_OK)
        st = sti_file_write(path, file.data, file.length);
    sti_text_fini(&file);
    return st == STINT_OK ? st : sti_fail_context(st, "writing the compact model");
}
