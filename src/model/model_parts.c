/* What the families of networks build with: they know nothing of the table of names. */
#include <inttypes.h>

#include "base/fail.h"
#include "model/model_priv.h"

stint_value sti_model_at_least(stint_graph *g, stint_value x, int64_t pixels,
                               const char *name)
{
    if (x < 0)
        return -1;
    stint_shape shape = stint_value_shape(g, x);
    if (shape.dim[1] >= pixels && shape.dim[2] >= pixels)
        return x;
    return sti_graph_fail(
        g, sti_fail(STINT_E_INPUT,
                    "%s: images of %" PRId64 " x %" PRId64
                    " are too small; it needs %" PRId64 " x %" PRId64
                    " or more; set data.size = %" PRId64 " or take a smaller network",
                    name, shape.dim[1], shape.dim[2], pixels, pixels, pixels));
}

stint_value sti_model_conv_norm(stint_graph *g, stint_value x, const char *conv,
                                const char *norm, const stint_conv2d_desc *desc)
{
    stint_scope_begin(g, "%s", conv);
    x = stint_conv2d(g, x, desc);
    stint_scope_end(g);
    stint_scope_begin(g, "%s", norm);
    x = stint_batch_norm(g, x, &(stint_batch_norm_desc){0});
    stint_scope_end(g);
    return x;
}

stint_value sti_model_dense(stint_graph *g, stint_value x, const char *scope,
                            int64_t units)
{
    stint_scope_begin(g, "%s", scope);
    x = stint_dense(g, x, &(stint_dense_desc){.units = units});
    stint_scope_end(g);
    return x;
}

stint_value sti_model_dropout(stint_graph *g, stint_value x,
                              const stint_model_desc *desc, float published)
{
    float rate = desc->dropout < 0 ? published : desc->dropout;
    return rate > 0 ? stint_dropout(g, x, rate) : x;
}
