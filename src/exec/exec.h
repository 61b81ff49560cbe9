/* Runs a planned graph: a flat list of kernel calls, addresses fixed beforehand.
 * Nothing is allocated, looked up or branched on by name inside a run. */
#ifndef STI_EXEC_EXEC_H
#define STI_EXEC_EXEC_H

#include "plan/plan.h"

typedef struct sti_exec sti_exec;

/* Memory a run works in, all borrowed: at least plan->region_bytes[r] each, 64-byte
 * aligned. Lanes share PARAM and STATE and have an ARENA each. */
typedef struct sti_exec_memory {
    void *region[STI_REGIONS];
} sti_exec_memory;

/* What an executor takes of its own, in the mean: calls and slots of addresses. */
#define STI_EXEC_NODE_BYTES ((size_t)400)

stint_status sti_exec_create(const sti_plan *plan, const sti_exec_memory *memory,
                             sti_exec **exec_out);
void sti_exec_destroy(sti_exec *exec);
/* Move a region, for instance RESULT of the next shard. */
void sti_exec_set_region(sti_exec *exec, sti_region region, void *base);
/* Address of an input to fill, or of a fetched value to read. */
void *sti_exec_address(const sti_exec *exec, stint_value value);

/* Tell `fn` in the course of every run from now on: after each point's node has run.
 * points [count] by rising node, borrowed; count 0: no more. A run that is checked does
 * not tell. */
typedef void sti_exec_point_fn(void *user, const sti_final_point *point);
void sti_exec_set_ready_callback(sti_exec *exec, const sti_final_point *points,
                                 int count, sti_exec_point_fn *fn, void *user);

/* What is run once (plan/plan.h, sti_graph_keep_constants), into KEPT: after the frozen
 * values that it depends on are there, and before the first run; again only where they
 * have changed. Nothing where the plan has no such nodes. Executors that share KEPT
 * need it done by one of them. */
void sti_exec_run_kept(sti_exec *exec, const sti_team *team);

/* One run. team->threads must be <= plan->threads. */
void sti_exec_run(sti_exec *exec, const sti_team *team, const sti_step *step);

/* As sti_exec_run, but looks at every f32 output of every node: records and returns the
 * first value that holds NaN or infinity (STINT_E_FAILED: name, operator, shape, how
 * many), else STINT_OK. For diagnosis after a bad loss; also checks params, state and
 * inputs first. */
stint_status sti_exec_run_checked(sti_exec *exec, const sti_team *team,
                                  const sti_step *step);

/* As sti_exec_run, adding each node's time to ns_total[node] (caller's array). */
void sti_exec_run_timed(sti_exec *exec, const sti_team *team, const sti_step *step,
                        int64_t *ns_total);

#endif
