/* A stint_graph from an exchange graph: constants are folded, shapes become static,
 * each node that is left becomes operators of Stint (lower_list.h says which).
 *
 * Layout: ONNX has channels first, Stint's convolutions want them last. A value that
 * depends on inputs is therefore a value of the graph and the order of its axes in
 * memory. An operator that does not care about the order hands it on, a Transpose of
 * the file only renames axes, and elements are moved where a reader wants another order
 * than the maker gave: between the layers of a network with convolutions, nowhere. */
#ifndef STI_EXCHANGE_LOWER_H
#define STI_EXCHANGE_LOWER_H

#include "exchange/exchange_graph.h"
#include "graph/graph.h"

/* The shape that an input is to have, over what the file says. */
typedef struct sti_exchange_shape {
    const char *name;
    int rank;
    int64_t dim[STI_EXCHANGE_RANK];
} sti_exchange_shape;

/* Images that are there already: the one input is no input of the graph then, and
 * outputs are values of it alone. Nothing of the graph refers to the tensors' numbers
 * afterwards. */
typedef struct sti_lower_images {
    stint_value value; /* [n, h, w, c] */
    bool first;        /* the file has channels first */
} sti_lower_images;

typedef struct sti_lower_options {
    const char *name; /* of the file, for messages */
    const sti_exchange_shape *shape;
    int shapes;
    bool trained; /* weights are parameters and normalisations states, else constants */
    const sti_lower_images *images; /* NULL: inputs become the graph's */
    /* Called with every name that the run makes, and its shape in ONNX's eyes; NULL:
     * nobody asks. */
    void (*seen)(void *user, const char *name, int rank, const int64_t *dim);
    void *user;
} sti_lower_options;

/* An input or output of what was built. Whole numbers are i32 in the graph, truth
 * values f32. */
typedef struct sti_lowered_port {
    const char *name;
    int type; /* as in the file, sti_exchange_type */
    stint_value value;
    stint_shape shape;
} sti_lowered_port;

typedef struct sti_lowered {
    sti_lowered_port *input, *output;
    int64_t inputs, outputs;
    int64_t nodes;      /* of the file, with those of branches that were taken */
    int64_t folded;     /* of those, nodes that became constants */
    int64_t parameters; /* numbers in tensors that the run reads */
    /* What is left, with the tensors that it reads in the order in which it wants them:
     * what a model file keeps. In the arena of `kept`; the caller destroys it after all
     * that was built. */
    sti_exchange_graph *kept;
    /* Nodes that cannot be lowered: "Op 'node': why; Op 'node'", or "". */
    sti_text unsupported;
} sti_lowered;

/* Append to `graph` and tell what there is. STINT_E_UNSUPPORTED lists every node that
 * there is no rule for; STINT_E_INPUT names the node, what it has and what it wants.
 * out is to be given to sti_lowered_fini in any case; g must outlive it. */
stint_status sti_lower(const sti_exchange_graph *g, const sti_lower_options *options,
                       stint_graph *graph, sti_lowered *out);
void sti_lowered_fini(sti_lowered *lowered);

/* Are there rows of -1 among those of this value, as many as a NonMaxSuppression did
 * not choose? The graph is one that can be lowered. */
bool sti_exchange_is_padded(const sti_exchange_graph *g, const char *name);

#endif
