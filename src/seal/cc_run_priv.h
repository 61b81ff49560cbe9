/* The compiler while it runs the program with gates in the place of bits. Private to
 * cc_*.c.
 *
 * Variables live in one store, a literal a bit. A journal notes what every write
 * overwrote, in frames: one for each branch under a secret condition, each loop, each
 * loop body and each call. So a branch can be undone after its result was noted, and
 * two results merged bit by bit; and break, continue and return note the state that
 * leaves, which is merged where it arrives. What is never written costs nothing. */
#ifndef STI_SEAL_CC_RUN_PRIV_H
#define STI_SEAL_CC_RUN_PRIV_H

#include "seal/bit_vector.h"
#include "seal/cc_priv.h"

/* What a write overwrote. */
typedef struct cc_record {
    int64_t at;
    sti_literal before;
    uint32_t stamp_before;
} cc_record;

typedef struct cc_change {
    int64_t at;
    sti_literal value;
} cc_change;

/* A state that leaves a target early, under a condition. */
typedef struct cc_exit {
    sti_literal condition;
    cc_change *change;
    int64_t changes;
} cc_exit;

/* Where breaks, continues or returns arrive. */
typedef struct cc_target {
    int64_t frame; /* its own */
    cc_exit *exit;
    int64_t exits, capacity;
} cc_target;

typedef struct cc_frame {
    int64_t first;         /* record */
    uint32_t stamp;        /* of places that it has a record of */
    sti_literal condition; /* of a branch: that it is taken; of a target: that no exit
                              to it was taken so far */
} cc_frame;

/* Where an array parameter's elements are, or where a variable of a call is. */
typedef struct cc_activation {
    cc_function *function;
    int64_t base;             /* of its variables in the store */
    int64_t *reference;       /* [slots]: begin of an array handed by reference */
    const cc_type **referred; /* [slots]: its type */
    bool *read_only;          /* [slots] */
    int64_t result;           /* in the store */
    cc_target *returns, *breaks, *continues; /* the innermost of each */
    struct cc_activation *caller;
} cc_activation;

typedef struct cc_value cc_value;
typedef struct cc_run cc_run;
struct cc_run {
    /* sti_cc_eval and sti_cc_call: places have expressions in them, and those have
     * places and calls. */
    stint_status (*eval)(cc_run *c, const cc_node *n, cc_value *out);
    stint_status (*invoke)(cc_run *c, const cc_node *n, cc_value *out);
    cc_program *program;
    sti_netlist *netlist;
    sti_literal *store;
    uint32_t *stamp; /* of the store's places */
    int64_t top, store_capacity;
    cc_record *record;
    int64_t records, record_capacity;
    cc_frame *frame;
    int64_t frames, frame_capacity;
    uint32_t stamps;
    cc_activation *call; /* the running one */
    bool dead;           /* no path leads here: the rest of the block is skipped */
    int64_t steps, max_steps;
    int depth;
    int64_t *mark; /* of the store's places, while states are merged */
    int64_t marks;
    int64_t noted; /* changes kept in exits, all together */
};

/* cc_state.c */
stint_status sti_cc_push_store(cc_run *c, int64_t bits, int64_t *at_out);
void sti_cc_pop_store(cc_run *c, int64_t top);
stint_status sti_cc_write(cc_run *c, int64_t at, sti_literal value);
stint_status sti_cc_step(cc_run *c, int32_t line); /* counts work, sets the line */
void sti_cc_run_fini(cc_run *c);

/* A branch under a secret condition: begin, the one side, turn, the other, end. */
typedef struct cc_branch {
    sti_literal condition;
    cc_change *change; /* of the first side */
    int64_t changes;
    bool first_dead;
} cc_branch;
stint_status sti_cc_branch_begin(cc_run *c, cc_branch *branch, sti_literal condition);
stint_status sti_cc_branch_turn(cc_run *c, cc_branch *branch);
stint_status sti_cc_branch_end(cc_run *c, cc_branch *branch);
void sti_cc_branch_fini(cc_run *c, cc_branch *branch);

/* A target: begin, exits as they come, end. `keep`: changes at this place and above are
 * forgotten. */
stint_status sti_cc_target_begin(cc_run *c, cc_target *target);
stint_status sti_cc_target_exit(cc_run *c, cc_target *target, sti_literal condition);
stint_status sti_cc_target_end(cc_run *c, cc_target *target, int64_t keep);
void sti_cc_target_fini(cc_run *c, cc_target *target);

/* cc_place.c */

/* A value: an integer's bits, or where a struct lies. */
struct cc_value {
    const cc_type *type;
    sti_literal bit[STI_BITS_MAX];
    int64_t at; /* of a struct */
};

enum { CC_MAX_SECRETS = 4 };

/* What can be assigned to: a place in the store, and indices that are secret. */
typedef struct cc_place {
    const cc_type *type;
    int64_t at;
    bool read_only;
    int secrets;
    struct {
        sti_literal bit[STI_BITS_MAX];
        int64_t count, stride;
    } secret[CC_MAX_SECRETS];
} cc_place;

bool sti_cc_known(const cc_value *value, int64_t *out);
stint_status sti_cc_place(cc_run *c, const cc_node *n, cc_place *out);
stint_status sti_cc_load(cc_run *c, const cc_place *place, cc_value *out);
stint_status sti_cc_store_value(cc_run *c, const cc_place *place,
                                const cc_value *value);
stint_status sti_cc_copy(cc_run *c, int64_t from, const cc_place *to);
/* An argument that is handed by reference. */
stint_status sti_cc_reference(cc_run *c, const cc_node *n, cc_place *out);

/* cc_expr.c */
stint_status sti_cc_eval(cc_run *c, const cc_node *n, cc_value *out);
/* An integer's value as another type has it. */
void sti_cc_convert(cc_run *c, const cc_type *type, cc_value *value);
/* Is it not zero? */
stint_status sti_cc_truth(cc_run *c, const cc_node *n, sti_literal *out);
stint_status sti_cc_binary(cc_run *c, const cc_node *n, int op, const cc_value *a,
                           const cc_value *b, cc_value *out);

/* cc_run.c */
stint_status sti_cc_call(cc_run *c, const cc_node *n, cc_value *out);
stint_status sti_cc_initialise(cc_run *c, const cc_node *n, const cc_type *type,
                               int64_t at);
stint_status sti_cc_execute(cc_run *c, const cc_node *n);
/* A function's body, its parameters in place: call->result holds what it returned. */
stint_status sti_cc_enter(cc_run *c, cc_activation *call);
stint_status sti_cc_activate(cc_run *c, cc_function *f, int32_t line,
                             cc_activation *call);
void sti_cc_leave(cc_run *c, cc_activation *call);

#endif
