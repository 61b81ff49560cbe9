/* What the network families share. A family is one file with one builder; a network is
 * one line of model_list.h, which gives the builder its variant. */
#ifndef STI_MODEL_PRIV_H
#define STI_MODEL_PRIV_H

#include "graph/graph.h"
#include "stint/model.h"
#include "stint/op.h"

/* x: images [n, h, w, c]; returns the logits [n, classes]. The description has every
 * field resolved except those that a family documents its own default for: stem is
 * never AUTO. */
typedef stint_value sti_model_fn(stint_graph *g, int variant,
                                 const stint_model_desc *desc, stint_value x);

#define STI_MODEL(name, builder, variant, side, help) sti_model_fn sti_model_##builder;
#include "model/model_list.h"
#undef STI_MODEL

/* x, or -1 with the graph failed when the images are smaller than `pixels` a side. */
stint_value sti_model_at_least(stint_graph *g, stint_value x, int64_t pixels,
                               const char *name);

/* A convolution without bias and its batch-norm, in scopes `conv` and `norm`. */
stint_value sti_model_conv_norm(stint_graph *g, stint_value x, const char *conv,
                                const char *norm, const stint_conv2d_desc *desc);

/* A dense layer in a scope of its own. */
stint_value sti_model_dense(stint_graph *g, stint_value x, const char *scope,
                            int64_t units);

/* What the caller asked for, or the published rate where that was "as published". */
stint_value sti_model_dropout(stint_graph *g, stint_value x,
                              const stint_model_desc *desc, float published);

#endif
