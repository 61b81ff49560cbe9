/* Pieces of the ONNX file that is being written, and the operators of text models. */
#ifndef STI_EXCHANGE_ONNX_PIECES_H
#define STI_EXCHANGE_ONNX_PIECES_H

#include "exchange/onnx_write.h"
#include "exchange/wire_writer.h"
#include "op/op.h"

/* Fields of a GraphProto. */
enum {
    STI_ONNX_NODE = 1,
    STI_ONNX_INITIALIZER = 5,
    STI_ONNX_INPUT = 11,
    STI_ONNX_OUTPUT = 12
};

typedef struct sti_onnx_writer {
    const stint_model_file *model;
    const sti_onnx_write_options *options;
    sti_arena *arena;
    stint_graph *graph;
    sti_text body;       /* of the GraphProto */
    const char **name;   /* of a value in the file, [values] */
    bool *first;         /* its channels are in front */
    const char *prefix;  /* of names that are made up; NULL: none */
    int64_t temporaries; /* names that were made up */
    const char *failed;  /* an operator that there is no form for */
    bool no_memory;
} sti_onnx_writer;

/* An attribute: one whole number, several (count >= 0), or a number with a point. */
typedef struct sti_onnx_attr {
    const char *name;
    int64_t i;
    int count;
    int64_t ints[6];
    float f;
    enum { IS_INT, IS_INTS, IS_FLOAT } kind;
} sti_onnx_attr;

/* A name that nothing has yet: where names of another file stand beside it, by the
 * writer's prefix. */
const char *sti_onnx_fresh_name(sti_onnx_writer *w, const char *what);
/* An initialiser of ONNX's element type; and of float32 or whole numbers, under a name
 * of its own. */
void sti_onnx_add_tensor(sti_onnx_writer *w, const char *name, int type, int rank,
                         const int64_t *dim, const void *data, size_t n_bytes);
const char *sti_onnx_add_floats(sti_onnx_writer *w, int rank, const int64_t *dim,
                                const float *x);
const char *sti_onnx_add_number(sti_onnx_writer *w, float x);
const char *sti_onnx_add_integers(sti_onnx_writer *w, int64_t count, const int64_t *x);
sti_onnx_attr sti_onnx_attr_whole(const char *name, int64_t i);
sti_onnx_attr sti_onnx_attr_real(const char *name, float f);
sti_onnx_attr sti_onnx_attr_list(const char *name, int count, const int64_t *values);
/* A node of one result, whose name is returned. */
const char *sti_onnx_add_node(sti_onnx_writer *w, const char *op, int n_in,
                              const char *const *in, int n_attr,
                              const sti_onnx_attr *attrs);
const char *sti_onnx_add_node1(sti_onnx_writer *w, const char *op, const char *a);
const char *sti_onnx_add_node2(sti_onnx_writer *w, const char *op, const char *a,
                               const char *b);
const char *sti_onnx_add_transposed(sti_onnx_writer *w, const char *x, int rank,
                                    const int64_t *perm);
/* The first length is left open: it has the batch in it. */
const char *sti_onnx_add_reshaped(sti_onnx_writer *w, const char *x, int rank,
                                  const int64_t *dim);
/* An input or output. A length of 0 is left open, as the first is where the batch is.
 */
void sti_onnx_add_port(sti_onnx_writer *w, uint32_t field, const char *name, int type,
                       int rank, const int64_t *dim);

/* Pixels from 0 to 1, [n, c, h, w], as (x - mean) / deviation; the result's name. */
const char *sti_onnx_add_normalised(sti_onnx_writer *w, const char *x,
                                    const sti_data_norm *norm, int64_t channels);
/* The graph under a name as a file. STINT_E_UNSUPPORTED: of 2 GiB and more. */
stint_status sti_onnx_write_file(sti_onnx_writer *w, const char *name, int64_t opset,
                                 const char *path);

/* ---- operators of text models (onnx_write_text.c) ---- */

const char *sti_onnx_write_gelu(sti_onnx_writer *w, const char *x);
const char *sti_onnx_write_rms(sti_onnx_writer *w, const sti_node *n);
const char *sti_onnx_write_layer_norm(sti_onnx_writer *w, const sti_node *n);
const char *sti_onnx_write_rotary(sti_onnx_writer *w, const sti_node *n);
const char *sti_onnx_write_attention(sti_onnx_writer *w, const sti_node *n);
/* The logits, which the loss never makes whole. */
const char *sti_onnx_write_logits(sti_onnx_writer *w, const sti_node *n);

#endif
