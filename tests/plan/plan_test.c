/* Offsets, lifetimes, regions, the picture. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "base/rng.h"
#include "graph/toy_ops.h"
#include "plan/plan.h"

/* ---- offsets ---- */

static size_t max_live(const sti_interval *in, int64_t count)
{
    size_t most = 0;
    for (int64_t i = 0; i < count; i++) {
        size_t live = 0;
        for (int64_t k = 0; k < count; k++)
            if (in[k].first <= in[i].first && in[k].last >= in[i].first)
                live += STI_ALIGN_UP(in[k].bytes, 64);
        most = live > most ? live : most;
    }
    return most;
}

static void assert_disjoint(const sti_interval *in, int64_t count, size_t total)
{
    for (int64_t i = 0; i < count; i++) {
        assert_int_equal(in[i].offset % 64, 0);
        assert_true(in[i].offset + in[i].bytes <= total);
        for (int64_t k = 0; k < i; k++) {
            bool time = in[i].first <= in[k].last && in[k].first <= in[i].last;
            bool space = in[i].offset < in[k].offset + in[k].bytes &&
                         in[k].offset < in[i].offset + in[i].bytes;
            assert_false(time && space && in[i].bytes && in[k].bytes);
        }
    }
}

static void random_intervals_never_overlap(void **state)
{
    (void)state;
    double worst = 1.0, sum = 0;
    enum { ROUNDS = 300, MOST = 120 };
    for (uint32_t round = 0; round < ROUNDS; round++) {
        sti_interval in[MOST];
        uint32_t word[4];
        size_t total = 0;
        sti_random4(1, STI_STREAM_TEST, round, 0, word);
        int64_t count = 1 + sti_below(word[0], MOST - 1);
        uint32_t span = 1 + sti_below(word[1], 60);
        for (int64_t i = 0; i < count; i++) {
            sti_random4(1, STI_STREAM_TEST, round, (uint64_t)i + 1, word);
            int32_t first = (int32_t)sti_below(word[0], 100) - 1;
            in[i] = (sti_interval){.first = first,
                                   .last = first + (int32_t)sti_below(word[1], span),
                                   .bytes = sti_below(word[2], 1u << (word[3] % 16))};
        }
        assert_int_equal(sti_plan_offsets(in, count, &total), STINT_OK);
        assert_disjoint(in, count, total);
        size_t bound = max_live(in, count);
        assert_true(total >= bound);
        double ratio = bound ? (double)total / (double)bound : 1.0;
        worst = ratio > worst ? ratio : worst;
        sum += ratio;
    }
    printf("total / bound: mean %.4f, worst %.4f\n", sum / ROUNDS, worst);
    assert_true(sum / ROUNDS < 1.02);
    assert_true(worst < 1.25);
}

/* A training step: activation i lives from i to 2 n - i; the gradients between. */
static void nested_lives_reach_the_bound(void **state)
{
    (void)state;
    enum { N = 40 };
    sti_interval in[2 * N];
    size_t total = 0;
    for (int32_t i = 0; i < N; i++) {
        in[i] = (sti_interval){
            .first = i, .last = 2 * N - i, .bytes = (size_t)(1 + i % 7) * 1024};
        in[N + i] = (sti_interval){.first = N + i,
                                   .last = N + i + 1,
                                   .bytes = (size_t)(1 + (N - i) % 7) * 1024};
    }
    assert_int_equal(sti_plan_offsets(in, 2 * N, &total), STINT_OK);
    assert_disjoint(in, 2 * N, total);
    assert_int_equal(total, max_live(in, 2 * N));
}

static void bad_intervals_are_refused(void **state)
{
    (void)state;
    size_t total = 7;
    sti_interval backwards = {.first = 3, .last = 2, .bytes = 1};
    sti_interval huge[2] = {{.last = 1, .bytes = SIZE_MAX / 2 + 1},
                            {.last = 1, .bytes = SIZE_MAX / 2 + 1}};
    assert_int_equal(sti_plan_offsets(&backwards, 1, &total), STINT_E_BUG);
    assert_int_equal(sti_plan_offsets(huge, 2, &total), STINT_E_INPUT);
    assert_int_equal(total, 7);
    assert_int_equal(sti_plan_offsets(NULL, 0, &total), STINT_OK);
    assert_int_equal(total, 0);
}

