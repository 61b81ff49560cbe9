/* The graph: values, nodes, shapes, scopes.
 *
 * A model is a graph of operators over values with static shapes. Builder calls
 * (stint/op.h) append nodes; an error makes the graph `failed`, later builder calls
 * return -1 and do nothing, and stint_graph_check() gives the first error: a model
 * builder needs no checks of its own. Handles are small integers, valid while the graph
 * lives. A graph serves one thread at a time. */
#ifndef STINT_GRAPH_H
#define STINT_GRAPH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "stint/status.h"

#ifdef __cplusplus
extern "C" {
#endif

#define STINT_MAX_RANK 6

typedef int32_t stint_value; /* -1 is none */

typedef enum stint_dtype {
    STINT_F32,
    STINT_I32,
    STINT_U8,  /* also packed bits: bit i of a tensor in byte i / 8, lowest first */
    STINT_BF16 /* the upper half of an f32; activations with `precision = bf16` */
} stint_dtype;

typedef struct stint_shape {
    int32_t rank; /* 0: a scalar */
    stint_dtype dtype;
    int64_t dim[STINT_MAX_RANK]; /* outermost first, innermost contiguous */
} stint_shape;

typedef enum stint_mode {
    STINT_TRAIN, /* batch statistics, dropout active */
    STINT_EVAL   /* running statistics, dropout is the identity */
} stint_mode;

typedef enum stint_init {
    STINT_INIT_ZERO,
    STINT_INIT_ONE,
    STINT_INIT_HE_NORMAL,      /* deviation sqrt(2 / fan_in) */
    STINT_INIT_HE_UNIFORM,     /* bound sqrt(6 / fan_in) */
    STINT_INIT_GLOROT_UNIFORM, /* bound sqrt(6 / (fan_in + fan_out)) */
    STINT_INIT_FAN_IN_UNIFORM, /* bound 1 / sqrt(fan_in), as PyTorch's layers */
    STINT_INIT_NORMAL          /* deviation `scale` */
} stint_init;

typedef struct stint_param_desc {
    stint_init init;
    float scale;             /* of STINT_INIT_NORMAL */
    int64_t fan_in, fan_out; /* 0: from the shape (all but the last; the last) */
    bool no_decay;           /* biases and normalisation parameters */
} stint_param_desc;

typedef struct stint_graph stint_graph;

/** An empty graph, the caller's to destroy, after all that was made from it. Values and
 * names live as long as it does. STINT_E_MEMORY. */
STINT_API stint_status stint_graph_create(stint_mode mode, stint_graph **graph_out);
STINT_API void stint_graph_destroy(stint_graph *graph); /* NULL is fine */
STINT_API stint_mode stint_graph_mode(const stint_graph *graph);

/** First error of any builder call, or STINT_OK after a full check of the graph: order,
 *  handles, shapes. The text is in stint_last_error(). */
STINT_API stint_status stint_graph_check(stint_graph *graph);

/** Names of what follows begin with the open scopes joined by dots:
 * "layer1.0.conv1". */
STINT_API void stint_scope_begin(stint_graph *graph, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
STINT_API void stint_scope_end(stint_graph *graph);

/** A tensor the host fills before each run. */
STINT_API stint_value stint_input(stint_graph *graph, const char *name,
                                  const stint_shape *shape);
/** A trained tensor; `name` gets the open scopes in front. f32. */
STINT_API stint_value stint_param(stint_graph *graph, const char *name,
                                  const stint_shape *shape,
                                  const stint_param_desc *desc);
/** A tensor kept between runs but not trained (running mean);
 * starts at `initial`. f32. */
STINT_API stint_value stint_state(stint_graph *graph, const char *name,
                                  const stint_shape *shape, float initial);

STINT_API stint_shape stint_value_shape(const stint_graph *graph, stint_value value);
STINT_API const char *stint_value_name(const stint_graph *graph,
                                       stint_value value);     /* never NULL */
STINT_API int64_t stint_shape_count(const stint_shape *shape); /* elements */
STINT_API size_t stint_shape_bytes(const stint_shape *shape);

/** Convenience: an f32 shape from up to STINT_MAX_RANK dimensions. */
#define STINT_SHAPE(...)                                                         \
    (stint_shape_make(STINT_F32,                                                 \
                      (int)(sizeof((int64_t[]){__VA_ARGS__}) / sizeof(int64_t)), \
                      (int64_t[]){__VA_ARGS__}))
STINT_API stint_shape stint_shape_make(stint_dtype dtype, int rank, const int64_t *dim);

#ifdef __cplusplus
}
#endif

#endif
