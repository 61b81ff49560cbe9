/* The ready list against its definition, on random graphs. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

#include "base/memory.h"
#include "base/ready.h"
#include "base/rng.h"

enum { TASKS = 200 };

typedef struct graph {
    int64_t first[TASKS + 1];
    int32_t next[TASKS * 3];
    int path[TASKS], level[TASKS];
} graph;

/* Up to three edges a task, to higher numbers. */
static void make(uint64_t seed, graph *g)
{
    int64_t edges = 0;
    memset(g, 0, sizeof *g);
    for (int t = 0; t < TASKS; t++) {
        uint32_t word[4];
        sti_random4(seed, STI_STREAM_TEST, (uint64_t)t, 0, word);
        g->first[t] = edges;
        for (uint32_t e = 0; e < word[0] % 4 && e < 3 && t + 1 < TASKS; e++)
            g->next[edges++] =
                t + 1 + (int32_t)sti_below(word[1 + e], (uint32_t)(TASKS - t - 1));
    }
    g->first[TASKS] = edges;
    for (int t = TASKS - 1; t >= 0; t--)
        for (int64_t i = g->first[t]; i < g->first[t + 1]; i++)
            if (g->path[g->next[i]] + 1 > g->path[t])
                g->path[t] = g->path[g->next[i]] + 1;
    for (int t = 0; t < TASKS; t++)
        for (int64_t i = g->first[t]; i < g->first[t + 1]; i++)
            if (g->level[t] + 1 > g->level[g->next[i]])
                g->level[g->next[i]] = g->level[t] + 1;
}

static int is_ready(const graph *g, const int *state, int task)
{
    for (int t = 0; t < task; t++)
        for (int64_t i = g->first[t]; i < g->first[t + 1]; i++)
            if (g->next[i] == task && state[t] != 2)
                return 0;
    return state[task] == 0;
}

/* The task that must come next, by looking at all; -1: none may. */
static int expected(const graph *g, const int *state, int by_levels)
{
    int best = -1, lowest = TASKS;
    for (int t = 0; t < TASKS; t++)
        if (state[t] != 2 && g->level[t] < lowest)
            lowest = g->level[t];
    for (int t = 0; t < TASKS; t++)
        if (is_ready(g, state, t) && (!by_levels || g->level[t] == lowest) &&
            (best < 0 || g->path[t] > g->path[best]))
            best = t;
    return best;
}

static void check(uint64_t seed, int by_levels, int width)
{
    static graph g;
    int state[TASKS] = {0}, done = 0; /* 1: taken, 2: done */
    sti_ready *ready;
    make(seed, &g);
    const sti_ready_graph shape = {TASKS, g.first, g.next};
    assert_int_equal(sti_ready_create(&shape, by_levels, &ready), STINT_OK);
    for (;;) {
        int32_t task[8];
        int64_t count = sti_ready_take(ready, width, task);
        for (int64_t i = 0; i < count; i++) {
            assert_int_equal(task[i], expected(&g, state, by_levels));
            state[task[i]] = 1;
        }
        if (count < width)
            assert_int_equal(expected(&g, state, by_levels), -1);
        if (count == 0)
            break;
        for (int64_t i = 0; i < count; i++, done++) {
            state[task[i]] = 2;
            sti_ready_done(ready, task[i]);
        }
    }
    assert_int_equal(done, TASKS);
    sti_ready_destroy(ready);
}

static void tasks_come_by_longest_path(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 4; seed++)
        for (int width = 1; width <= 8; width += 7)
            for (int by_levels = 0; by_levels < 2; by_levels++)
                check(seed, by_levels, width);
}

static void no_tasks_are_done_at_once(void **state)
{
    const int64_t first[1] = {0};
    const sti_ready_graph shape = {0, first, NULL};
    sti_ready *ready;
    int32_t task;
    (void)state;
    assert_int_equal(sti_ready_create(&shape, false, &ready), STINT_OK);
    assert_int_equal(sti_ready_take(ready, 1, &task), 0);
    sti_ready_destroy(ready);
    sti_ready_destroy(NULL);
}

static void allocation_failures_are_clean(void **state)
{
    static graph g;
    sti_ready *ready;
    (void)state;
    make(9, &g);
    const sti_ready_graph shape = {TASKS, g.first, g.next};
    for (int64_t n = 1;; n++) {
        sti_alloc_fail_nth(n);
        const stint_status st = sti_ready_create(&shape, true, &ready);
        sti_alloc_fail_nth(0);
        if (st == STINT_OK)
            break;
        assert_int_equal(st, STINT_E_MEMORY);
    }
    sti_ready_destroy(ready);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(tasks_come_by_longest_path),
        cmocka_unit_test(no_tasks_are_done_at_once),
        cmocka_unit_test(allocation_failures_are_clean),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
