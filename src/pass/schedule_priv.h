/* Inside the schedule: what the state of an order in the making is, for those who look
 * ahead (schedule_ahead.c) and for the bound (schedule_bound.c). */
#ifndef STI_PASS_SCHEDULE_PRIV_H
#define STI_PASS_SCHEDULE_PRIV_H

#include "pass/pass_priv.h"

typedef struct sti_scheduler {
    const stint_graph *graph;
    int32_t nodes, values;
    stint_value *content; /* [values] */
    size_t *bytes;        /* [values] of a content in the arena, 0 elsewhere */
    int32_t *readers;     /* [values]: nodes that still have to read the content */
    int32_t *waiting;     /* [nodes]: inputs whose producers have not run */
    int32_t *first_user;  /* [values]: head of a list of reading nodes, -1: none */
    int32_t *next_user;   /* [reads]: list links; a read is user_base[node] + i */
    int32_t *user_base;   /* [nodes + 1] */
    int32_t *read_node;   /* [reads] */
    uint8_t *done;        /* [nodes] */
    int32_t *ready;       /* [nodes]: early candidates, in no particular order */
    int32_t ready_count;
    int32_t
        *first_reader;    /* [values]: the same list of the nodes that read a content */
    int32_t *next_reader; /* [reads] */
    size_t *gain;   /* [nodes]: bytes that a ready one frees beyond those it makes */
    int32_t *order; /* [nodes] */
    size_t live, height; /* bytes alive now, and the most so far */
} sti_scheduler;

/* ---- schedule_state.c ---- */

bool sti_schedule_is_view(const sti_node *node); /* makes no bytes of its own */

/* Does input i of the node repeat an earlier one's content? */
bool sti_schedule_repeats(const sti_scheduler *s, const sti_node *node, int32_t i);

/* Bytes that running the node makes and frees, now; that it makes room for on top of
 * what is alive: what it makes, scratch, less what its result lies over. */
void sti_schedule_effect(const sti_scheduler *s, const sti_node *node, size_t *made,
                         size_t *freed);
size_t sti_schedule_scratch(const sti_scheduler *s, const sti_node *node);
size_t sti_schedule_room(const sti_scheduler *s, const sti_node *node);
/* It has read its operands; and not, after all. */
void sti_schedule_consume(sti_scheduler *s, const sti_node *node, int32_t by);

/* ---- schedule_ahead.c, schedule_bound.c ---- */

/* Up to `most` nodes that can be run now, one after another, without more than the
 * height so far, and free more than they make; their number, 0: there are none. */
int sti_schedule_chain(sti_scheduler *s, int most, int32_t *chain_out);

/* Bytes that any order takes at its height; by the square of the nodes, so only where
 * it is told. STINT_E_MEMORY. */
stint_status sti_schedule_bound(const sti_scheduler *s, size_t *bytes_out);

enum { STI_SCHEDULE_CHAIN = 8 }; /* the most nodes that are looked ahead */

#endif
