/* Inside the graph room: the struct behind stint_graph. */
#ifndef STI_GRAPH_PRIV_H
#define STI_GRAPH_PRIV_H

#include "graph/graph.h"

/* No operator has more outputs; sti_graph_add refuses one that does. */
#define STI_GRAPH_MAX_OUT 8

struct stint_graph {
    stint_mode mode;
    sti_arena *arena; /* rows, nodes, names, attributes */

    /* Arrays of pointers into the arena: a row never moves once it is made. */
    sti_node **node;
    int32_t node_count, node_capacity;
    sti_value_row **value;
    int32_t value_count, value_capacity;
    sti_output *output;
    int32_t output_count, output_capacity;

    const char **scope; /* open scopes, each with those around it in front */
    int32_t scope_count, scope_capacity;
    const sti_node *backward_of; /* sti_graph_set_backward */
    bool fixed;                  /* sti_graph_set_fixed */
    bool norm_frozen;            /* sti_graph_freeze_norm */
    bool inputs_kept;            /* sti_graph_keep_inputs */
    bool sampled;                /* sti_graph_sample */
    sti_update_rule update;      /* sti_graph_update_at_once */
    bool keeps_constants;        /* sti_graph_keep_constants */
    int look_ahead;              /* sti_graph_set_look_ahead */
    sti_graph_rest_fn *rest;     /* sti_graph_on_rest */
    void *rest_user;

    stint_status status; /* first failure of a builder call */
    const char *failure; /* its text */
};

/* Killed nodes carry this id until the sweep. */
#define STI_NODE_DEAD (-1)

/* STINT_E_INPUT with a sentence when rank, a dimension or the byte count is not
 * possible. */
stint_status sti_shape_check(const stint_shape *shape, const char *what);

#endif
