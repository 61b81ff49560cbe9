/* The end of a search: the chosen file in its place, and what is to be said of it. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/fail.h"
#include "base/file.h"
#include "codec/weights.h"
#include "shrink/shrinker.h"
#include "store/model_export.h"
#include "train/shrink_recipe.h"

enum { FILE_BYTES_MAX = 1 << 30 };

static stint_status copy_file(const char *from, const char *to)
{
    void *data = NULL;
    size_t bytes = 0;
    stint_status st = sti_file_read(from, FILE_BYTES_MAX, &data, &bytes);
    if (st == STINT_OK)
        st = sti_file_write(to, data, bytes);
    sti_free(data);
    return st;
}

/* ---- layers ---- */

static void say_form(const sti_weight_form *f, char *out, size_t size)
{
    sti_text words = {0};
    if (f->rank > 0)
        sti_text_printf(&words, "product of rank %" PRId64 ", ", f->rank);
    if (f->whole_columns)
        sti_text_add(&words, "outputs, ");
    if (f->kernels)
        sti_text_add(&words, "kernels, ");
    if (f->patterns > 0)
        sti_text_printf(&words, "%d shapes, ", f->patterns);
    if (f->elements && f->rank == 0)
        sti_text_add(&words, "single weights, ");
    if (f->number == STI_WEIGHT_INT)
        sti_text_printf(&words, "int%d", f->bits);
    else
        sti_text_add(&words, f->number == STI_WEIGHT_F16 ? "f16" : "f32");
    snprintf(out, size, "%s", words.data ? words.data : "");
    sti_text_fini(&words);
}

typedef struct lister {
    const stint_model_file *model;
    sti_tensor_file *run; /* of the sample's training, which has factors of products */
    sti_weights_writer *writer;
    stint_shrink_layer *layer;
    int count;
    sti_shrink_shapes *shapes;
} lister;

/* The shape of every kernel that is left, of a layer that has few. */
static void count_shapes(sti_shrink_shapes *shapes, const sti_weight_form *f,
                         const float *x)
{
    const int64_t kernels = f->patterns > 0 ? f->channels * f->columns : 0;
    for (int64_t k = 0; k < kernels; k++) {
        unsigned taps = 0;
        int i = 0;
        for (int t = 0; t < (int)f->taps; t++)
            taps |= (unsigned)(x[t * kernels + k] != 0) << t;
        while (i < shapes->count && shapes->shape[i] != taps)
            i++;
        if (taps == 0 || i == STI_WEIGHT_PATTERNS_MAX)
            continue;
        shapes->shape[i] = (uint16_t)taps;
        shapes->kernels[i]++;
        shapes->count += i == shapes->count;
    }
}

static stint_status describe(lister *l, const sti_value_row *row, sti_arena *arena)
{
    const sti_tensor_row *tensor = sti_tensor_file_find(l->model->file, row->name);
    stint_shrink_layer *layer = &l->layer[l->count++];
    sti_compact_factors factors;
    sti_weight weight;
    double bits = 0;
    stint_status st;
    if (!tensor || tensor->type != STI_TENSOR_F32)
        return sti_fail(STINT_E_BUG, "shrink: no weights of %s", row->name);
    float *x = sti_arena_alloc(arena, tensor->bytes + 1);
    if (!x)
        return STINT_E_MEMORY;
    STI_TRY(sti_tensor_file_read(l->model->file, tensor, x));
    STI_TRY(sti_compact_find_factors(arena, l->run, tensor, &factors));
    STI_TRY(sti_compact_describe(arena, tensor->rank, tensor->dim, x,
                                 factors.rank > 0 ? &factors : NULL, &weight));
    STI_TRY(sti_weights_writer_add(l->writer, row->name, &weight, &bits));
    *layer = (stint_shrink_layer){.weights = stint_shape_count(&row->shape),
                                  .bytes = bits / 8,
                                  .ms = (double)NAN,
                                  .base_ms = (double)NAN};
    snprintf(layer->name, sizeof layer->name, "%s", row->name);
    say_form(&weight.form, layer->form, sizeof layer->form);
    count_shapes(l->shapes, &weight.form, x);
    for (int64_t i = 0; i < layer->weights; i++)
        layer->nonzeros += x[i] != 0;
out:
    return st;
}

static bool is_layer(const sti_value_row *row)
{
    return row->role == STI_ROLE_PARAM && sti_graph_is_weight(row);
}

