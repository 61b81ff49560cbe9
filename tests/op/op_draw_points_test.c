/* Points that are drawn: inside of their box, on its faces, at its start; evenly; a
 * function of seed, step and shard. */
#include "op/draw_points.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "op/op.h"

enum { COUNT = 4000 };

static const sti_draw_points_attr box = {
    .count = COUNT, .coordinates = 3, .low = {-1, 2, 0}, .high = {1, 4, 0.5f}};

static void draw(sti_draw_points_attr attr, sti_step step, float *out)
{
    stint_graph *g = NULL;
    assert_int_equal(stint_graph_create(STINT_TRAIN, &g), STINT_OK);
    const stint_value v = sti_op_add_draw_points(g, &attr);
    assert_int_equal(stint_graph_check(g), STINT_OK);
    const sti_node *node = sti_graph_value(g, v)->producer;
    void *outs[1] = {out};
    node->op->run[STI_CPU](&(sti_call){.graph = g,
                                       .node = node,
                                       .team = &sti_team_serial,
                                       .step = &step,
                                       .out = outs});
    stint_graph_destroy(g);
}

static void points_are_even(void **state)
{
    static float p[COUNT * 3];
    int quarter[3][4] = {{0}};
    (void)state;
    draw(box, (sti_step){.seed = 3}, p);
    for (int i = 0; i < COUNT * 3; i++) {
        const int c = i % 3;
        const float share = (p[i] - box.low[c]) / (box.high[c] - box.low[c]);
        assert_true(share >= 0 && share < 1);
        quarter[c][(int)(4 * share)]++;
    }
    for (int c = 0; c < 3; c++)
        for (int q = 0; q < 4; q++) /* 1000 expected, deviation 27 */
            assert_in_range(quarter[c][q], 880, 1120);
}

static void faces_are_met(void **state)
{
    static float p[COUNT * 3];
    sti_draw_points_attr attr = box;
    int face[6] = {0};
    (void)state;
    attr.where = STI_DRAW_BORDER;
    for (attr.timed = 0; attr.timed < 2; attr.timed++) {
        memset(face, 0, sizeof face);
        draw(attr, (sti_step){.seed = 3}, p);
        for (int i = 0; i < COUNT; i++) {
            int on = 0;
            for (int f = 0; f < 6; f++) {
                const float at = f % 2 ? box.high[f / 2] : box.low[f / 2];
                if (p[3 * i + f / 2] == at && ++on == 1)
                    face[f]++;
            }
            assert_true(on >= 1);
        }
        for (int f = 0; f < 4; f++)
            assert_in_range(face[f], attr.timed ? 870 : 560, attr.timed ? 1130 : 780);
        assert_true(attr.timed ? face[4] + face[5] < 20 : face[5] > 560);
    }
    attr.where = STI_DRAW_START;
    draw(attr, (sti_step){.seed = 3}, p);
    for (int i = 0; i < COUNT; i++)
        assert_true(p[3 * i + 2] == 0);
}

static void steps_differ(void **state)
{
    static float a[COUNT * 3], b[COUNT * 3];
    sti_draw_points_attr other = box;
    (void)state;
    draw(box, (sti_step){.seed = 3, .step = 5, .shard = 1}, a);
    draw(box, (sti_step){.seed = 3, .step = 5, .shard = 1}, b);
    assert_memory_equal(a, b, sizeof a);
    draw(box, (sti_step){.seed = 3, .step = 6, .shard = 1}, b);
    assert_true(memcmp(a, b, sizeof a) != 0);
    draw(box, (sti_step){.seed = 3, .step = 5, .shard = 2}, b);
    assert_true(memcmp(a, b, sizeof a) != 0);
    other.set = 1;
    draw(other, (sti_step){.seed = 3, .step = 5, .shard = 1}, b);
    assert_true(memcmp(a, b, sizeof a) != 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(points_are_even),
        cmocka_unit_test(faces_are_met),
        cmocka_unit_test(steps_differ),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
