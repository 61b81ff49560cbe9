/* What the rules of lowering share: what a name stands for, orders of axes, and small
 * builders. */
#ifndef STI_EXCHANGE_LOWER_PRIV_H
#define STI_EXCHANGE_LOWER_PRIV_H

#include "base/fail.h"
#include "base/shown.h"
#include "exchange/known.h"
#include "exchange/lower.h"
#include "op/op.h"

/* A value that depends on inputs, or is to be computed when the graph runs. */
typedef struct sti_lane_value {
    stint_value value;
    int type; /* sti_exchange_type */
    int rank;
    int8_t order[STINT_MAX_RANK]; /* axis i of value is axis order[i] in ONNX's eyes */
} sti_lane_value;

typedef enum sti_slot_kind {
    STI_SLOT_NONE,  /* an operand that is left out */
    STI_SLOT_KNOWN, /* a tensor */
    STI_SLOT_LANE,  /* made by the run */
    STI_SLOT_LOST   /* its node failed; what reads it is passed over */
} sti_slot_kind;

typedef struct sti_slot {
    const char *name;
    sti_slot_kind kind;
    const sti_exchange_tensor *known;
    sti_lane_value lane;
    bool read;         /* KNOWN: the run reads it */
    bool padded;       /* LANE: rows along axis 0 that are left over hold -1 */
    stint_value param; /* of a trained tensor, once it is in the graph; else -1 */
    int64_t readers;   /* nodes and outputs that name it */
} sti_slot;

typedef struct sti_lowering {
    const sti_lower_options *options;
    stint_graph *graph;
    sti_arena *arena;
    int64_t opset;
    sti_slot *slot;
    int64_t slots, slot_room;
    int32_t *table; /* of slots by name, [table_size], -1: free */
    int64_t table_size;
    const sti_exchange_node *node; /* that is being lowered */
    sti_exchange_graph *kept;
    sti_lowered *out;
    int depth; /* of branches */
    /* Elements that folding may still make: a small file must not become any number. */
    int64_t fold_room;
} sti_lowering;

typedef stint_status sti_lower_fn(sti_lowering *l, const sti_exchange_node *n);

/* ---- names ---- */

/* Row of a name, made where there is none; -1: no memory. */
int32_t sti_slot_of(sti_lowering *l, const char *name);
/* Operand i; one of kind NONE where it is left out. Valid until a name is added. */
sti_slot *sti_lower_in(sti_lowering *l, const sti_exchange_node *n, int i);
bool sti_lower_has(const sti_exchange_node *n, int i);
stint_status sti_lower_set(sti_lowering *l, const char *name,
                           const sti_lane_value *lane);
stint_status sti_lower_set_known(sti_lowering *l, const char *name,
                                 const sti_exchange_tensor *known);

/* STINT_E_INPUT or STINT_E_UNSUPPORTED "node 'N' (Op): ...". */
stint_status sti_lower_refuse(const sti_lowering *l, stint_status status,
                              const char *format, ...) STI_PRINTF(3, 4);

/* ---- operands ---- */

/* Operand i as a value of the run: a tensor becomes a constant or parameter, in the
 * order that it lies in. */
stint_status sti_lower_lane(sti_lowering *l, const sti_exchange_node *n, int i,
                            sti_lane_value *out);
/* Operand i as a tensor, in the order of its axes; refused where it depends on data. */
stint_status sti_lower_known(sti_lowering *l, const sti_exchange_node *n, int i,
                             const sti_exchange_tensor **out);
/* Whole numbers of operand i, else of the attribute; *count -1: neither is there. */
stint_status sti_lower_list(sti_lowering *l, const sti_exchange_node *n, int i,
                            const char *name, const int64_t **list, int64_t *count);
/* A number of operand i, or `otherwise` where it is left out. */
stint_status sti_lower_number(sti_lowering *l, const sti_exchange_node *n, int i,
                              double otherwise, double *out);

/* ---- lanes ---- */

/* A value whose axes lie in their own order. */
sti_lane_value sti_lane_plain(const sti_lowering *l, stint_value value, int type);
/* Its shape in ONNX's eyes. */
void sti_lane_dims(const sti_lowering *l, const sti_lane_value *v, int64_t *dim);
int64_t sti_lane_dim(const sti_lowering *l, const sti_lane_value *v, int axis);
/* Axis of the graph's value that is ONNX's axis. */
int sti_lane_axis(const sti_lane_value *v, int axis);
/* The value with its axes in this order; a transpose where elements must move. */
stint_value sti_lane_ordered(sti_lowering *l, const sti_lane_value *v,
                             const int8_t *order);