/* The numbers of one layer at a time. */
static stint_status list_layers(lister *l)
{
    const stint_graph *g = l->model->single.graph;
    stint_status st = STINT_OK;
    for (int32_t v = 0; v < sti_graph_value_count(g) && st == STINT_OK; v++) {
        if (!is_layer(sti_graph_value(g, v)))
            continue;
        sti_arena *arena = sti_arena_create("layer");
        st = arena ? describe(l, sti_graph_value(g, v), arena) : STINT_E_MEMORY;
        sti_arena_destroy(arena);
    }
    return st;
}

static int count_layers(const stint_graph *g)
{
    int count = 0;
    for (int32_t v = 0; v < sti_graph_value_count(g); v++)
        count += is_layer(sti_graph_value(g, v));
    return count;
}

static stint_status add_layers(sti_shrinker *s, const sti_sample *best,
                               stint_model_file *model, stint_shrink_result *r)
{
    lister l = {.model = model, .shapes = &s->shapes};
    const int count = count_layers(model->single.graph);
    stint_status st;
    r->layers = l.layer = sti_alloc_array(count, sizeof *r->layers, "layers");
    if (!r->layers)
        STI_TRY(STINT_E_MEMORY);
    STI_TRY(sti_tensor_file_open(best->dense_path, &l.run));
    STI_TRY(sti_weights_writer_create(&l.writer));
    STI_TRY(list_layers(&l));
    r->layer_count = l.count;
    for (int i = 0; i < l.count; i++) {
        r->weights += l.layer[i].weights;
        r->nonzeros += l.layer[i].nonzeros;
    }
    STI_TRY(sti_shrink_measure(s, model, &r->latency_ms, &r->base_ms, r->layers,
                               r->layer_count));
out:
    sti_weights_writer_destroy(l.writer);
    sti_tensor_file_close(l.run);
    return st;
}

/* ---- the result ---- */

static stint_status add_samples(const sti_shrinker *s, stint_shrink_result *r)
{
    r->samples = sti_alloc_array(s->count, sizeof *r->samples, "samples");
    if (!r->samples)
        return STINT_E_MEMORY;
    for (int i = 0; i < s->count; i++)
        r->samples[r->sample_count++] = s->sample[i].facts;
    return STINT_OK;
}

static stint_status fill(const sti_shrinker *s, const sti_sample *best,
                         stint_shrink_result *r)
{
    sti_text scheme = {0};
    stint_status st = sti_sample_scheme(s, best->share, &scheme);
    if (st == STINT_OK)
        snprintf(r->scheme, sizeof r->scheme, "%s", scheme.data);
    sti_text_fini(&scheme);
    snprintf(r->method, sizeof r->method, "%s", sti_shrink_method_name(s->recipe));
    snprintf(r->out, sizeof r->out, "%s", s->out);
    r->sparsity = best->facts.sparsity;
    r->bytes = best->facts.bytes;
    r->base_bytes = s->model->parameters * (int64_t)sizeof(float);
    r->accuracy = best->facts.accuracy;
    r->base_accuracy = s->judge.base_accuracy;
    r->accuracy_drop = r->base_accuracy - r->accuracy;
    r->mismatch_rate = best->facts.mismatch_rate;
    r->test_accuracy = best->test_accuracy;
    r->base_test_accuracy = s->judge.base_test_accuracy;
    r->judged = s->judge.judged;
    r->judged_by = s->judge.by;
    r->met = best->facts.met;
    r->bracket[0] = s->low;
    r->bracket[1] = s->high;
    return st;
}

stint_status sti_shrink_finish(sti_shrinker *s, const sti_sample *best,
                               stint_shrink_result *r)
{
    stint_model_file *model = NULL;
    stint_status st;
    STI_TRY(copy_file(best->path, s->model_path));
    STI_TRY(stint_model_open(s->model_path, &model));
    STI_TRY(fill(s, best, r));
    snprintf(r->weights_sha256, sizeof r->weights_sha256, "%s", model->weights_sha256);
    STI_TRY(add_samples(s, r));
    STI_TRY(add_layers(s, best, model, r));
    if (sti_shrink_times(s->desc)) { /* what decided is told */
        r->latency_ms = best->facts.latency_ms;
        r->base_ms = best->ms;
    }
out:
    stint_model_close(model);
    return st;
}
