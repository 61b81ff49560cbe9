/* Lifetimes, offsets, exact peak.
 *
 * A plan fixes where every byte of one run of a graph lies. Regions: PARAM, STATE and
 * FIXED are shared by all lanes, RESULT is the block that the shard tree sums
 * (gradients, state contributions, metrics, in that order, each 64-byte aligned), FETCH
 * is read by the host, ARENA holds inputs, activations, saved forms and per-node
 * scratch, overlaid by lifetime. */
#ifndef STI_PLAN_PLAN_H
#define STI_PLAN_PLAN_H

#include "graph/graph.h"

typedef enum sti_region {
    STI_REGION_NONE, /* an optional output that nobody reads */
    STI_REGION_PARAM,
    STI_REGION_STATE,
    STI_REGION_FIXED,
    STI_REGION_RESULT,
    STI_REGION_FETCH,
    STI_REGION_KEPT, /* made once, of frozen values (sti_graph_keep_constants) */
    STI_REGION_ARENA,
    STI_REGIONS
} sti_region;

typedef struct sti_allocation {
    sti_region region;
    size_t offset, bytes; /* bytes rounded up to 64 */
    stint_value root; /* the value whose bytes these are (views, in-place), or itself */
    int32_t first, last; /* nodes between which it lives; inputs from -1 */
} sti_allocation;

typedef struct sti_plan {
    /* What is run: the caller's, borrowed, which must outlive the plan; or, where
     * parameters change within a run (sti_graph_update_at_once) or what is frozen is
     * made ready once (sti_graph_keep_constants), the plan's own copy, with the same
     * values and further nodes. */
    const stint_graph *graph;
    stint_graph *own; /* NULL: borrowed */
    int threads;
    sti_allocation *allocation; /* [values] */
    size_t *scratch_offset;     /* [nodes], in the arena */
    size_t region_bytes[STI_REGIONS];
    /* Parts of the arena at its peak, for the plan's listing. */
    size_t saved_bytes; /* made by forward nodes, read by backward ones, alive at the
                           peak */
    size_t transient_bytes, scratch_bytes, input_bytes;
    int32_t peak_node;
    int32_t once_nodes; /* that run before the first run alone: the first ones */
    /* Bytes alive at each node, [nodes]: the memory timeline. */
    size_t *live_bytes;
} sti_plan;

/* threads: of the team that will run it (scratch depends on it). STINT_E_UNSUPPORTED
 * when an operator has no kernel on this device. */
stint_status sti_plan_create(const stint_graph *graph, int threads,
                             sti_plan **plan_out);
void sti_plan_destroy(sti_plan *plan);

/* Do both keep the same numbers at the same places of KEPT, of the same parameters?
 * Executors of either then run on one block, which any of them makes. */
bool sti_plan_keeps_alike(const sti_plan *a, const sti_plan *b);

/* When results are final: once `node` has run, all bytes of RESULT from `from` on are.
 */
typedef struct sti_final_point {
    int32_t node;
    size_t from;
} sti_final_point;
/* By rising node and falling `from`, which ends at 0: a backward pass gives the last
 * parameter's gradient first. points_out [outputs of the graph]; the number of points.
 */
int sti_plan_final_points(const sti_plan *plan, sti_final_point *points_out);

/* Offsets for intervals [first, last] of `bytes` each, so that overlapping ones are
 * disjoint: largest first, lowest fitting gap. Returns the total; offsets 64-byte
 * aligned. STINT_E_MEMORY. */
typedef struct sti_interval {
    int32_t first, last;
    size_t bytes, offset;
} sti_interval;
stint_status sti_plan_offsets(sti_interval *intervals, int64_t count,
                              size_t *total_out);

/* Memory over one step as a self-contained SVG, with node scopes as labels: `lanes`
 * runs of the graph side by side. extra_bytes is drawn as a base under the curve,
 * budget_bytes (0: none) as a line. */
stint_status sti_plan_timeline_svg(const sti_plan *plan, int lanes, size_t extra_bytes,
                                   size_t budget_bytes, sti_text *out);

#endif