stint_value sti_lane_straight(sti_lowering *l, const sti_lane_value *v);
/* Channels last: axis 1 behind all others. */
void sti_order_last(int rank, int8_t *order);
/* The same elements under a shape, in their own order. */
sti_lane_value sti_lane_reshaped(sti_lowering *l, const sti_lane_value *v, int rank,
                                 const int64_t *dim);
/* The same in whatever order moves the fewest elements (lower_regroup.c). */
sti_lane_value sti_lane_regrouped(sti_lowering *l, const sti_lane_value *v, int rank,
                                  const int64_t *dim);
/* More axes of length 1 in front, until there are `rank`. */
sti_lane_value sti_lane_widened(sti_lowering *l, const sti_lane_value *v, int rank);
/* As f32; whole numbers are converted. */
sti_lane_value sti_lane_f32(sti_lowering *l, const sti_lane_value *v);
/* As the type of elements that whole numbers and others have in the graph. */
sti_lane_value sti_lane_typed(sti_lowering *l, const sti_lane_value *v, int type);

/* The result of the node being lowered, output i. */
stint_status sti_lower_result(sti_lowering *l, const sti_exchange_node *n, int i,
                              const sti_lane_value *like, stint_value value);

/* A constant of the graph: numbers in its room. */
stint_value sti_lower_constant(sti_lowering *l, const stint_shape *shape,
                               const void *data);
stint_value sti_lower_scalar(sti_lowering *l, float value);
stint_value sti_lower_indices(sti_lowering *l, int64_t count, const int64_t *index);

/* An axis from -rank .. rank - 1, counted from 0; STINT_E_INPUT: there is none such. */
stint_status sti_lower_axis_of(const sti_lowering *l, int64_t axis, int rank, int *out);
/* A text attribute that is one of `words`, which end with NULL; the first where it is
 * left out. STINT_E_UNSUPPORTED: it is another. */
stint_status sti_lower_choice(const sti_lowering *l, const sti_exchange_node *n,
                              const char *name, const char *const *words,
                              const char **out);
/* The attribute "axis", counted from 0. */
stint_status sti_lower_axis(const sti_lowering *l, const sti_exchange_node *n,
                            int64_t otherwise, int rank, int *out);
/* Axes of a bit set, all of length 1, are gone. */
sti_lane_value sti_lane_without(sti_lowering *l, const sti_lane_value *x,
                                unsigned gone);
/* The axis last in memory. */
sti_lane_value sti_lane_with_last(sti_lowering *l, const sti_lane_value *x, int axis);
/* A tensor that is known in the order that its reader wants, in which it is then kept;
 * anything else is moved. */
stint_status sti_lower_ordered(sti_lowering *l, const sti_exchange_node *n, int i,
                               int rank, const int8_t *order, sti_lane_value *out);

/* x with ONNX's axis read at constant indices. */
sti_lane_value sti_lane_taken(sti_lowering *l, const sti_lane_value *x, int axis,
                              int64_t count, const int64_t *index);

/* Places of x, straight, as f32 (lower_index.c): of each index along the node's axis;
 * and of rows of *inner elements, by indices [..., *depth]. */
stint_status sti_lower_element_places(sti_lowering *l, const sti_exchange_node *n,
                                      const sti_lane_value *x, sti_lane_value index,
                                      stint_value *at_out);
stint_status sti_lower_row_places(sti_lowering *l, const sti_lane_value *x,
                                  sti_lane_value index, int64_t *inner_out,
                                  int64_t *depth_out, stint_value *at_out);

/* STINT_E_UNSUPPORTED: the node would take rows that are left over for some of a
 * NonMaxSuppression. *padded_out: its results have such rows, too (lower_suppress.c).
 */
stint_status sti_lower_check_padded(sti_lowering *l, const sti_exchange_node *n,
                                    bool *padded_out);

/* Two operands brought to one order and rank. */
stint_status sti_lower_pair(sti_lowering *l, sti_lane_value *a, sti_lane_value *b);

#define STI_LOWER(op, name, min_in, max_in) sti_lower_fn sti_lower_##name;
#include "exchange/lower_list.h"
#undef STI_LOWER

#endif
