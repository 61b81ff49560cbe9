/* A network as other programs write it down: named values, nodes that are operators of
 * ONNX with attributes, tensors that are known. What ONNX files are read into, what the
 * text of a model file says, and what lower.h builds a stint_graph from.
 *
 * Strings, arrays and numbers lie in the graph's arena, or are borrowed from where the
 * tensors were read (see sti_exchange_tensor.words and .floats). */
#ifndef STI_EXCHANGE_EXCHANGE_GRAPH_H
#define STI_EXCHANGE_EXCHANGE_GRAPH_H

#include "base/memory.h"
#include "base/text.h"
#include "stint/status.h"

/* Most axes of a tensor that is known; what depends on inputs has at most
 * STINT_MAX_RANK. */
enum { STI_EXCHANGE_RANK = 8 };

/* Types of elements, numbered as ONNX numbers them. Numbers with a point are held as
 * float, all others, truth values too, as int64_t. */
typedef enum sti_exchange_type {
    STI_EXCHANGE_NONE = 0,
    STI_EXCHANGE_F32 = 1,
    STI_EXCHANGE_U8 = 2,
    STI_EXCHANGE_I8 = 3,
    STI_EXCHANGE_U16 = 4,
    STI_EXCHANGE_I16 = 5,
    STI_EXCHANGE_I32 = 6,
    STI_EXCHANGE_I64 = 7,
    STI_EXCHANGE_BOOL = 9,
    STI_EXCHANGE_F16 = 10,
    STI_EXCHANGE_F64 = 11,
    STI_EXCHANGE_U32 = 12,
    STI_EXCHANGE_U64 = 13,
    STI_EXCHANGE_BF16 = 16,
    STI_EXCHANGE_TYPES
} sti_exchange_type;

/* "f32"; NULL for a type that there is not. And back; STI_EXCHANGE_NONE: no such. */
const char *sti_exchange_type_name(int type);
int sti_exchange_type_find(const char *name);
/* Bytes of an element in a file; 0: no such type. */
size_t sti_exchange_type_bytes(int type);
static inline bool sti_exchange_is_float(int type)
{
    return type == STI_EXCHANGE_F32 || type == STI_EXCHANGE_F16 ||
           type == STI_EXCHANGE_F64 || type == STI_EXCHANGE_BF16;
}

/* A tensor that is known: one of `floats` and `words` is not NULL (neither, where it
 * has no elements). */
typedef struct sti_exchange_tensor {
    const char *name;
    int type; /* sti_exchange_type */
    int rank;
    int64_t dim[STI_EXCHANGE_RANK];
    int64_t count;
    const float *floats;
    const int64_t *words;
    /* Axis i in memory is axis order[i] of the tensor: the order that its reader wants,
     * so that it need not be turned again. */
    int8_t order[STI_EXCHANGE_RANK];
    bool trained; /* a weight of the network rather than a number of its formula */
    /* A weight that begins anew, whose numbers are not there (floats is not NULL all
     * the same), and what feeds one of its outputs; 0: it begins at 0. */
    bool fresh;
    int64_t fan_in;
} sti_exchange_tensor;

typedef enum sti_exchange_attr_kind {
    STI_EXCHANGE_INT,
    STI_EXCHANGE_FLOAT,
    STI_EXCHANGE_TEXT,
    STI_EXCHANGE_INTS,
    STI_EXCHANGE_FLOATS,
    STI_EXCHANGE_TENSOR,
    STI_EXCHANGE_GRAPH /* branches of If; gone once constants are folded */
} sti_exchange_attr_kind;

struct sti_exchange_graph;

typedef struct sti_exchange_attr {
    const char *name;
    sti_exchange_attr_kind kind;
    int64_t i;
    float f;
    const char *text;
    int64_t count; /* of ints or floats */
    const int64_t *ints;
    const float *floats;
    const sti_exchange_tensor *tensor;
    struct sti_exchange_graph *graph;
} sti_exchange_attr;

typedef struct sti_exchange_node {
    const char *op, *name, *domain;
    int n_in, n_out, n_attr;
    const char **in, **out; /* "" : an operand that is left out */
    sti_exchange_attr *attr;
} sti_exchange_node;

/* An input or output of the network. dim 0: open, named by symbol. */
typedef struct sti_exchange_port {
    const char *name;
    int type, rank; /* rank -1: not said */
    int64_t dim[STI_EXCHANGE_RANK];
    const char *symbol[STI_EXCHANGE_RANK];
} sti_exchange_port;

typedef struct sti_exchange_graph {
    sti_arena *arena;
    bool borrowed; /* the arena is another graph's */
    int64_t opset;
    const char *producer;
    sti_exchange_node *node;
    sti_exchange_port *input, *output;
    sti_exchange_tensor *tensor;
    int64_t nodes, inputs, outputs, tensors;
    int64_t node_room, input_room, output_room, tensor_room;
} sti_exchange_graph;

stint_status sti_exchange_graph_create(sti_exchange_graph **graph_out);
/* A branch: in the arena of `of`, with which it goes. */
stint_status sti_exchange_graph_inside(const sti_exchange_graph *of,
                                       sti_exchange_graph **graph_out);
void sti_exchange_graph_destroy(sti_exchange_graph *graph); /* NULL is fine */

/* A zeroed row appended; NULL: no memory. Rows may move when others are appended. */
sti_exchange_node *sti_exchange_add_node(sti_exchange_graph *g);
sti_exchange_port *sti_exchange_add_input(sti_exchange_graph *g);
sti_exchange_port *sti_exchange_add_output(sti_exchange_graph *g);
sti_exchange_tensor *sti_exchange_add_tensor(sti_exchange_graph *g);

/* NULL: the node has no such attribute. */
const sti_exchange_attr *sti_exchange_attr_find(const sti_exchange_node *node,
                                                const char *name);
/* The attribute's value, or `otherwise`. */
int64_t sti_exchange_attr_int(const sti_exchange_node *node, const char *name,
                              int64_t otherwise);
float sti_exchange_attr_float(const sti_exchange_node *node, const char *name,
                              float otherwise);
const char *sti_exchange_attr_text(const sti_exchange_node *node, const char *name,
                                   const char *otherwise);

/* Product of dim [rank], 0 for an empty tensor; false: a length is negative, or those
 * that are not 0 have a product beyond 2^44. So products of a tensor's lengths never
 * overflow. */
bool sti_exchange_count(int rank, const int64_t *dim, int64_t *count_out);
/* "[1, 3, 224, 224]" into text. */
void sti_exchange_shape_text(int rank, const int64_t *dim, sti_text *text);
/* The node for messages: its name, else its first output. */
const char *sti_exchange_node_name(const sti_exchange_node *node);

#endif
