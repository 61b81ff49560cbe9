/* Plan, memory and executor of a graph, for tests. */
#ifndef TESTS_EXEC_RUNNER_H
#define TESTS_EXEC_RUNNER_H

#include "exec/exec.h"

typedef struct runner {
    sti_plan *plan;
    sti_exec *exec;
    sti_exec_memory memory;
} runner;

/* cmocka.h must have been included: a failure ends the test. */
static inline void runner_init(runner *r, const stint_graph *graph, int threads)
{
    *r = (runner){0};
    assert_int_equal(sti_plan_create(graph, threads, &r->plan), STINT_OK);
    for (int i = STI_REGION_NONE + 1; i < STI_REGIONS; i++) {
        r->memory.region[i] = sti_alloc(r->plan->region_bytes[i], "test");
        assert_non_null(r->memory.region[i]);
    }
    assert_int_equal(sti_exec_create(r->plan, &r->memory, &r->exec), STINT_OK);
}

static inline void runner_fini(runner *r)
{
    sti_exec_destroy(r->exec);
    sti_plan_destroy(r->plan);
    for (int i = 0; i < STI_REGIONS; i++)
        sti_free(r->memory.region[i]);
}

#endif
