/* Running planned graphs of toy operators. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>

#include "exec/exec.h"
#include "exec/runner.h"
#include "graph/toy_ops.h"

static const sti_step first_step = {.seed = 1};

/* y = sum(reverse(split(2 x)) + p); FETCH of the reversed, METRIC of the sum. */
typedef struct fixture {
    stint_graph *g;
    stint_value x, p, rev, sum;
} fixture;

static fixture make(void)
{
    fixture t = {0};
    stint_shape shape = STINT_SHAPE(5);
    assert_int_equal(stint_graph_create(STINT_TRAIN, &t.g), STINT_OK);
    t.x = stint_input(t.g, "x", &shape);
    stint_scope_begin(t.g, "layer1");
    t.p = stint_param(t.g, "p", &shape, NULL);
    stint_value a = toy_scaled(t.g, t.x, 2);
    t.rev = toy1(t.g, &toy_reverse, toy1(t.g, &toy_split, a));
    stint_value flat = toy1(t.g, &toy_flat, toy2(t.g, t.rev, t.p));
    t.sum = toy1(t.g, &toy_sum, flat);
    stint_scope_end(t.g);
    toy_output(t.g, STI_OUTPUT_FETCH, t.rev, -1, "rev");
    toy_output(t.g, STI_OUTPUT_METRIC, t.sum, -1, "sum");
    assert_int_equal(stint_graph_check(t.g), STINT_OK);
    return t;
}

static void fill(runner *r, stint_value value, const float *from, int count)
{
    memcpy(sti_exec_address(r->exec, value), from, (size_t)count * sizeof *from);
}

static void values_come_out(void **state)
{
    (void)state;
    fixture t = make();
    runner r;
    runner_init(&r, t.g, 2);
    const float x[] = {1, -2, 3, -4, 5}, p[] = {1, 1, 1, 1, 1};
    const float want[] = {10, 0, 6, 0, 2};
    fill(&r, t.x, x, 5);
    fill(&r, t.p, p, 5);
    sti_exec_run(r.exec, &sti_team_serial, &first_step);
    assert_memory_equal(sti_exec_address(r.exec, t.rev), want, sizeof want);
    assert_true(*(float *)sti_exec_address(r.exec, t.sum) == 23.0f);
    assert_null(sti_exec_address(r.exec, -1));
    assert_null(sti_exec_address(r.exec, 1000));
    assert_null(sti_exec_address(r.exec, t.rev - 1)); /* bits that nobody reads */
    runner_fini(&r);
    stint_graph_destroy(t.g);
}

typedef struct told {
    const runner *r;
    stint_value sum;
    int times;
    float seen;
} told;

static void note_point(void *user, const sti_final_point *point)
{
    told *t = user;
    t->times++;
    t->seen = *(const float *)sti_exec_address(t->r->exec, t->sum);
    assert_int_equal(point->from, 0);
}

/* Told when the result is there, in a run with and without a clock, and not any more
 * when it is not asked for. */
static void final_results_are_told(void **state)
{
    (void)state;
    fixture t = make();
    runner r;
    runner_init(&r, t.g, 1);
    const float x[] = {1, 2, 3, 4, 5};
    int64_t ns[16] = {0};
    sti_final_point points[8];
    told seen = {.r = &r, .sum = t.sum};
    assert_int_equal(sti_plan_final_points(r.plan, points), 1);
    fill(&r, t.x, x, 5);
    sti_exec_set_ready_callback(r.exec, points, 1, note_point, &seen);
    sti_exec_run(r.exec, &sti_team_serial, &first_step);
    assert_int_equal(seen.times, 1);
    assert_true(seen.seen == 30.0f);
    sti_exec_run_timed(r.exec, &sti_team_serial, &first_step, ns);
    assert_int_equal(seen.times, 2);
    sti_exec_set_ready_callback(r.exec, NULL, 0, NULL, NULL);
    sti_exec_run(r.exec, &sti_team_serial, &first_step);
    assert_int_equal(seen.times, 2);
    runner_fini(&r);
    stint_graph_destroy(t.g);
}

static void a_region_can_move(void **state)
{
    (void)state;
    fixture t = make();
    runner r;
    runner_init(&r, t.g, 1);
    const float x[] = {1, 2, 3, 4, 5};
    size_t bytes = r.plan->region_bytes[STI_REGION_RESULT];
    float *other = sti_alloc(bytes, "test");
    fill(&r, t.x, x, 5);
    sti_exec_run(r.exec, &sti_team_serial, &first_step);
    float *old = sti_exec_address(r.exec, t.sum);
    assert_true(*old == 30.0f);
    sti_exec_set_region(r.exec, STI_REGION_RESULT, other);
    *old = -1.0f;
    fill(&r, t.x, x, 5);
    sti_exec_run(r.exec, &sti_team_serial, &first_step);
    assert_true(*old == -1.0f);
    assert_ptr_equal(sti_exec_address(r.exec, t.sum), other);
    assert_true(*other == 30.0f);
    sti_free(other);
    runner_fini(&r);
    stint_graph_destroy(t.g);
}

