#include "train/prune.h"

#include <string.h>

#include "train/prune_section.h"
#include "train/threshold.h"

bool sti_prune_takes(const sti_value_row *row)
{
    return row->role == STI_ROLE_PARAM && sti_graph_is_weight(row);
}

bool sti_prune_masks(const sti_step_engine *engine, const sti_value_row *row)
{
    return engine->mask && row->role == STI_ROLE_PARAM &&
           (engine->desc.masks_all || sti_prune_takes(row));
}

uint8_t *sti_prune_bits(const sti_step_engine *engine, const sti_allocation *allocation)
{
    return engine->mask + allocation->offset / (8 * sizeof(float));
}

/* ---- the k-th smallest magnitude ---- */

/* Weights in the order of their tensors: all, or those of one. */
typedef struct weights {
    const sti_step_engine *engine;
    stint_value only; /* -1: all */
} weights;

typedef void weights_fn(void *user, float *x, int64_t n, uint8_t *bits);

static void each(const weights *w, weights_fn *fn, void *user)
{
    const sti_network *net = w->engine->desc.train;
    for (int32_t v = 0; v < sti_graph_value_count(net->graph); v++) {
        const sti_value_row *row = sti_graph_value(net->graph, v);
        const sti_allocation *allocation = &net->plan->allocation[v];
        if (!sti_prune_takes(row) || (w->only >= 0 && w->only != v))
            continue;
        fn(user, (float *)(void *)((char *)w->engine->params + allocation->offset),
           stint_shape_count(&row->shape),
           w->engine->mask ? sti_prune_bits(w->engine, allocation) : NULL);
    }
}

static void add_count(void *user, float *x, int64_t n, uint8_t *bits)
{
    (void)x, (void)bits;
    *(int64_t *)user += n;
}

static void count_weights(void *user, float *x, int64_t n, uint8_t *bits)
{
    (void)bits;
    sti_threshold_count(user, x, n);
}

static void visit(void *user, sti_threshold_counter *counter)
{
    each(user, count_weights, counter);
}

static void cut_weights(void *user, float *x, int64_t n, uint8_t *bits)
{
    sti_threshold *t = user;
    for (int64_t i = 0; i < n; i++) {
        if (!sti_threshold_cuts(t, x[i]))
            continue;
        x[i] = 0;
        bits[i / 8] &= (uint8_t) ~(1u << i % 8);
    }
}

static void cut(weights *w, double sparsity)
{
    int64_t n = 0;
    each(w, add_count, &n);
    const int64_t k = (int64_t)(sparsity * (double)n);
    if (k < 1)
        return;
    sti_threshold t = sti_threshold_find(k, visit, w);
    each(w, cut_weights, &t);
}

static void mask_numbers(float *x, int64_t n, const uint8_t *bits)
{
    for (int64_t i = 0; i < n; i++)
        x[i] = bits[i / 8] >> i % 8 & 1 ? x[i] : 0.0f;
}

/* Optimiser state of what is cut in the course of a training. */
static void mask_moments(sti_step_engine *engine)
{
    const sti_network *net = engine->desc.train;
    for (int32_t v = 0; v < sti_graph_value_count(net->graph); v++) {
        const sti_value_row *row = sti_graph_value(net->graph, v);
        const sti_allocation *allocation = &net->plan->allocation[v];
        for (int i = 0; i < 2 && sti_prune_masks(engine, row); i++)
            if (engine->moments[i])
                mask_numbers(
                    (float *)(void *)((char *)engine->moments[i] + allocation->offset),
                    stint_shape_count(&row->shape), sti_prune_bits(engine, allocation));
    }
}

void sti_prune_mask_all(sti_step_engine *engine)
{
    memset(engine->mask, 0xff, engine->sizes.mask);
}

void sti_prune(sti_step_engine *engine, double sparsity, int scope)
{
    const sti_network *net = engine->desc.train;
    sti_prune_mask_all(engine);
    if (scope == STI_PRUNE_GLOBAL)
        cut(&(weights){engine, -1}, sparsity);
    for (int32_t v = 0; v < sti_graph_value_count(net->graph); v++)
        if (scope != STI_PRUNE_GLOBAL &&
            sti_prune_takes(sti_graph_value(net->graph, v)))
            cut(&(weights){engine, v}, sparsity);
    mask_moments(engine);
}

void sti_prune_mask_zeros(sti_step_engine *engine, size_t offset, int64_t count)
{
    const float *x =
        (const float *)(const void *)((const char *)engine->params + offset);
    uint8_t *bits = engine->mask + offset / (8 * sizeof(float));
    for (int64_t i = 0; i < count; i++)
        if (x[i] == 0)
            bits[i / 8] &= (uint8_t) ~(1u << i % 8);
    for (int i = 0; i < 2; i++)
        if (engine->moments[i])
            mask_numbers((float *)(void *)((char *)engine->moments[i] + offset), count,
                         bits);
}

/* ---- in training ---- */

double sti_prune_share(const sti_prune_values *prune, int64_t epoch)
{
    const int64_t stages = prune->epochs;
    if (epoch >= stages)
        return prune->sparsity;
    const double left = (double)(stages - epoch) / (double)(stages + 1);
    return prune->sparsity * (1 - left * left * left);
}

void sti_prune_zero(const sti_step_engine *engine, const sti_value_row *row,
                    const sti_allocation *allocation, float *numbers)
{
    mask_numbers(numbers, stint_shape_count(&row->shape),
                 sti_prune_bits(engine, allocation));
}

void sti_prune_gradients(const sti_step_engine *engine, char *block)
{
    const sti_network *net = engine->desc.train;
    for (int32_t i = 0; engine->mask && i < sti_graph_output_count(net->graph); i++) {
        const sti_output *output = &sti_graph_outputs(net->graph)[i];
        if (output->kind != STI_OUTPUT_GRADIENT)
            continue;
        const sti_value_row *row = sti_graph_value(net->graph, output->target);
        if (sti_prune_masks(engine, row))
            mask_numbers(
                (float *)(void *)(block + net->plan->allocation[output->value].offset),
                stint_shape_count(&row->shape),
                sti_prune_bits(engine, &net->plan->allocation[output->target]));
    }
}
