/* Candidates are valid and none comes twice; the model knows more work and farther
 * tiles from less and nearer ones; measuring and every failed allocation leave things
 * clean. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/memory.h"
#include "kernel/loop/loop_tune.h"

enum { TEXTS_MAX = 4096 };

typedef struct texts {
    char text[TEXTS_MAX][STI_LOOP_GEMM_TEXT];
    int count;
} texts;

static sti_gemm_shape shape_of(int64_t m, int64_t n, int64_t k)
{
    return (sti_gemm_shape){.m = m, .n = n, .k = k, .lda = k, .ldb = n, .ldc = n};
}

static const sti_machine machine = {.f32_flop_per_s = 2.4e11,
                                    .l1_bytes_per_s = 4e11,
                                    .l2_bytes_per_s = 1.7e11,
                                    .llc_bytes_per_s = 2.6e10,
                                    .dram_bytes_per_s = 1.3e10,
                                    .dram_all_bytes_per_s = 2.8e10,
                                    .fork_s = 8e-7,
                                    .tile_flop_per_s = 2.3e11,
                                    .tile_s = 2e-8,
                                    .pack_bytes_per_s = 4.8e10,
                                    .l1_bytes = 49152,
                                    .l2_bytes = 2 << 20,
                                    .llc_bytes = 64 << 20,
                                    .threads = 2};

static void take(void *user, const char *text)
{
    texts *t = user;
    assert_true(t->count < TEXTS_MAX);
    assert_true(strlen(text) < STI_LOOP_GEMM_TEXT);
    strcpy(t->text[t->count++], text);
}

static int by_text(const void *a, const void *b)
{
    return strcmp(a, b);
}

static void candidates_bind_and_differ(void **state)
{
    static const int64_t shapes[][3] = {
        {1, 1, 1}, {37, 53, 29}, {64, 4096, 64}, {1000, 1000, 9000}, {5, 3000, 700}};
    texts *t = malloc(sizeof *t);
    (void)state;
    assert_non_null(t);
    for (size_t i = 0; i < sizeof shapes / sizeof shapes[0]; i++)
        for (int threads = 1; threads <= 3; threads++) {
            const sti_gemm_shape s = shape_of(shapes[i][0], shapes[i][1], shapes[i][2]);
            t->count = 0;
            const int count = sti_loop_gemm_candidates(&s, threads, take, t);
            assert_int_equal(count, t->count);
            assert_true(t->count > 0);
            qsort(t->text, (size_t)t->count, sizeof t->text[0], by_text);
            for (int c = 0; c < t->count; c++) {
                sti_loop_gemm g;
                if (sti_loop_gemm_bind(t->text[c], &s, threads, &g) != STINT_OK)
                    fail_msg("%s", stint_last_error());
                assert_true(c == 0 || strcmp(t->text[c - 1], t->text[c]) != 0);
            }
        }
    const sti_gemm_shape none = shape_of(0, 5, 5);
    assert_int_equal(sti_loop_gemm_candidates(&none, 1, take, t), 0);
    free(t);
}

static double predicted(const char *text, sti_gemm_shape s, int threads)
{
    sti_loop_gemm g;
    sti_loop_trace trace = {0};
    double seconds = 0;
    if (sti_loop_gemm_bind(text, &s, threads, &g) != STINT_OK)
        fail_msg("%s", stint_last_error());
    assert_int_equal(sti_loop_gemm_predict(&machine, &g, &trace, &seconds), STINT_OK);
    sti_loop_trace_fini(&trace);
    return seconds;
}

static void the_model_knows_work_and_distance(void **state)
{
    const sti_gemm_shape s = shape_of(1024, 1024, 1024);
    const double one = predicted("bca 84x128x512", s, 1);
    const double flop_s = 2.0 * 1024 * 1024 * 1024 / machine.tile_flop_per_s;
    (void)state;
    assert_true(one > flop_s && one < 2 * flop_s);
    /* two threads share the work; a serial string leaves it to one */
    assert_true(predicted("BCa 84x128x512", s, 2) < 0.6 * one);
    assert_true(predicted("bca 84x128x512", s, 2) > 0.9 * one);
    /* four times the work; k beyond a chunk; B packed again for every row of tiles */
    assert_true(predicted("bca 84x128x512", shape_of(2048, 2048, 1024), 1) > 3.5 * one);
    assert_true(predicted("bca 84x128x512", shape_of(1024, 1024, 8192), 1) > 7.5 * one);
    assert_true(predicted("bca 14x32x64", shape_of(2048, 2048, 2048), 1) >
                1.1 * predicted("bca 280x128x512", shape_of(2048, 2048, 2048), 1));
}

static void ranking_is_sorted_and_repeats(void **state)
{
    const sti_gemm_shape s = shape_of(200, 150, 100);
    sti_loop_choice *first, *second;
    int count, again;
    (void)state;
    assert_int_equal(sti_loop_gemm_rank(&machine, &s, 2, &first, &count), STINT_OK);
    assert_int_equal(sti_loop_gemm_rank(&machine, &s, 2, &second, &again), STINT_OK);
    assert_int_equal(count, again);
    for (int i = 0; i < count; i++) {
        assert_string_equal(first[i].text, second[i].text);
        assert_true(first[i].predicted_s > 0);
        assert_true(i == 0 || first[i - 1].predicted_s <= first[i].predicted_s);
    }
    sti_free(first);
    sti_free(second);
}

static void measuring_sorts_by_time(void **state)
{
    const sti_gemm_shape s = shape_of(60, 50, 40);
    sti_loop_choice *choices;
    double plain_s = 0;
    int count;
    (void)state;
    assert_int_equal(sti_loop_gemm_rank(&machine, &s, 2, &choices, &count), STINT_OK);
    count = count < 9 ? count : 9;
    assert_int_equal(
        sti_loop_gemm_measure(&(sti_team){2}, &s, choices, count, 1e-4, &plain_s),
        STINT_OK);
    assert_true(plain_s > 0);
    for (int i = 0; i < count; i++)
        assert_true(choices[i].measured_s > 0 &&
                    (i == 0 || choices[i - 1].measured_s <= choices[i].measured_s));
    sti_free(choices);
}

static void failed_allocations_are_clean(void **state)
{
    const sti_gemm_shape s = shape_of(60, 50, 40);
    const size_t before = sti_alloc_now_bytes();
    stint_status status = STINT_E_MEMORY;
    (void)state;
    for (int nth = 1; status == STINT_E_MEMORY; nth++) {
        sti_loop_choice *choices = NULL;
        int count = 0;
        double plain_s;
        assert_true(nth < 100);
        sti_alloc_fail_nth(nth);
        status = sti_loop_gemm_rank(&machine, &s, 1, &choices, &count);
        if (status == STINT_OK)
            status =
                sti_loop_gemm_measure(&sti_team_serial, &s, choices, 3, 1e-5, &plain_s);
        sti_free(choices);
        assert_int_equal(sti_alloc_now_bytes(), before);
    }
    sti_alloc_fail_nth(0);
    assert_int_equal(status, STINT_OK);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(candidates_bind_and_differ),
        cmocka_unit_test(the_model_knows_work_and_distance),
        cmocka_unit_test(ranking_is_sorted_and_repeats),
        cmocka_unit_test(measuring_sorts_by_time),
        cmocka_unit_test(failed_allocations_are_clean),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
