/* DLRM (Naumov et al. 2019, arXiv 1906.00091): numbers through a bottom perceptron to a
 * vector as wide as a row, dot products of all pairs of it and the fields' rows, and a
 * top perceptron on these and the vector. The rows are an input: their table stands
 * beside the graph, which may be larger than memory. */
#include <string.h>

#include "base/fail.h"
#include "model/model_priv.h"

/* Hidden layers with ReLU, "bottom0" and so on; the widths of `units`. */
static stint_value perceptron(stint_graph *g, stint_value x, const char *scope,
                              const int64_t *units, int count)
{
    for (int i = 0; i < count; i++) {
        stint_scope_begin(g, "%s%d", scope, i);
        x = stint_dense(
            g, x, &(stint_dense_desc){.units = units[i], .init = STINT_INIT_HE_NORMAL});
        stint_scope_end(g);
        x = stint_relu(g, x);
    }
    return x;
}

/* Everything that meets in dot products: [n, vectors, width]. */
static stint_value join_vectors(stint_graph *g, stint_value bottom, stint_value rows)
{
    if (bottom < 0)
        return rows;
    const stint_shape shape = stint_value_shape(g, bottom);
    const stint_shape one = STINT_SHAPE(shape.dim[0], 1, shape.dim[1]);
    bottom = stint_reshape(g, bottom, &one);
    return rows < 0 ? bottom
                    : stint_concat(g, (const stint_value[]){bottom, rows}, 2, 1);
}

/* What the top sees: the bottom's vector and the pairs. Without numbers the rows stand
 * in for that vector: of two fields there is but one pair, and it says nothing of how
 * much either is liked by itself. */
static stint_value features(stint_graph *g, stint_value bottom, stint_value rows)
{
    const stint_value all = join_vectors(g, bottom, rows);
    if (all < 0)
        return -1;
    const stint_shape shape = stint_value_shape(g, all);
    const stint_value own = bottom < 0 ? stint_flatten(g, rows) : bottom;
    if (shape.dim[1] < 2)
        return own;
    const stint_value both[2] = {own, stint_interaction(g, all)};
    return stint_concat(g, both, 2, 1);
}

stint_value stint_click_model_build(stint_graph *g, const stint_click_model_desc *desc,
                                    stint_value dense, stint_value rows)
{
    if (desc->bottom_count < 0 || desc->bottom_count > STINT_CLICK_LAYERS ||
        desc->top_count < 0 || desc->top_count > STINT_CLICK_LAYERS || desc->width < 1)
        return sti_graph_fail(
            g, sti_fail(STINT_E_INPUT,
                        "dlrm: wants a width of 1 or more and at most %d layers in "
                        "bottom and top",
                        STINT_CLICK_LAYERS));
    if (dense < 0 && rows < 0)
        return sti_graph_fail(
            g, sti_fail(STINT_E_INPUT, "dlrm: neither numbers nor rows are given"));
    stint_value bottom = dense;
    if (dense >= 0) {
        bottom = perceptron(g, dense, "bottom", desc->bottom, desc->bottom_count);
        stint_scope_begin(g, "bottom%d", desc->bottom_count);
        bottom = stint_relu(
            g, stint_dense(g, bottom,
                           &(stint_dense_desc){.units = desc->width,
                                               .init = STINT_INIT_HE_NORMAL}));
        stint_scope_end(g);
    }
    stint_value x = features(g, bottom, rows);
    x = perceptron(g, x, "top", desc->top, desc->top_count);
    stint_scope_begin(g, "top%d", desc->top_count);
    x = stint_dense(g, x, &(stint_dense_desc){.units = 1});
    stint_scope_end(g);
    return x;
}

bool stint_model_is_clicks(const char *name)
{
    return strcmp(name, "dlrm") == 0;
}
