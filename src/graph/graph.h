/* The intermediate representation, for the rooms that build, rewrite, plan and run it.
 *
 * Values and nodes are rows of two arrays. Nodes are kept in an order that is always
 * executable; a pass may kill nodes (sti_graph_sweep compacts) and append new ones
 * (sti_graph_sort restores the order). Node structs and their arrays live in the
 * graph's arena: pointers stay valid while the graph lives, also when nodes are
 * appended.
 *
 * Where does a saved tensor's form live? In the graph: a small exact form (ReLU sign
 * bits, pool indices) is an extra output of the forward node, and the gradient rule
 * reads that output instead of the tensor. Passes that pack, recompute or repeat insert
 * nodes. So op, pass and plan agree without knowing each other: planning sees only
 * values and lifetimes. */
#ifndef STI_GRAPH_GRAPH_H
#define STI_GRAPH_GRAPH_H

#include "base/memory.h"
#include "base/team.h"
#include "base/text.h"
#include "stint/graph.h"

typedef struct sti_node sti_node;
typedef struct sti_op sti_op;
struct sti_jet_rule;

/* How parameters change within a run, see sti_graph_update_at_once. */
typedef struct sti_update_rule {
    const sti_op *op; /* sgd_update, adam_update or rmsprop_update; NULL: they do not */
    bool decay_all;   /* of parameters that are not to decay, too */
} sti_update_rule;

struct sti_update_step;

/* What a kernel call sees. Pointers are resolved by exec/; an output that nobody reads
 * is NULL when the operator's row says optional_out for it. */
typedef struct sti_step {
    uint64_t seed;  /* of the run */
    int64_t step;   /* counted from 0 over the whole run */
    int64_t shard;  /* which micro-batch of the step */
    int64_t sample; /* which run of that micro-batch, of a Bayesian network */
    /* Results of a graph that adds up its runs (pass/adds): false overwrites what is in
     * their blocks, true adds to it. */
    bool add;
    /* By how much a graph that updates its parameters does so (op/op_update.h). NULL:
     * they stay as they are in this run. */
    const struct sti_update_step *update;
} sti_step;

typedef struct sti_call {
    const stint_graph *graph;
    const sti_node *node;
    const sti_team *team;
    const sti_step *step;
    const void *const *in;
    void *const *out;
    /* 64-byte aligned; scratch_bytes(graph, node, threads) of the threads that were
     * planned for, team->threads or more. */
    void *scratch;
    size_t scratch_bytes;
} sti_call;

typedef struct sti_cost {
    double flop;
    double read_bytes, write_bytes;
} sti_cost;

typedef void sti_run_fn(const sti_call *call);

typedef enum sti_device { STI_CPU, STI_DEVICES } sti_device;

enum {
    /* Output 0 may be laid over input 0, or 1 (same size, element by element). */
    STI_OP_INPLACE_0 = 1 << 0,
    STI_OP_INPLACE_1 = 1 << 1,
    /* Output 0 is input 0 under another shape: no work at all. */
    STI_OP_VIEW = 1 << 2,
    /* A function of (seed, step, shard, attr): repeatable exactly. */
    STI_OP_RANDOM = 1 << 3,
    /* The gradient is zero or meaningless (counts, masks). */
    STI_OP_NO_GRAD = 1 << 4,
    /* One cheap pass over input 0, which the gradient keeps anyway: made again for the
     * backward half rather than kept. */
    STI_OP_CHEAP = 1 << 5,
    /* Its arithmetic is products of bfloat16. */
    STI_OP_BF16 = 1 << 6,
    /* Its outputs that leave the graph are added to what is there where
     * sti_step.add says so. */
    STI_OP_ADDS = 1 << 7
};

/* Everything one operator is, in one constant row (src/op/<family>.c). */
struct sti_op {
    const char *name;
    int n_out;
    size_t attr_bytes; /* 0: none */
    unsigned flags;
    unsigned optional_out; /* bit i: output i may be absent when unread */

    /* Shapes of the outputs from those of the inputs, or a sentence (sti_fail). */
    stint_status (*infer)(const stint_graph *graph, const sti_node *node,
                          stint_shape *out);

