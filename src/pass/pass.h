/* Graph in, graph out. Each pass is one file and one row of sti_passes[]. */
#ifndef STI_PASS_PASS_H
#define STI_PASS_PASS_H

#include "graph/graph.h"

/* Append the gradients of sum over elements of `loss` (a scalar) for `count` values
 * `of`; gradients_out[i] is -1 where none flows. Applied to its own result it gives
 * higher orders; an operator on the way without a rule gives STINT_E_UNSUPPORTED and
 * names it ("conv2d is not twice differentiable ..."). */
stint_status sti_pass_gradient(stint_graph *graph, stint_value loss,
                               const stint_value *of, int count,
                               stint_value *gradients_out);

/* Gradients of every param as GRADIENT outputs; each output has a value of its own, so
 * a plan can place it in the shard's result block. */
stint_status sti_pass_train(stint_graph *graph, stint_value loss);

/* What a pass did: one line for the log. */
typedef struct sti_account {
    char text[160];
} sti_account;

stint_status sti_pass_dead_code(stint_graph *graph, sti_account *account);
stint_status sti_pass_common_subexpression(stint_graph *graph, sti_account *account);
/* conv/matmul + bias + ReLU into the kernel's epilogue; batch-norm + add + ReLU into
 * one node. */
stint_status sti_pass_fuse(stint_graph *graph, sti_account *account);
/* Copies for what leaves the graph but cannot lie in a block of its own: a leaf, or
 * bytes that another output has already. */
stint_status sti_pass_own_outputs(stint_graph *graph, sti_account *account);
/* Move nodes that free memory forward, so that, for one, a weight gradient runs before
 * the gradient of the layer's input needs room. Kept only if the peak falls. */
stint_status sti_pass_schedule(stint_graph *graph, sti_account *account);
/* Lay results over operands that die there. Passes that add, merge or move nodes undo
 * these marks first; run this one last. */
stint_status sti_pass_inplace(stint_graph *graph, sti_account *account);

typedef struct sti_pass {
    const char *name, *help;
    stint_status (*run)(stint_graph *graph, sti_account *account);
} sti_pass;
/* In the order of the standard pipeline; a NULL name ends it. */
extern const sti_pass sti_passes[];

/* The standard pipeline: every row of sti_passes in order, verified after each; one
 * debug log line a pass. Exact: results keep their bits against the unrewritten graph,
 * except that EVAL graphs may fold batch-norm as each pass documents. */
stint_status sti_pass_standard(stint_graph *graph);

/* For a forward graph before its gradients are appended: common subexpressions and
 * fusion, so that the gradient rules meet the fused nodes. */
stint_status sti_pass_prepare(stint_graph *graph);

#endif
