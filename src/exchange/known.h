/* Arithmetic on tensors that are known: what constant folding is made of. Each rule
 * takes the operands of one ONNX operator, in the tensor's own order of axes, and makes
 * its results in an arena. There are no patterns of several nodes here: a network's
 * shape arithmetic vanishes node by node. */
#ifndef STI_EXCHANGE_KNOWN_H
#define STI_EXCHANGE_KNOWN_H

#include "exchange/exchange_graph.h"

/* Most elements of a folded result: what is larger is left to the run. */
#define STI_KNOWN_MAX ((int64_t)1 << 26)

typedef struct sti_fold {
    sti_arena *arena;
    const sti_exchange_node *node;
    int64_t opset;
    const sti_exchange_tensor *const *in; /* [node->n_in], NULL where left out */
    sti_exchange_tensor **out;            /* [node->n_out], to be set */
} sti_fold;

/* STINT_E_INPUT names the node and what it wanted. A rule that leaves an output NULL
 * without failing does not hold for these operands; the node is then left to the run.
 */
typedef stint_status sti_fold_fn(sti_fold *f);

/* A tensor whose elements are zero; NULL: no memory or too large (recorded). A rule
 * then gives STINT_E_UNSUPPORTED, and the node is left to the run. */
sti_exchange_tensor *sti_known_make(sti_arena *arena, int type, int rank,
                                    const int64_t *dim);
/* The same numbers under another shape of as many. */
sti_exchange_tensor *sti_known_view(sti_arena *arena, const sti_exchange_tensor *t,
                                    int rank, const int64_t *dim);
/* In the order of its axes: the tensor itself where it lies so. */
const sti_exchange_tensor *sti_known_plain(sti_arena *arena,
                                           const sti_exchange_tensor *t);
/* Axis i of the result's memory is axis order[i] of t, whatever t's own order is. */
const sti_exchange_tensor *
sti_known_ordered(sti_arena *arena, const sti_exchange_tensor *t, const int8_t *order);
/* Element i as a number; of whole numbers exact up to 2^53. */
double sti_known_number(const sti_exchange_tensor *t, int64_t i);
/* v cut towards 0; the end of the range that it is beyond; 0 for no number. */
int64_t sti_known_whole(double v);
int64_t sti_known_word(const sti_exchange_tensor *t, int64_t i);
static inline float *sti_known_floats(sti_exchange_tensor *t)
{
    return (float *)(uintptr_t)t->floats;
}
static inline int64_t *sti_known_words(sti_exchange_tensor *t)
{
    return (int64_t *)(uintptr_t)t->words;
}
/* All words of a list of axes, lengths or indices, [*count]; NULL with *count -1: not
 * of that kind. */
const int64_t *sti_known_list(const sti_exchange_tensor *t, int64_t *count);
/* Shape of two operands by the rule of broadcasting; false: they do not go together. */
bool sti_known_broadcast(int ra, const int64_t *a, int rb, const int64_t *b, int *rank,
                         int64_t *dim);
/* Axis from -rank .. rank - 1 counted from 0, or -1. */
int sti_known_axis(int64_t axis, int rank);
/* The shape that Reshape makes of `from`; STINT_E_INPUT: the counts differ. */
stint_status sti_known_reshape(const sti_exchange_node *node, int rank,
                               const int64_t *from, const int64_t *want,
                               int64_t want_count, bool allow_zero, int *rank_out,
                               int64_t *dim_out);
/* Begin, step and number of a slice along an axis of `length`, as ONNX clamps them. */
int64_t sti_known_slice(int64_t length, int64_t begin, int64_t end, int64_t step,
                        int64_t *begin_out);

/* The rule of an operator; NULL: it has none. */
sti_fold_fn *sti_fold_find(const char *op);

#endif
