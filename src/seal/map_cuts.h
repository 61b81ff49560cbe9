/* Cuts of a netlist: sets of at most four nodes from which a node follows, with the
 * function, and the cell that computes it where one does. Private to the room. */
#ifndef STI_SEAL_MAP_CUTS_H
#define STI_SEAL_MAP_CUTS_H

#include "seal/cells.h"
#include "seal/netlist.h"

/* Cuts kept of a node, the most promising first. */
enum { STI_CUTS_KEPT = 12 };

typedef struct sti_cut {
    uint32_t leaf[STI_CELL_INPUTS]; /* nodes, ascending */
    uint16_t table;                 /* over all four; bit r as in cells.h */
    uint8_t size;
    bool fits;     /* a cell computes it */
    int32_t depth; /* of the node by this cut */
    float flow;    /* cells that the node needs, shared ones by their shares */
} sti_cut;

/* How a cell computes a function of leaves: input i is leaf from[i], negated where bit
 * i of negate is set, and the answer is negated, too, where `negate_out`. */
typedef struct sti_match {
    uint8_t kind; /* plus one; 0: no cell computes it */
    uint8_t negate, negate_out;
    uint8_t from[STI_CELL_INPUTS];
} sti_match;

/* All functions of two to four inputs: find with sti_matches_find. */
typedef struct sti_matches {
    sti_match *of_size[STI_CELL_INPUTS + 1];
} sti_matches;

stint_status sti_matches_init(sti_matches *matches);
void sti_matches_fini(sti_matches *matches);
const sti_match *sti_matches_find(const sti_matches *matches, const sti_cut *cut);

/* What the cover knows of a node. */
typedef struct sti_map_node {
    sti_cut cut[STI_CUTS_KEPT]; /* [cuts]; the chosen one first */
    int32_t cuts;
    int32_t users; /* cells and outputs that need it */
    float shares;  /* estimate of the same, 1 or more */
    float flow;    /* of the chosen cut, over shares */
    int32_t depth;
    bool reached; /* by an output */
} sti_map_node;

/* Fill in node->cut of a gate from those of its inputs, best first, and flow and depth
 * by the best. */
void sti_cuts_enumerate(const sti_netlist *netlist, const sti_matches *matches,
                        sti_map_node *nodes, int64_t node);

#endif