    /* Append nodes for the gradients of the inputs with need[i]; dy[i] is -1 where no
     * gradient reaches output i. dx[i] stays -1 where the gradient is zero. The nodes
     * appended are ordinary ones, so the pass can be applied again. NULL with `expand`,
     * or flag NO_GRAD; NULL otherwise means "not differentiable", said with the
     * operator's name. */
    stint_status (*grad)(stint_graph *graph, const sti_node *node,
                         const stint_value *dy, const bool *need, stint_value *dx);

    /* The same function in terms of simpler operators (out[] gets the values). Used by
     * the gradient pass when `grad` is NULL, and for the outputs in `expand_out`, which
     * `grad` knows nothing of: it differentiates the expansion instead. */
    unsigned expand_out; /* bit i: output i; the others of out[] may then stay -1 */
    stint_status (*expand)(stint_graph *graph, const sti_node *node, stint_value *out);

    /* Append nodes for the Taylor coefficients of the output from those of the inputs
     * (op/jet_rule.h). NULL: pass/jet says that there is no rule. */
    stint_status (*jet)(stint_graph *graph, const sti_node *node,
                        const struct sti_jet_rule *rule);

    /* Output 0 is a function of one or two numbers, element by element (the second and
     * either of two may repeat as of broadcasting): 1 + sti_unary, or 1 + sti_binary,
     * of kernel/elementwise. 0, 0: it is none. */
    int8_t unary, binary;

    /* NULL: nothing worth counting, no scratch. */
    sti_cost (*cost)(const stint_graph *graph, const sti_node *node);
    size_t (*scratch_bytes)(const stint_graph *graph, const sti_node *node,
                            int threads);
    /* NULL: not on this device, said at planning. */
    sti_run_fn *run[STI_DEVICES];
    /* Attributes, for the printers; NULL: none. */
    void (*print)(const sti_node *node, sti_text *out);
};

struct sti_node {
    const sti_op *op;
    const void *attr; /* op->attr_bytes, zero-padded so that memcmp compares */
    int32_t id;       /* row in the graph's node array, changes on sweep and sort */
    int32_t n_in, n_out;
    stint_value *in, *out;
    const char *scope; /* "layer1.0.conv1" or "" */
    int8_t inplace;    /* input that output 0 is laid over, -1: none (pass/inplace) */
    bool backward;     /* appended by the gradient pass */
    bool again;        /* a copy of another one, run to save memory */
    bool once;         /* run before the first run alone (pass/once) */
};

typedef enum sti_role {
    STI_ROLE_NODE, /* made by a node */
    STI_ROLE_INPUT,
    STI_ROLE_PARAM,
    STI_ROLE_STATE,
    STI_ROLE_FIXED,   /* of another model that runs along: given by the host, never
                       * changed
                       */
    STI_ROLE_CONSTANT /* known when the graph is built: its bytes are in the row */
} sti_role;

typedef struct sti_value_row {
    stint_shape shape;
    sti_role role;
    const char *name;   /* full name; NULL for a temporary */
    sti_node *producer; /* NULL unless ROLE_NODE */
    int32_t producer_out;
    stint_param_desc param; /* ROLE_PARAM */
    float initial;          /* ROLE_STATE */
    /* ROLE_PARAM of a Bayesian network (pass/bayes): the mean or the spread of a weight
     * that is drawn, which no decay pulls at; and of a mean its spread, else 0. */
    bool drawn;
    stint_value spread;
    /* ROLE_PARAM that training leaves as it is: no gradient is made of it. It keeps its
     * place among the parameters, where evaluation and model files look for it. */
    bool frozen;
    /* ROLE_PARAM that a low-rank adapter adds to the network (pass/lora): no model file
     * has it, weights have its product instead. */
    bool adapter;
    /* ROLE_PARAM that is frozen: its memory holds a byte an element and a scale for
     * each index of the last axis (kernel/gemm/byte_matrix.h), though its shape says
     * f32. Only operators that widen it read it (pass/bytes). */
    bool in_bytes;
    const void *data; /* ROLE_CONSTANT: 64-byte aligned */
} sti_value_row;

