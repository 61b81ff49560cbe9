/* Netlist: a graph of two-input gates in which equal gates are one.
 *
 * Nodes are the constant false (node 0), inputs, ANDs and XORs; a literal is twice a
 * node's number, plus one where it is negated, so negations cost nothing. Gates are
 * made through calls that fold constants, order their inputs and look for an equal gate
 * first. What no output needs is never mapped. Nodes are in topological order by
 * number. An allocation that fails is remembered (sti_netlist_status) and the literals
 * given after it are false. Serves one thread at a time. */
#ifndef STI_SEAL_NETLIST_H
#define STI_SEAL_NETLIST_H

#include <stdbool.h>
#include <stdint.h>

#include "stint/status.h"

typedef uint32_t sti_literal;

#define STI_FALSE ((sti_literal)0)
#define STI_TRUE  ((sti_literal)1)

typedef enum sti_gate_kind {
    STI_GATE_CONSTANT,
    STI_GATE_INPUT,
    STI_GATE_AND,
    STI_GATE_XOR
} sti_gate_kind;

typedef struct sti_gate {
    sti_literal a, b; /* a < b; of an XOR neither is negated */
    int32_t line;     /* of the source; 0: none */
    sti_gate_kind kind;
} sti_gate;

/* The most gates: numbers of literals stay within 31 bits. */
#define STI_NETLIST_MAX_NODES (INT64_C(1) << 27)

typedef struct sti_netlist {
    sti_gate *gate;
    int64_t nodes, capacity;
    uint32_t *bucket; /* hash table of node numbers, 0: free */
    int64_t buckets;
    int32_t line;      /* given to gates made from now on */
    int64_t max_nodes; /* 0: STI_NETLIST_MAX_NODES */
    stint_status status;
} sti_netlist;

/* An empty netlist with the constant; free with fini, also after a failure. */
stint_status sti_netlist_init(sti_netlist *netlist);
void sti_netlist_fini(sti_netlist *netlist);

/* A new input, which no other node equals. All inputs come before the first gate. */
sti_literal sti_netlist_input(sti_netlist *netlist);

sti_literal sti_netlist_and(sti_netlist *netlist, sti_literal a, sti_literal b);
sti_literal sti_netlist_xor(sti_netlist *netlist, sti_literal a, sti_literal b);
sti_literal sti_netlist_or(sti_netlist *netlist, sti_literal a, sti_literal b);
/* choose ? a : b. */
sti_literal sti_netlist_mux(sti_netlist *netlist, sti_literal choose, sti_literal a,
                            sti_literal b);
/* Two or three of three. */
sti_literal sti_netlist_majority(sti_netlist *netlist, sti_literal a, sti_literal b,
                                 sti_literal c);

static inline sti_literal sti_not(sti_literal a)
{
    return a ^ 1;
}

static inline bool sti_is_constant(sti_literal a)
{
    return a <= STI_TRUE;
}

/* ANDs and XORs among the nodes. */
static inline bool sti_gate_is_logic(const sti_gate *gate)
{
    return gate->kind >= STI_GATE_AND;
}

#endif
