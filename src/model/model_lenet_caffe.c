/* The two networks that work on compression has compared itself on since Han et al.
 * (2015): LeNet-300-100, two dense layers (LeCun et al. 1998), and LeNet-5 in the form
 * that Caffe ships it in: convolutions of 5 x 5 without padding, max pooling, ReLU. */
#include "model/model_priv.h"

static stint_value relu_dense(stint_graph *g, stint_value x, const char *scope,
                              int64_t units)
{
    stint_scope_begin(g, "%s", scope);
    x = stint_dense(g, x,
                    &(stint_dense_desc){.units = units, .init = STINT_INIT_HE_NORMAL});
    x = stint_relu(g, x);
    stint_scope_end(g);
    return x;
}

stint_value sti_model_lenet300(stint_graph *g, int variant,
                               const stint_model_desc *desc, stint_value x)
{
    (void)variant;
    x = stint_flatten(g, x);
    x = relu_dense(g, x, "fc1", 300);
    x = relu_dense(g, x, "fc2", 100);
    x = sti_model_dropout(g, x, desc, 0);
    return sti_model_dense(g, x, "fc3", desc->classes);
}

static stint_value conv_pool(stint_graph *g, stint_value x, const char *scope,
                             int64_t filters)
{
    stint_scope_begin(g, "%s", scope);
    x = stint_conv2d(
        g, x,
        &(stint_conv2d_desc){
            .filters = filters, .size = 5, .bias = true, .init = STINT_INIT_HE_NORMAL});
    stint_scope_end(g);
    return stint_max_pool(g, x, &(stint_pool_desc){.size = 2});
}

stint_value sti_model_lenet5_caffe(stint_graph *g, int variant,
                                   const stint_model_desc *desc, stint_value x)
{
    (void)variant;
    x = sti_model_at_least(g, x, 16, "lenet5-caffe");
    if (x < 0)
        return -1;
    x = conv_pool(g, x, "conv1", 20); /* 28x28 -> 12x12 */
    x = conv_pool(g, x, "conv2", 50); /* -> 4x4 */
    x = stint_flatten(g, x);
    x = relu_dense(g, x, "ip1", 500);
    x = sti_model_dropout(g, x, desc, 0);
    return sti_model_dense(g, x, "ip2", desc->classes);
}