/* What leaves the graph. All but FETCH are f32,
 * summed over shards by the fixed tree. */
typedef enum sti_output_kind {
    STI_OUTPUT_GRADIENT, /* of `target`, a param */
    STI_OUTPUT_STATE,    /* a shard's part in the new value of `target`, a state */
    STI_OUTPUT_METRIC,   /* a number to be summed: loss, correct answers */
    STI_OUTPUT_FETCH     /* read by the host after the run: logits */
} sti_output_kind;

typedef struct sti_output {
    sti_output_kind kind;
    stint_value value, target;
    const char *name;
    float momentum; /* STATE: new = (1 - momentum) old + momentum (mean over shards) */
    /* GRADIENT of some channels of the target alone: which of them on this axis. Count
     * 0: all. The list is borrowed, and must outlive the graph and its copies. */
    const int32_t *channels;
    int64_t channel_count;
    int channel_axis;
} sti_output;

/* Append a node; returns its first output (the others follow consecutively) or -1 with
 * the graph failed. attr is copied. Shapes are inferred at once. Any in[i] == -1 gives
 * -1, which lets builders chain without checks, except where an operator documents an
 * optional input (pass those as STI_NO_INPUT). */
#define STI_NO_INPUT (-2)
stint_value sti_graph_add(stint_graph *graph, const sti_op *op, const void *attr,
                          int n_in, const stint_value *in);

/* Record a failure in the graph; returns -1 for builders to pass on.
 * Keeps the first. */
stint_value sti_graph_fail(stint_graph *graph, stint_status status);
/* The first failure, recorded again, or STINT_OK; no further checks. */
stint_status sti_graph_status(const stint_graph *graph);

/* Let a value leave the graph; the name is copied. */
void sti_graph_output(stint_graph *graph, const sti_output *output);

int32_t sti_graph_node_count(const stint_graph *graph);
sti_node *sti_graph_node(const stint_graph *graph, int32_t id);
int32_t sti_graph_value_count(const stint_graph *graph);
const sti_value_row *sti_graph_value(const stint_graph *graph, stint_value value);
int32_t sti_graph_output_count(const stint_graph *graph);
/* A matrix of a convolution or dense layer, trained or FIXED: what pruning and
 * quantising are about. */
bool sti_graph_is_weight(const sti_value_row *row);
/* What shape the value of a gradient or state has, by its target. */
stint_shape sti_graph_output_shape(const stint_graph *graph, const sti_output *output);
/* A pass may change values in place. */
sti_output *sti_graph_outputs(const stint_graph *graph);
/* Outputs of a kind no longer leave the graph. */
void sti_graph_drop_outputs(stint_graph *graph, sti_output_kind kind);
void sti_graph_set_name(stint_graph *graph, stint_value value, const char *name);
/* ---- constants (pass/constant) ----
 *
 * Their bytes are borrowed: they must outlive the graph and its copies, and be 64-byte
 * aligned. A plan gives them no place. */

/* A new leaf of any type. */
stint_value sti_graph_constant(stint_graph *graph, const char *name,
                               const stint_shape *shape, const void *data);
/* A leaf or a node's result becomes a constant; a result's node must be killed by
 * whoever calls, with all its results. */
stint_status sti_graph_make_constant(stint_graph *graph, stint_value value,
                                     const void *data);
/* To be told of a constant whose numbers a pass has read and put others in the place
 * of: of `n_bytes` from `data` on. They may be read again all the same. */
typedef void sti_graph_rest_fn(void *user, const void *data, size_t n_bytes);
void sti_graph_on_rest(stint_graph *graph, sti_graph_rest_fn *fn, void *user);
/* Passes say so. Of other values than constants nothing is told. */
void sti_graph_rest(const stint_graph *graph, stint_value value);
/* Aligned memory, zeroed, that lives as long as the graph; NULL: recorded. */
void *sti_graph_room(stint_graph *graph, size_t bytes);

/* What is built from now on is another model's, as it is used: its parameters and
 * states are ROLE_FIXED, and the mode is EVAL, until this is called with false. */