static void a_run_allocates_nothing(void **state)
{
    (void)state;
    fixture t = make();
    runner r;
    runner_init(&r, t.g, 2);
    sti_team team = {.threads = 2};
    int64_t before = sti_alloc_count(), ns[16] = {0};
    for (int i = 0; i < 100; i++) {
        sti_exec_run(r.exec, &team, &first_step);
        sti_exec_run_timed(r.exec, &team, &first_step, ns);
        assert_int_equal(sti_exec_run_checked(r.exec, &team, &first_step), STINT_OK);
    }
    assert_int_equal(sti_alloc_count(), before);
    assert_true(ns[0] > 0 || ns[2] > 0);
    assert_int_equal(ns[sti_graph_node_count(t.g)], 0);
    runner_fini(&r);
    stint_graph_destroy(t.g);
}

static void bad_values_are_named(void **state)
{
    (void)state;
    fixture t = make();
    runner r;
    runner_init(&r, t.g, 1);
    float x[] = {1, 2, 3, 4, 5}, p[] = {0, 0, NAN, 0, INFINITY};
    fill(&r, t.x, x, 5);
    fill(&r, t.p, p, 5);
    assert_int_equal(sti_exec_run_checked(r.exec, &sti_team_serial, &first_step),
                     STINT_E_FAILED);
    assert_string_equal(stint_last_error(),
                        "param layer1.p, [5] f32: 1 NaN and 1 infinite of 5 values, "
                        "the first at element 2");
    p[2] = p[4] = 0;
    x[3] = 3e38f; /* finite, but twice as much is not */
    fill(&r, t.x, x, 5);
    fill(&r, t.p, p, 5);
    assert_int_equal(sti_exec_run_checked(r.exec, &sti_team_serial, &first_step),
                     STINT_E_FAILED);
    assert_string_equal(stint_last_error(),
                        "result of toy_scale in layer1, [5] f32: 0 NaN and 1 infinite "
                        "of 5 values, the first at element 3");
    runner_fini(&r);
    stint_graph_destroy(t.g);
}

/* Kernels that run on the calling thread see denormals flushed as on any worker. */
static void denormals_are_flushed_and_the_mode_restored(void **state)
{
    (void)state;
    fixture t = make();
    runner r;
    runner_init(&r, t.g, 1);
    const float x[] = {1e-40f, 0, 0, 0, 0}, p[5] = {0};
    fill(&r, t.x, x, 5);
    fill(&r, t.p, p, 5);
    sti_exec_run(r.exec, &sti_team_serial, &first_step);
    uint32_t bits;
    memcpy(&bits, sti_exec_address(r.exec, t.sum), sizeof bits);
#if defined(__SSE2__)
    assert_int_equal(bits, 0);
#endif
    volatile float tiny = 1e-40f;
    float twice = tiny * 2.0f;
    memcpy(&bits, &twice, sizeof bits);
    assert_true(bits != 0);
    runner_fini(&r);
    stint_graph_destroy(t.g);
}

static void bad_memory_is_refused(void **state)
{
    (void)state;
    fixture t = make();
    sti_plan *plan = NULL;
    sti_exec *exec = NULL;
    sti_exec_memory memory = {{0}};
    assert_int_equal(sti_plan_create(t.g, 1, &plan), STINT_OK);
    assert_int_equal(sti_exec_create(plan, &memory, &exec), STINT_E_BUG);
    assert_null(exec);
    sti_exec_destroy(NULL);
    sti_plan_destroy(plan);
    stint_graph_destroy(t.g);
}

static void every_allocation_may_fail(void **state)
{
    (void)state;
    fixture t = make();
    runner r;
    runner_init(&r, t.g, 1);
    size_t before = sti_alloc_now_bytes();
    for (int64_t n = 1;; n++) {
        sti_exec *exec = NULL;
        sti_alloc_fail_nth(n);
        stint_status status = sti_exec_create(r.plan, &r.memory, &exec);
        sti_alloc_fail_nth(0);
        sti_exec_destroy(exec);
        assert_int_equal(sti_alloc_now_bytes(), before);
        if (status == STINT_OK)
            break;
        assert_int_equal(status, STINT_E_MEMORY);
    }
    runner_fini(&r);
    stint_graph_destroy(t.g);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(values_come_out),
        cmocka_unit_test(final_results_are_told),
        cmocka_unit_test(a_region_can_move),
        cmocka_unit_test(a_run_allocates_nothing),
        cmocka_unit_test(bad_values_are_named),
        cmocka_unit_test(denormals_are_flushed_and_the_mode_restored),
        cmocka_unit_test(bad_memory_is_refused),
        cmocka_unit_test(every_allocation_may_fail),
    };
    (void)toy_any;
    return cmocka_run_group_tests(tests, NULL, NULL);
}
