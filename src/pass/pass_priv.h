/* Shared by the passes. */
#ifndef STI_PASS_PRIV_H
#define STI_PASS_PRIV_H

#include "pass/pass.h"

#define STI_PASS(function, name, help) \
    stint_status sti_pass_##function(stint_graph *graph, sti_pass_note *note);
#include "pass/pass_list.h"
#undef STI_PASS

/* Reads of each value by nodes and by the graph's outputs. */
typedef struct sti_uses {
    int32_t *count;   /* [values] */
    sti_node **first; /* [values]: a reading node (the only one when count is 1), or
                         NULL when only outputs of the graph read it */
    uint8_t *output;  /* [values]: how many outputs of the graph it is, capped */
} sti_uses;

stint_status sti_uses_create(const stint_graph *graph, sti_uses *uses);
void sti_uses_destroy(sti_uses *uses);

/* The value whose bytes these are: through views and in-place nodes. root[values] is
 * filled for nodes in order. */
void sti_pass_roots(const stint_graph *graph, stint_value *root);

/* Forget in-place marks: they hold for one order of one set of nodes. */
void sti_pass_clear_inplace(stint_graph *graph);

/* Bytes that values share without being rewritten: a view has its input's. content
 * [values]. */
void sti_pass_contents(const stint_graph *graph, stint_value *content);

void sti_pass_note_set(sti_pass_note *note, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* The gradient of some channels of a weight, from that of all of it (shares.c); then
 * the slices that it reads to their places. */
stint_status sti_pass_share(stint_graph *graph, stint_value param, stint_value gradient,
                            const sti_train_share *share, stint_value *slice_out);
stint_status sti_pass_place_shares(stint_graph *graph);

#endif