/* ---- whole plans ---- */

typedef struct fixture {
    stint_graph *g;
    stint_value x, p, s, a, f, split, rev, loss, grad, mean;
} fixture;

/* Forward: a = 2 x, f = flat(a), split(a), reverse, loss; backward: grad of p. */
static fixture make(void)
{
    fixture t = {0};
    stint_shape shape = STINT_SHAPE(10, 10);
    assert_int_equal(stint_graph_create(STINT_TRAIN, &t.g), STINT_OK);
    t.x = stint_input(t.g, "x", &shape);
    t.p = stint_param(t.g, "p", &shape, NULL);
    t.s = stint_state(t.g, "s", &shape, 0);
    stint_scope_begin(t.g, "front");
    t.a = toy2(t.g, t.x, t.p);
    t.f = toy1(t.g, &toy_flat, t.a);
    stint_scope_end(t.g);
    stint_scope_begin(t.g, "back");
    t.split = toy1(t.g, &toy_split, t.a);
    t.rev = toy1(t.g, &toy_reverse, t.split);
    t.loss = toy1(t.g, &toy_sum, t.rev);
    t.mean = toy_scaled(t.g, t.rev, 0.5f);
    sti_graph_set_backward(t.g, sti_graph_node(t.g, 0));
    stint_value again = toy_scaled(t.g, t.f, 3);
    stint_value sum = toy1(t.g, &toy_sum, again);
    t.grad = toy_scaled(t.g, t.a, 4);
    sti_graph_set_backward(t.g, NULL);
    toy_output(t.g, STI_OUTPUT_FETCH, sum, -1, "sum");
    toy_output(t.g, STI_OUTPUT_METRIC, t.loss, -1, "loss");
    toy_output(t.g, STI_OUTPUT_STATE, t.mean, t.s, "s");
    toy_output(t.g, STI_OUTPUT_GRADIENT, t.grad, t.p, "p");
    assert_int_equal(stint_graph_check(t.g), STINT_OK);
    return t;
}

static void regions_and_lifetimes(void **state)
{
    (void)state;
    fixture t = make();
    sti_plan *plan = NULL;
    assert_int_equal(sti_plan_create(t.g, 2, &plan), STINT_OK);
    const sti_allocation *allocation = plan->allocation;
    assert_int_equal(allocation[t.x].region, STI_REGION_ARENA);
    assert_int_equal(allocation[t.x].first, -1);
    assert_int_equal(allocation[t.x].last, 0);
    assert_int_equal(allocation[t.p].region, STI_REGION_PARAM);
    assert_int_equal(allocation[t.s].region, STI_REGION_STATE);
    assert_int_equal(allocation[t.f].root, t.a);
    assert_int_equal(allocation[t.f].offset, allocation[t.a].offset);
    assert_int_equal(allocation[t.a].last, 8); /* its view is read at 6, itself at 8 */
    assert_int_equal(allocation[t.f].last, 8);
    assert_int_equal(allocation[t.split + 1].region, STI_REGION_NONE);
    assert_int_equal(allocation[t.grad].region, STI_REGION_RESULT);
    assert_int_equal(allocation[t.mean].offset, 0); /* states, metrics, gradients */
    assert_int_equal(allocation[t.loss].offset, 448);
    assert_int_equal(allocation[t.grad].offset, 512);
    assert_int_equal(plan->region_bytes[STI_REGION_RESULT], 960);
    assert_int_equal(plan->region_bytes[STI_REGION_FETCH], 64);
    assert_int_equal(plan->region_bytes[STI_REGION_PARAM], 448);
    /* Peak: a, split, reversed and the scratch of the reversal. */
    assert_int_equal(plan->peak_node, 3);
    assert_int_equal(plan->live_bytes[3], 4 * 448);
    assert_int_equal(plan->region_bytes[STI_REGION_ARENA], 4 * 448);
    assert_int_equal(plan->saved_bytes, 448);
    assert_int_equal(plan->transient_bytes, 2 * 448);
    assert_int_equal(plan->scratch_bytes, 448);
    assert_int_equal(plan->input_bytes, 0);
    sti_plan_destroy(plan);
    stint_graph_destroy(t.g);
}

