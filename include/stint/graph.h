/* The graph: values, nodes, shapes, scopes.
 *
 * A model is a graph of operators over values with static shapes. Builder calls
 * (stint/op.h) append nodes. An error marks the graph as failed: later builder calls
 * then return -1 and do nothing, and stint_graph_check() gives the first error. A model
 * builder therefore needs no checks of its own and reads as a formula.
 *
 * A classifier of 28 x 28 grey images in two dense layers:
 *
 *   stint_graph *g = NULL;
 *   stint_status st = stint_graph_create(STINT_TRAIN, &g);
 *   if (st == STINT_OK) {
 *       const stint_shape images = STINT_SHAPE(32, 28, 28, 1);
 *       stint_value x = stint_flatten(g, stint_input(g, "images", &images));
 *       stint_scope_begin(g, "hidden");
 *       x = stint_relu(g, stint_dense(g, x, &(stint_dense_desc){.units = 64}));
 *       stint_scope_end(g);
 *       stint_scope_begin(g, "classes");
 *       x = stint_dense(g, x, &(stint_dense_desc){.units = 10});
 *       stint_scope_end(g);
 *       st = stint_graph_check(g);
 *   }
 *   if (st != STINT_OK)
 *       fprintf(stderr, "%s\n", stint_last_error());
 *   stint_graph_destroy(g);
 *
 * It has the parameters hidden.weight, hidden.bias, classes.weight and classes.bias.
 *
 * Handles of values are small integers, valid while their graph lives. A graph serves
 * one thread at a time; two graphs never meet. Unless a call says otherwise, a graph
 * argument must not be NULL. Strings and descriptions that are passed in are copied and
 * may go when the call returns. */
#ifndef STINT_GRAPH_H
#define STINT_GRAPH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "stint/status.h"

