#include "store/model_export.h"

#include <string.h>

#include "base/fail.h"
#include "codec/weight_find.h"
#include "codec/weights.h"
#include "store/checkpoint_file.h"
#include "store/model_meta.h"
#include "store/planar_choice.h"

/* Texts with the hash of the weights, which a model that was made by hand lacks. */
static sti_tensor_text *texts_with_hash(const stint_model_file *m, int64_t *count_out)
{
    int64_t count;
    const sti_tensor_text *texts = sti_tensor_file_texts(m->file, &count);
    sti_tensor_text *all = sti_alloc_array(count + 1, sizeof *all, "texts");
    if (!all)
        return NULL;
    memcpy(all, texts, (size_t)count * sizeof *all);
    if (!sti_tensor_file_text(m->file, STI_META_WEIGHTS))
        all[count++] = (sti_tensor_text){STI_META_WEIGHTS, m->weights_sha256};
    *count_out = count;
    return all;
}

/* ---- dense ---- */

static stint_status fill_from_file(void *user, const sti_tensor_row *row,
                                   sti_writer *writer)
{
    void *bytes = sti_alloc(row->bytes, "tensor");
    stint_status st = bytes ? sti_tensor_file_read(user, row, bytes) : STINT_E_MEMORY;
    if (st == STINT_OK)
        sti_writer_add(writer, bytes, row->bytes);
    sti_free(bytes);
    return st;
}

stint_status sti_model_write_dense(const stint_model_file *m, const char *path)
{
    int64_t texts = 0;
    sti_tensor_text *text = texts_with_hash(m, &texts);
    if (!text)
        return STINT_E_MEMORY;
    const int64_t count = sti_tensor_file_count(m->file);
    const stint_status st =
        sti_tensor_file_write_made(path, count ? sti_tensor_file_row(m->file, 0) : NULL,
                                   count, text, texts, fill_from_file, m->file);
    sti_free(text);
    return st;
}

/* ---- compact ---- */

typedef struct exporter {
    const stint_model_file *model;
    sti_compact_tensor *tensors;
    float **numbers, **scales; /* [count] */
    int64_t count;
} exporter;

static bool is_mask(const sti_tensor_row *row)
{
    return strncmp(row->name, STI_TENSOR_MASK, strlen(STI_TENSOR_MASK)) == 0;
}

static stint_status take_tensor(exporter *e, const sti_tensor_row *row)
{
    sti_compact_tensor *t = &e->tensors[e->count];
    const int64_t columns = row->rank > 0 ? row->dim[row->rank - 1] : 1;
    if (row->type != STI_TENSOR_F32)
        return sti_fail(STINT_E_UNSUPPORTED,
                        "%s: '%.80s' is no F32 tensor; only such models are made "
                        "compact",
                        sti_tensor_file_path(e->model->file), row->name);
    float *x = e->numbers[e->count] = sti_alloc(row->bytes, "weights");
    float *scale = e->scales[e->count] =
        sti_alloc_array(columns, sizeof *scale, "scales");
    e->count++;
    stint_status st =
        x && scale ? sti_tensor_file_read(e->model->file, row, x) : STINT_E_MEMORY;
    if (st != STINT_OK)
        return st;
    *t = (sti_compact_tensor){.name = row->name, .rank = row->rank};
    memcpy(t->dim, row->dim, sizeof t->dim);
    t->weight = (sti_weight){
        .form = sti_weight_form_find(row->rank, row->dim, x, scale), .x = x};
    t->weight.scale = scale;
    return STINT_OK;
}

static stint_status take_tensors(exporter *e)
{
    const sti_tensor_file *file = e->model->file;
    const int64_t count = sti_tensor_file_count(file);
    stint_status st = STINT_OK;
    e->tensors = sti_alloc_array(count, sizeof *e->tensors, "tensors");
    e->numbers = sti_alloc_array(count, sizeof(float *), "tensors");
    e->scales = sti_alloc_array(count, sizeof(float *), "tensors");
    if (!e->tensors || !e->numbers || !e->scales)
        return STINT_E_MEMORY;
    for (int64_t i = 0; i < count && st == STINT_OK; i++)
        if (!is_mask(sti_tensor_file_row(file, i)))
            st = take_tensor(e, sti_tensor_file_row(file, i));
    return st;
}

stint_status sti_model_write_compact(const stint_model_file *m, const char *path,
                                     sti_compact_sizes *sizes)
{
    exporter e = {.model = m};
    int64_t texts = 0;
    sti_tensor_text *text = NULL;
    stint_status st = STINT_E_MEMORY;
    if (m->network.context)
        return sti_fail(STINT_E_UNSUPPORTED,
                        "%s: a text model; only models of images are made compact",
                        sti_tensor_file_path(m->file));
    if ((text = texts_with_hash(m, &texts)))
        st = take_tensors(&e);
    if (st == STINT_OK)
        st = sti_planar_choose(m->single.graph, e.tensors, e.count);
    if (st == STINT_OK)
        st = sti_compact_write(path, text, texts, e.tensors, e.count, sizes);
    for (int64_t i = 0; i < e.count; i++) {
        sti_free(e.numbers[i]);
        sti_free(e.scales[i]);
    }
    sti_free(e.numbers);
    sti_free(e.scales);
    sti_free(e.tensors);
    sti_free(text);
    return st;
}
