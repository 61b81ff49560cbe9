/* The model of processes and rings against what is known by hand: lines of stages, a
 * process that reads all before it writes, a fork whose short side waits for the long
 * one; least depths against trying all. */
#include "plan/stream.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

#include "base/rng.h"
#include "base/text.h"

static const sti_event write0[] = {{STI_EVENT_WORK, 0, 5}, {STI_EVENT_WRITE, 0, 0}};
static const sti_event read0[] = {{STI_EVENT_READ, 0, 0}, {STI_EVENT_WORK, 0, 5}};

/* Two stages of 5 over n tiles: the first result comes after 5, and then each takes 5.
 */
static void two_stages_overlap(void **state)
{
    const sti_process process[2] = {{"a", write0, 2, 10}, {"b", read0, 2, 10}};
    sti_stream_ring stream = {"ring", 0, 1, 1, 64};
    sti_stream_graph g = {process, 2, &stream, 1, 0, 0, 0};
    sti_stream_timing t;
    (void)state;
    assert_int_equal(sti_stream_time(&g, &t), STINT_OK);
    assert_false(t.blocks);
    assert_true(t.latency == 55);
    assert_int_equal(t.events, 40);
    stream.depth = 0;
    assert_int_equal(sti_stream_time(&g, &t), STINT_OK);
    assert_true(t.blocks);
    assert_int_equal(sti_stream_set_depths(&g, 1, &t), STINT_OK);
    assert_int_equal(stream.depth, 1);
    assert_int_equal((int)sti_stream_ring_bytes(&g), 64);
}

/* Delays are counted: a write, a hop, a read, a hop back in a ring of one. */
static void hops_are_counted(void **state)
{
    static const sti_event w[] = {{STI_EVENT_WRITE, 0, 0}},
                           r[] = {{STI_EVENT_READ, 0, 0}};
    const sti_process process[2] = {{"a", w, 1, 4}, {"b", r, 1, 4}};
    sti_stream_ring stream = {"ring", 0, 1, 1, 64};
    sti_stream_graph g = {process, 2, &stream, 1, 2, 7, 3};
    sti_stream_timing t;
    (void)state;
    assert_int_equal(sti_stream_time(&g, &t), STINT_OK);
    assert_true(t.latency == 4 * 2 + 3 * 3);
    stream.depth = 4;
    assert_int_equal(sti_stream_time(&g, &t), STINT_OK);
    assert_true(t.latency == 7);
}

/* A source feeds a join directly and through a process that reads all of its n blocks
 * before it writes any: the direct ring must hold nearly n, the others one. */
static void forks_need_depth(void **state)
{
    enum { N = 12 };
    sti_event source[2 * N], all[2 * N], join[2 * N];
    for (int i = 0; i < N; i++) {
        source[2 * i] = (sti_event){STI_EVENT_WRITE, 0, 0};
        source[2 * i + 1] = (sti_event){STI_EVENT_WRITE, 1, 0};
        all[i] = (sti_event){STI_EVENT_READ, 0, 0};
        all[N + i] = (sti_event){STI_EVENT_WRITE, 2, 0};
        join[2 * i] = (sti_event){STI_EVENT_READ, 1, 0};
        join[2 * i + 1] = (sti_event){STI_EVENT_READ, 2, 0};
    }
    const sti_process process[3] = {
        {"source", source, 2 * N, 1}, {"all", all, 2 * N, 1}, {"join", join, 2 * N, 1}};
    sti_stream_ring stream[3] = {
        {"long", 0, 1, 1, 64}, {"direct", 0, 2, 1, 64}, {"late", 1, 2, 1, 64}};
    sti_stream_graph g = {process, 3, stream, 3, 1, 1, 1};
    sti_stream_timing t;
    sti_text dot = {0};
    (void)state;
    assert_int_equal(sti_stream_time(&g, &t), STINT_OK);
    assert_true(t.blocks);
    assert_int_equal(sti_stream_set_depths(&g, INFINITY, &t), STINT_OK);
    assert_int_equal(stream[0].depth, 1);
    assert_int_equal(stream[1].depth, N - 2); /* the join takes one, and the last
                                                comes after block N of the other */
    assert_int_equal(stream[2].depth, 1);
    sti_stream_print_dot(&g, &dot);
    assert_non_null(strstr(dot.data, "p0 -> p2 [label=\"direct: 10 x 64 bytes\"]"));
    sti_text_fini(&dot);
}

