/* Stacks of byte frames against a loop: any stack, indices that point nowhere, any
 * number of threads. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/rng.h"
#include "base/team.h"
#include "op/op.h"

enum { FRAMES = 9, HEIGHT = 5, WIDTH = 7, ROWS = 13, PIXELS = HEIGHT * WIDTH };

static void check_stack(int64_t stack, int threads)
{
    stint_graph *g = NULL;
    assert_int_equal(stint_graph_create(STINT_EVAL, &g), STINT_OK);
    const stint_shape frames_shape =
        stint_shape_make(STINT_U8, 3, (int64_t[]){FRAMES, HEIGHT, WIDTH});
    const stint_shape index_shape =
        stint_shape_make(STINT_I32, 2, (int64_t[]){ROWS, stack});
    const stint_value frames = stint_input(g, "frames", &frames_shape);
    const stint_value index = stint_input(g, "index", &index_shape);
    const stint_value y = stint_frames(g, frames, index, 1.0f / 255.0f);
    assert_int_equal(stint_graph_check(g), STINT_OK);
    const stint_shape want = STINT_SHAPE(ROWS, HEIGHT, WIDTH, stack),
                      got = stint_value_shape(g, y);
    assert_memory_equal(&got, &want, sizeof want);
    uint8_t pixel[FRAMES * PIXELS];
    int32_t *at = calloc((size_t)(ROWS * stack), sizeof *at);
    float *out = calloc((size_t)(ROWS * PIXELS * stack), sizeof *out);
    for (int i = 0; i < FRAMES * PIXELS; i++)
        pixel[i] = (uint8_t)(i * 37);
    for (int64_t i = 0; i < ROWS * stack; i++)
        at[i] = (int32_t)((i * 5) % (FRAMES + 2)) - 1; /* -1 and FRAMES, too */
    const sti_team team = {.threads = threads};
    const sti_node *node = sti_graph_value(g, y)->producer;
    const sti_call call = {.graph = g,
                           .node = node,
                           .team = &team,
                           .in = (const void *const[]){pixel, at},
                           .out = (void *const[]){out}};
    node->op->run[STI_CPU](&call);
    for (int64_t i = 0; i < ROWS * PIXELS * stack; i++) {
        const int64_t k = i % stack, p = i / stack % PIXELS, r = i / stack / PIXELS;
        const int32_t from = at[r * stack + k];
        const float expected = from >= 0 && from < FRAMES
                                   ? (float)pixel[from * PIXELS + p] * (1.0f / 255.0f)
                                   : 0.0f;
        assert_true(out[i] == expected);
    }
    free(at);
    free(out);
    stint_graph_destroy(g);
}

static void stacks_are_gathered(void **state)
{
    (void)state;
    for (int64_t stack = 1; stack <= 5; stack++)
        check_stack(stack, 1 + (int)(stack % 3));
}

static void shapes_are_refused(void **state)
{
    (void)state;
    stint_graph *g = NULL;
    assert_int_equal(stint_graph_create(STINT_EVAL, &g), STINT_OK);
    const stint_shape floats = STINT_SHAPE(4, 5, 6);
    const stint_shape index = stint_shape_make(STINT_I32, 2, (int64_t[]){3, 2});
    stint_frames(g, stint_input(g, "x", &floats), stint_input(g, "i", &index), 1.0f);
    assert_int_equal(stint_graph_check(g), STINT_E_INPUT);
    assert_non_null(strstr(stint_last_error(), "wanted [f, height, width] u8"));
    stint_graph_destroy(g);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(stacks_are_gathered),
        cmocka_unit_test(shapes_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