#ifdef __cplusplus
extern "C" {
#endif

/** Most dimensions that a shape can have. A shape with more is refused by the call that
 * it is given to. */
#define STINT_MAX_RANK 6

/** A value of a graph: an input, a parameter, a state, or the result of an operator.
 * -1 is no value: what builder calls return once the graph has failed. */
typedef int32_t stint_value;

/** Types of elements. */
typedef enum stint_dtype {
    /* IEEE single precision: parameters, states, losses. */
    STINT_F32,
    /* Signed 32-bit integers: labels and tokens. */
    STINT_I32,
    /* Bytes. Also packed bits: bit i of a tensor in byte i / 8, lowest first. */
    STINT_U8,
    /* The upper half of an f32: activations with `precision = bf16`. */
    STINT_BF16
} stint_dtype;

/** Shape of a tensor. Dimensions are static and at least 1. */
typedef struct stint_shape {
    /* Dimensions in use, 0 to STINT_MAX_RANK; 0 is a scalar. */
    int32_t rank;
    stint_dtype dtype;
    /* Outermost first; the innermost one is contiguous in memory. */
    int64_t dim[STINT_MAX_RANK];
} stint_shape;

/** What a graph is built for. */
typedef enum stint_mode {
    /* Batch-norm takes the statistics of the batch, dropout is active. */
    STINT_TRAIN,
    /* Batch-norm takes the running statistics, dropout is the identity. */
    STINT_EVAL
} stint_mode;

/** How a parameter begins. Random values are a pure function of the recipe's seed and
 * the parameter. */
typedef enum stint_init {
    STINT_INIT_ZERO,
    STINT_INIT_ONE,
    /* Normal of deviation sqrt(2 / fan_in) (He et al. 2015). */
    STINT_INIT_HE_NORMAL,
    /* Uniform within sqrt(6 / fan_in). */
    STINT_INIT_HE_UNIFORM,
    /* Uniform within sqrt(6 / (fan_in + fan_out)) (Glorot and Bengio 2010). */
    STINT_INIT_GLOROT_UNIFORM,
    /* Uniform within 1 / sqrt(fan_in), as PyTorch's layers. */
    STINT_INIT_FAN_IN_UNIFORM,
    /* Normal of deviation stint_param_desc.scale. */
    STINT_INIT_NORMAL,
    /* Every element stint_param_desc.scale. */
    STINT_INIT_CONSTANT,
    /* Uniform within stint_param_desc.scale. */
    STINT_INIT_UNIFORM
} stint_init;

/** How a parameter begins and is trained. All zero: starts at zero, with weight
 * decay. */
typedef struct stint_param_desc {
    stint_init init;
    /* Deviation of STINT_INIT_NORMAL, value of STINT_INIT_CONSTANT, bound of
     * STINT_INIT_UNIFORM; not looked at otherwise. */
    float scale;
    /* Units that feed one output, and that one input feeds. 0: from the shape, where
     * fan_in is the product of all dimensions but the last and fan_out the last. */
    int64_t fan_in, fan_out;
    /* No weight decay: biases and parameters of normalisations. */
    bool no_decay;
} stint_param_desc;

/** A graph; opaque. Builder calls append to it, and nothing is taken out of it. */
typedef struct stint_graph stint_graph;

/** Make an empty graph.
 *
 * The caller destroys it, after everything that was made from it. Its values and their
 * names live as long as it does. STINT_E_MEMORY; *graph_out is then untouched. */
STINT_API stint_status stint_graph_create(stint_mode mode, stint_graph **graph_out);

/** Free a graph, its values and their names. NULL is fine. */
STINT_API void stint_graph_destroy(stint_graph *graph);

/** The mode that operators are built for now: the one that the graph was created with.
 * Never fails. */
STINT_API stint_mode stint_graph_mode(const stint_graph *graph);

/** The first error of any builder call; without one, check the whole graph: order,
 * handles, shapes. STINT_OK if it is sound. The text is in stint_last_error(), on the
 * thread that asks. STINT_E_MEMORY if there is no memory for the check. */
STINT_API stint_status stint_graph_check(stint_graph *graph);

/** Open a scope. Names of what follows begin with all open scopes joined by dots:
 * "layer1.0.conv1.weight".
 *
 * The format is printf's. The text must have 1 to 255 characters; else the graph fails
 * with STINT_E_INPUT. */
STINT_API void stint_scope_begin(stint_graph *graph, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/** Close the innermost scope; the names of what is there stay. Without an open one the
 * graph fails with STINT_E_BUG. */
STINT_API void stint_scope_end(stint_graph *graph);

/* ---- tensors that no operator makes ----
 *
 * The next three calls append a tensor with a name. The full name is `name` behind the
 * open scopes; the graph keeps a copy of it. The graph fails, and -1 is returned, for
 * STINT_E_INPUT: a shape with a rank beyond STINT_MAX_RANK, a dimension below 1 or too
 * many elements, an element type that is not allowed, or a full name that another
 * input, parameter or state has; or for STINT_E_MEMORY. */

/** A tensor that the host fills before each run; of any element type. */
STINT_API stint_value stint_input(stint_graph *graph, const char *name,
                                  const stint_shape *shape);

/** A trained tensor; f32 only. desc NULL: starts at zero, with weight decay. */
STINT_API stint_value stint_param(stint_graph *graph, const char *name,
                                  const stint_shape *shape,
                                  const stint_param_desc *desc);

/** A tensor that is kept between runs but not trained, as a running mean; f32 only.
 * Every element starts at `initial`. */
STINT_API stint_value stint_state(stint_graph *graph, const char *name,
                                  const stint_shape *shape, float initial);

/* ---- looking ---- */

/** Shape of a value; a scalar f32 for a handle that the graph does not have. */
STINT_API stint_shape stint_value_shape(const stint_graph *graph, stint_value value);

/** Name of a value for messages; never NULL, "none" for a handle that the graph does
 * not have. Inputs, parameters and states have their full name, which lives as long as
 * the graph. The name of an operator's result is made up, in one of four buffers of the
 * calling thread: it holds until the fourth call after it. */
STINT_API const char *stint_value_name(const stint_graph *graph, stint_value value);

/** Elements of a shape: the product of its dimensions, 1 for a scalar. */
STINT_API int64_t stint_shape_count(const stint_shape *shape);

/** Bytes of a tensor of this shape, without padding. */
STINT_API size_t stint_shape_bytes(const stint_shape *shape);

/** An f32 shape from 1 to STINT_MAX_RANK dimensions: STINT_SHAPE(n, h, w, c). */
#define STINT_SHAPE(...)                                                         \
    (stint_shape_make(STINT_F32,                                                 \
                      (int)(sizeof((int64_t[]){__VA_ARGS__}) / sizeof(int64_t)), \
                      (int64_t[]){__VA_ARGS__}))

/** A shape from dim [rank]. A rank below 0 or above STINT_MAX_RANK gives a shape that
 * every builder call refuses with a sentence. Dimensions are not checked here. */
STINT_API stint_shape stint_shape_make(stint_dtype dtype, int rank, const int64_t *dim);

#ifdef __cplusplus
}
#endif

#endif