/* Two processes that each read before they write to the other. */
static void circles_are_refused(void **state)
{
    static const sti_event a[] = {{STI_EVENT_READ, 1, 0}, {STI_EVENT_WRITE, 0, 0}};
    static const sti_event b[] = {{STI_EVENT_READ, 0, 0}, {STI_EVENT_WRITE, 1, 0}};
    const sti_process process[2] = {{"a", a, 2, 3}, {"b", b, 2, 3}};
    sti_stream_ring stream[2] = {{"there", 0, 1, 1, 8}, {"back", 1, 0, 1, 8}};
    sti_stream_graph g = {process, 2, stream, 2, 1, 1, 1};
    sti_stream_timing t;
    (void)state;
    assert_int_equal(sti_stream_set_depths(&g, INFINITY, &t), STINT_E_INPUT);
}

static void unequal_rings_are_refused(void **state)
{
    const sti_process process[2] = {{"a", write0, 2, 10}, {"b", read0, 2, 9}};
    sti_stream_ring stream = {"ring", 0, 1, 1, 64};
    sti_stream_graph g = {process, 2, &stream, 1, 0, 0, 0};
    sti_stream_timing t;
    (void)state;
    assert_int_equal(sti_stream_time(&g, &t), STINT_E_INPUT);
    stream.to = 0;
    assert_int_equal(sti_stream_time(&g, &t), STINT_E_INPUT);
}

/* Three rings of a random line with shortcuts: no smaller depth of any one ring keeps
 * the latency of deep rings, by trying them. */
static void depths_are_least_within_latency(void **state)
{
    (void)state;
    for (uint32_t seed = 0; seed < 40; seed++) {
        uint32_t w[4];
        sti_random4(seed, STI_STREAM_TEST, 0, 0, w);
        const double work[3] = {1 + w[0] % 9, 1 + w[1] % 9, 1 + w[2] % 9};
        const sti_event a[] = {{STI_EVENT_WORK, 0, work[0]},
                               {STI_EVENT_WRITE, 0, 0},
                               {STI_EVENT_WRITE, 1, 0}};
        const sti_event b[] = {{STI_EVENT_READ, 0, 0},
                               {STI_EVENT_WORK, 0, work[1]},
                               {STI_EVENT_WRITE, 2, 0}};
        const sti_event c[] = {{STI_EVENT_READ, 2, 0},
                               {STI_EVENT_READ, 1, 0},
                               {STI_EVENT_WORK, 0, work[2]}};
        const sti_process process[3] = {
            {"a", a, 3, 20}, {"b", b, 3, 20}, {"c", c, 3, 20}};
        sti_stream_ring stream[3] = {
            {"ab", 0, 1, 20, 64}, {"ac", 0, 2, 20, 64}, {"bc", 1, 2, 20, 64}};
        sti_stream_graph g = {process, 3, stream, 3, 0, 0, 0};
        sti_stream_timing deep, t;
        assert_int_equal(sti_stream_time(&g, &deep), STINT_OK);
        assert_int_equal(sti_stream_set_depths(&g, 1, &t), STINT_OK);
        assert_true(t.latency == deep.latency && !t.blocks);
        for (int s = 0; s < 3; s++) {
            stream[s].depth--;
            assert_int_equal(sti_stream_time(&g, &t), STINT_OK);
            assert_true(t.blocks || t.latency > deep.latency);
            stream[s].depth++;
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(two_stages_overlap),
        cmocka_unit_test(hops_are_counted),
        cmocka_unit_test(forks_need_depth),
        cmocka_unit_test(circles_are_refused),
        cmocka_unit_test(unequal_rings_are_refused),
        cmocka_unit_test(depths_are_least_within_latency),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