/* A result laid over an operand, or a view of one, pulls both into the result block. */
static void results_pull_their_roots(void **state)
{
    (void)state;
    stint_graph *g = NULL;
    sti_plan *plan = NULL;
    stint_shape shape = STINT_SHAPE(4, 4);
    assert_int_equal(stint_graph_create(STINT_EVAL, &g), STINT_OK);
    stint_value x = stint_input(g, "x", &shape);
    stint_value a = toy_scaled(g, x, 2), b = toy_scaled(g, a, 3);
    stint_value v = toy1(g, &toy_flat, b);
    sti_graph_value(g, b)->producer->inplace = 0;
    toy_output(g, STI_OUTPUT_FETCH, v, -1, "v");
    assert_int_equal(stint_graph_check(g), STINT_OK);
    assert_int_equal(sti_plan_create(g, 1, &plan), STINT_OK);
    assert_int_equal(plan->allocation[a].region, STI_REGION_FETCH);
    assert_int_equal(plan->allocation[v].root, a);
    assert_int_equal(plan->region_bytes[STI_REGION_ARENA], 64);
    sti_plan_destroy(plan);
    toy_output(g, STI_OUTPUT_FETCH, b, -1, "the same bytes");
    assert_int_equal(sti_plan_create(g, 1, &plan), STINT_E_BUG);
    stint_graph_destroy(g);
}

static void leaf_results_and_missing_kernels_are_refused(void **state)
{
    (void)state;
    static const sti_op no_kernel = {
        .name = "toy_nowhere", .n_out = 1, .infer = toy_same};
    stint_shape shape = STINT_SHAPE(4, 4);
    for (int bad = 0; bad < 2; bad++) {
        stint_graph *g = NULL;
        sti_plan *plan = NULL;
        assert_int_equal(stint_graph_create(STINT_EVAL, &g), STINT_OK);
        stint_value x = stint_input(g, "x", &shape);
        toy_output(g, STI_OUTPUT_FETCH, bad ? toy1(g, &no_kernel, x) : x, -1, "x");
        assert_int_equal(sti_plan_create(g, 1, &plan),
                         bad ? STINT_E_UNSUPPORTED : STINT_E_BUG);
        assert_null(plan);
        stint_graph_destroy(g);
    }
    assert_non_null(strstr(stint_last_error(), "toy_nowhere"));
}

/* Random graphs: whatever is alive at the same node is apart in the arena. */
static stint_graph *random_graph(uint64_t seed)
{
    stint_graph *g = NULL;
    stint_value pool[64];
    int count = 0;
    assert_int_equal(stint_graph_create(STINT_TRAIN, &g), STINT_OK);
    stint_shape shape = STINT_SHAPE(3, 50);
    pool[count++] = stint_input(g, "x", &shape);
    pool[count++] = stint_param(g, "p", &shape, NULL);
    for (int i = 0; i < 60; i++) {
        uint32_t w[4];
        sti_random4(seed, STI_STREAM_TEST, (uint64_t)i, 0, w);
        stint_value a = pool[sti_below(w[0], (uint32_t)count)];
        stint_value b = pool[sti_below(w[1], (uint32_t)count)];
        switch (w[2] % 4) {
        case 0:
            pool[count++] = toy2(g, a, b);
            break;
        case 1:
            pool[count++] = toy_scaled(g, a, 2);
            break;
        case 2:
            pool[count++] = toy1(g, &toy_reverse, a);
            break;
        default:
            toy_output(g, STI_OUTPUT_METRIC, toy1(g, &toy_sum, a), -1, "sum");
            break;
        }
    }
    toy_output(g, STI_OUTPUT_FETCH, toy_scaled(g, pool[count - 1], 1), -1, "y");
    assert_int_equal(stint_graph_check(g), STINT_OK);
    return g;
}

