/* A training graph with one of everything that recomputation has a rule for: a residual
 * block with batch-norm, dropout, max pooling, a convolution with bias and ReLU, a view
 * and a dense layer. */
#ifndef TESTS_PLAN_SMALL_NET_H
#define TESTS_PLAN_SMALL_NET_H

#include "op/op.h"
#include "pass/pass.h"

static inline stint_value small_conv(stint_graph *g, const char *scope, stint_value x,
                                     int64_t filters, bool bias)
{
    stint_scope_begin(g, "%s", scope);
    stint_value y = stint_conv2d(
        g, x,
        &(stint_conv2d_desc){.filters = filters, .size = 3, .pad = 1, .bias = bias});
    stint_scope_end(g);
    return y;
}

static inline stint_value small_norm(stint_graph *g, const char *scope, stint_value x)
{
    stint_scope_begin(g, "%s", scope);
    stint_value y = stint_batch_norm(g, x, &(stint_batch_norm_desc){0});
    stint_scope_end(g);
    return y;
}

/* Forward and backward half after the standard passes; `blocks` residual blocks. */
static inline stint_graph *small_net(int blocks)
{
    stint_graph *g = NULL;
    const int64_t n = 4;
    char name[32];
    stint_shape images = STINT_SHAPE(4, 12, 12, 3);
    stint_shape labels = stint_shape_make(STINT_I32, 1, &n);
    assert_int_equal(stint_graph_create(STINT_TRAIN, &g), STINT_OK);
    stint_value x = stint_input(g, "images", &images);
    stint_value want = stint_input(g, "labels", &labels);
    x = stint_relu(g, small_norm(g, "norm", small_conv(g, "conv", x, 8, false)));
    for (int i = 0; i < blocks; i++) {
        stint_value y = x;
        for (int k = 0; k < 2; k++) {
            snprintf(name, sizeof name, "conv%d.%d", i, k);
            y = small_conv(g, name, y, 8, false);
            snprintf(name, sizeof name, "norm%d.%d", i, k);
            y = small_norm(g, name, y);
            if (k == 0)
                y = stint_dropout(g, stint_relu(g, y), 0.25f);
        }
        x = stint_relu(g, stint_add(g, x, y));
    }
    x = stint_max_pool(g, x, &(stint_pool_desc){.size = 2});
    x = stint_relu(g, small_conv(g, "last", x, 8, true));
    stint_scope_begin(g, "dense");
    x = stint_dense(g, stint_tanh(g, stint_flatten(g, x)),
                    &(stint_dense_desc){.units = 5});
    stint_scope_end(g);
    stint_value loss = stint_softmax_cross_entropy(g, x, want, 0);
    sti_graph_output(
        g, &(sti_output){
               .kind = STI_OUTPUT_METRIC, .value = loss, .target = -1, .name = "loss"});
    assert_int_equal(sti_pass_prepare(g), STINT_OK);
    assert_int_equal(sti_pass_train(g, loss, NULL), STINT_OK);
    assert_int_equal(sti_pass_standard(g), STINT_OK);
    return g;
}

#endif
