/* Multi-layer perceptron: pixels -> `depth` hidden layers of `width` with ReLU ->
 * logits. */
#include "model/model_priv.h"

stint_value sti_model_mlp(stint_graph *g, int variant, const stint_model_desc *desc,
                          stint_value x)
{
    (void)variant;
    int64_t width = desc->width ? desc->width : 256;
    int64_t depth = desc->depth ? desc->depth : 2;
    x = stint_flatten(g, x);
    for (int64_t i = 0; i < depth; i++) {
        stint_scope_begin(g, "hidden%d", (int)i);
        x = stint_dense(
            g, x, &(stint_dense_desc){.units = width, .init = STINT_INIT_HE_NORMAL});
        x = stint_relu(g, x);
        stint_scope_end(g);
    }
    x = sti_model_dropout(g, x, desc, 0);
    return sti_model_dense(g, x, "fc", desc->classes);
}
