#include "store/model_export.h"

#include <string.h>

#include "base/fail.h"
#include "codec/weights.h"
#include "store/checkpoint_file.h"
#include "store/compact_network.h"
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

static bool begins_with(const char *name, const char *prefix)
{
    return strncmp(name, prefix, strlen(prefix)) == 0;
}

static bool is_factor(const sti_tensor_row *row)
{
    return begins_with(row->name, STI_TENSOR_LEFT) ||
           begins_with(row->name, STI_TENSOR_RIGHT);
}

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
    int64_t count = 0;
    sti_tensor_row *rows =
        sti_alloc_array(sti_tensor_file_count(m->file) + 1, sizeof *rows, "tensors");
    stint_status st = text && rows ? STINT_OK : STINT_E_MEMORY;
    for (int64_t i = 0; rows && i < sti_tensor_file_count(m->file); i++)
        if (!is_factor(sti_tensor_file_row(m->file, i)))
            rows[count++] = *sti_tensor_file_row(m->file, i);
    if (st == STINT_OK)
        st = sti_tensor_file_write_made(path, rows, count, text, texts, fill_from_file,
                                        m->file);
    sti_free(rows);
    sti_free(text);
    return st;
}

/* ---- compact ---- */

typedef struct exporter {
    const stint_model_file *model;
    sti_arena *arena; /* of numbers, too */
    sti_compact_tensor *tensors;
    int64_t count;
} exporter;

static stint_status read_numbers(sti_arena *arena, sti_tensor_file *f,
                                 const sti_tensor_row *row, float **numbers)
{
    if (row->type != STI_TENSOR_F32)
        return sti_fail(STINT_E_UNSUPPORTED,
                        "%s: '%.80s' is no F32 tensor; only such models are made "
                        "compact",
                        sti_tensor_file_path(f), row->name);
    *numbers = sti_arena_alloc(arena, row->bytes + 1);
    return *numbers ? sti_tensor_file_read(f, row, *numbers) : STINT_E_MEMORY;
}

stint_status sti_compact_find_factors(sti_arena *arena, sti_tensor_file *f,
                                      const sti_tensor_row *row,
                                      sti_compact_factors *factors)
{
    const char *names[] = {sti_arena_printf(arena, STI_TENSOR_LEFT "%s", row->name),
                           sti_arena_printf(arena, STI_TENSOR_RIGHT "%s", row->name)};
    const sti_weight_form plain = sti_weight_form_plain(row->rank, row->dim);
    float *numbers[2] = {NULL, NULL};
    int64_t count[2] = {0, 0};
    *factors = (sti_compact_factors){.name = row->name};
    for (int i = 0; i < 2; i++) {
        if (!names[i])
            return STINT_E_MEMORY;
        const sti_tensor_row *factor = sti_tensor_file_find(f, names[i]);
        if (!factor)
            return STINT_OK;
        const stint_status st = read_numbers(arena, f, factor, &numbers[i]);
        if (st != STINT_OK)
            return st;
        count[i] = (int64_t)(factor->bytes / sizeof(float));
    }
    const int64_t rank = plain.rows > 0 ? count[0] / plain.rows : 0;
    if (rank > 0 && count[0] == rank * plain.rows && count[1] == rank * plain.columns) {
        factors->rank = rank;
        factors->left = numbers[0];
        factors->right = numbers[1];
    }
    return STINT_OK;
}

static stint_status take_tensor(exporter *e, const sti_tensor_row *row)
{
    sti_compact_tensor *t = &e->tensors[e->count++];
    sti_compact_factors factors;
    float *x = NULL;
    stint_status st = read_numbers(e->arena, e->model->file, row, &x);
    if (st == STINT_OK)
        st = sti_compact_find_factors(e->arena, e->model->file, row, &factors);
    if (st != STINT_OK)
        return st;
    *t = (sti_compact_tensor){.name = row->name, .rank = row->rank};
    memcpy(t->dim, row->dim, sizeof t->dim);
    return sti_compact_describe(e->arena, row->rank, row->dim, x,
                                factors.rank > 0 ? &factors : NULL, &t->weight);
}

static stint_status take_tensors(exporter *e)
{
    const sti_tensor_file *file = e->model->file;
    const int64_t count = sti_tensor_file_count(file);
    stint_status st = STINT_OK;
    e->tensors = sti_arena_alloc(e->arena, (size_t)count * sizeof *e->tensors + 1);
    if (!e->tensors)
        return STINT_E_MEMORY;
    for (int64_t i = 0; i < count && st == STINT_OK; i++)
        if (!is_factor(sti_tensor_file_row(file, i)) &&
            !begins_with(sti_tensor_file_row(file, i)->name, STI_TENSOR_MASK))
            st = take_tensor(e, sti_tensor_file_row(file, i));
    return st;
}

stint_status sti_model_write_compact(const stint_model_file *m, const char *path,
                                     sti_compact_sizes *sizes)
{
    exporter e = {.model = m};
    int64_t texts = 0;
    sti_tensor_text *text = NULL;
    stint_status st;
    if (m->network.field.coordinates > 0)
        return sti_fail(STINT_E_UNSUPPORTED,
                        "%s: a field; only models of images are made compact",
                        sti_tensor_file_path(m->file));
    if (m->network.context)
        return sti_fail(STINT_E_UNSUPPORTED,
                        "%s: a text model; only models of images are made compact",
                        sti_tensor_file_path(m->file));
    e.arena = sti_arena_create("compact");
    text = e.arena ? texts_with_hash(m, &texts) : NULL;
    st = text ? take_tensors(&e) : STINT_E_MEMORY;
    if (st == STINT_OK)
        st = sti_planar_choose(m->single.graph, e.tensors, e.count);
    if (st == STINT_OK)
        st = sti_compact_write(path, text, texts, e.tensors, e.count, sizes);
    sti_free(text);
    sti_arena_destroy(e.arena);
    return st;
}