void sti_graph_set_fixed(stint_graph *graph, bool fixed);
/* Batch-norm that is built from now on takes its running statistics in training, too,
 * and leaves them as they are. */
void sti_graph_freeze_norm(stint_graph *graph);
bool sti_graph_norm_frozen(const stint_graph *graph);
/* Inputs stay as they were filled until a run has ended, for further runs on them. */
void sti_graph_keep_inputs(stint_graph *graph);
bool sti_graph_inputs_kept(const stint_graph *graph);
/* Is this parameter the spread of a drawn weight? */
static inline bool sti_graph_is_spread(const sti_value_row *row)
{
    return row->drawn && row->spread == 0;
}
/* In use a graph has dropout, too, which drops the same elements of every image: each
 * step (sti_step.seed, .step) is another network, the same for all images. */
void sti_graph_sample(stint_graph *graph);
bool sti_graph_sampled(const stint_graph *graph);
/* This parameter is not trained; see sti_value_row.frozen. */
void sti_graph_freeze(stint_graph *graph, stint_value param);
void sti_graph_set_adapter(stint_graph *graph, stint_value param);
/* This parameter is held in bytes; see sti_value_row.in_bytes. */
void sti_graph_hold_in_bytes(stint_graph *graph, stint_value param);
/* Memory that a value takes: that of its shape, or less where it is held in bytes. */
size_t sti_graph_value_bytes(const sti_value_row *row);
/* Parameters change while the graph runs, each as soon as nobody reads its old value
 * any more (plan/update_nodes). */
void sti_graph_update_at_once(stint_graph *graph, const sti_update_rule *rule);
const sti_update_rule *sti_graph_update_rule(const stint_graph *graph); /* or NULL */
/* What depends on frozen values alone is computed once and kept beside the parameters
 * (pass/once); the plan's own copy of the graph has those nodes. */
void sti_graph_keep_constants(stint_graph *graph, bool keep);
bool sti_graph_keeps_constants(const stint_graph *graph);
/* How many nodes pass/schedule looks ahead for one that frees memory; 0: those that are
 * ready alone. */
void sti_graph_set_look_ahead(stint_graph *graph, int nodes);
int sti_graph_look_ahead(const stint_graph *graph);
/* Two parameters are the mean and the spread of one weight. */
void sti_graph_set_spread(stint_graph *graph, stint_value mean, stint_value spread);
/* Nodes appended from now on are marked as backward (and get `scope`), until NULL. */
void sti_graph_set_backward(stint_graph *graph, const sti_node *of);

/* Replace every read of `from` (node inputs and outputs of the graph) by `to`. */
void sti_graph_replace(stint_graph *graph, stint_value from, stint_value to);
void sti_graph_kill(stint_graph *graph, sti_node *node); /* removed by the next sweep */
/* Other attributes for a node, whose shapes they must not change; copied. */
stint_status sti_graph_set_attr(stint_graph *graph, sti_node *node, const void *attr);
stint_status sti_graph_sweep(stint_graph *graph);
stint_status sti_graph_sort(stint_graph *graph); /* stable topological order */
/* Nodes in the order given, a permutation of 0..node_count-1 that is executable. */
stint_status sti_graph_reorder(stint_graph *graph, const int32_t *order);
/* Nodes that stand in order, values and outputs once more, under the same handles and
 * sharing nothing; open scopes are left out. No killed node may be waiting for a sweep.
 * STINT_E_MEMORY, or the graph's own failure. */
stint_status sti_graph_copy(const stint_graph *graph, stint_graph **copy_out);
/* Order, handles, shapes (inferred anew). */
stint_status sti_graph_verify(const stint_graph *graph);

/* Printers: one line a node; Graphviz with shapes on the edges, scopes as clusters. */
stint_status sti_graph_print(const stint_graph *graph, sti_text *out);
stint_status sti_graph_print_dot(const stint_graph *graph, sti_text *out);

/* "[128, 32, 32, 16] f32" into a rotating thread-local buffer. */
const char *sti_shape_text(const stint_shape *shape);
bool sti_shape_equal(const stint_shape *a, const stint_shape *b);

#endif