static void random_graphs_are_planned_apart(void **state)
{
    (void)state;
    for (uint64_t seed = 0; seed < 40; seed++) {
        stint_graph *g = random_graph(seed);
        sti_plan *plan = NULL;
        assert_int_equal(sti_plan_create(g, 2, &plan), STINT_OK);
        int32_t values = sti_graph_value_count(g);
        for (stint_value a = 0; a < values; a++)
            for (stint_value b = 0; b < a; b++) {
                const sti_allocation *pa = &plan->allocation[a],
                                     *pb = &plan->allocation[b];
                if (pa->region != pb->region || pa->root == pb->root || !pa->bytes ||
                    !pb->bytes)
                    continue;
                bool space = pa->offset < pb->offset + pb->bytes &&
                             pb->offset < pa->offset + pa->bytes;
                bool time = pa->region != STI_REGION_ARENA ||
                            (pa->first <= pb->last && pb->first <= pa->last);
                assert_false(space && time);
            }
        for (int32_t n = 0; n < sti_graph_node_count(g); n++)
            assert_true(plan->live_bytes[n] <= plan->region_bytes[STI_REGION_ARENA]);
        assert_int_equal(plan->live_bytes[plan->peak_node],
                         plan->input_bytes + plan->saved_bytes + plan->transient_bytes +
                             plan->scratch_bytes);
        sti_plan_destroy(plan);
        stint_graph_destroy(g);
    }
}

static void empty_graph_is_planned(void **state)
{
    (void)state;
    stint_graph *g = NULL;
    sti_plan *plan = NULL;
    sti_text svg = {0};
    assert_int_equal(stint_graph_create(STINT_EVAL, &g), STINT_OK);
    assert_int_equal(sti_plan_create(g, 0, &plan), STINT_OK);
    assert_int_equal(plan->region_bytes[STI_REGION_ARENA], 0);
    assert_int_equal(plan->threads, 1);
    assert_int_equal(sti_plan_timeline_svg(plan, 1, 0, 0, &svg), STINT_OK);
    sti_text_fini(&svg);
    sti_plan_destroy(plan);
    sti_plan_destroy(NULL);
    stint_graph_destroy(g);
}

static void timeline_is_drawn(void **state)
{
    (void)state;
    fixture t = make();
    sti_plan *plan = NULL;
    sti_text svg = {0};
    assert_int_equal(sti_plan_create(t.g, 2, &plan), STINT_OK);
    assert_int_equal(sti_plan_timeline_svg(plan, 2, 1000, 5000, &svg), STINT_OK);
    assert_memory_equal(svg.data, "<svg ", 5);
    assert_string_equal(svg.data + svg.length - 7, "</svg>\n");
    assert_non_null(strstr(svg.data, "budget 4.9 KiB"));
    assert_non_null(strstr(svg.data, "toy_reverse in back"));
    assert_non_null(strstr(svg.data, ">front</text>"));
    assert_non_null(strstr(svg.data, ">backward</text>"));
    assert_null(strstr(svg.data, "nan"));
    const char *path = getenv("STINT_TEST_SVG");
    FILE *file = path ? fopen(path, "w") : NULL;
    if (file) {
        fputs(svg.data, file);
        fclose(file);
    }
    sti_text_fini(&svg);
    sti_plan_destroy(plan);
    stint_graph_destroy(t.g);
}

static void every_allocation_may_fail(void **state)
{
    (void)state;
    fixture t = make();
    size_t before = sti_alloc_now_bytes();
    for (int64_t n = 1;; n++) {
        sti_plan *plan = NULL;
        sti_text svg = {0};
        sti_alloc_fail_nth(n);
        stint_status status = sti_plan_create(t.g, 2, &plan);
        if (status == STINT_OK)
            status = sti_plan_timeline_svg(plan, 1, 0, 0, &svg);
        sti_alloc_fail_nth(0);
        sti_text_fini(&svg);
        sti_plan_destroy(plan);
        assert_int_equal(sti_alloc_now_bytes(), before);
        if (status == STINT_OK)
            break;
        assert_int_equal(status, STINT_E_MEMORY);
    }
    stint_graph_destroy(t.g);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(random_intervals_never_overlap),
        cmocka_unit_test(nested_lives_reach_the_bound),
        cmocka_unit_test(bad_intervals_are_refused),
        cmocka_unit_test(regions_and_lifetimes),
        cmocka_unit_test(results_pull_their_roots),
        cmocka_unit_test(leaf_results_and_missing_kernels_are_refused),
        cmocka_unit_test(random_graphs_are_planned_apart),
        cmocka_unit_test(empty_graph_is_planned),
        cmocka_unit_test(timeline_is_drawn),
        cmocka_unit_test(every_allocation_may_fail),
    };
    (void)toy_any;
    return cmocka_run_group_tests(tests, NULL, NULL);
}
