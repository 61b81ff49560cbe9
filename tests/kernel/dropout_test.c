/* Dropout: the counter of each element, the rate, and independence of pieces. */
#include "kernel/elementwise/dropout.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/cpu.h"
#include "base/memory.h"
#include "base/rng.h"

enum { N = 40003 };

static void by_the_counter(void **state)
{
    (void)state;
    const sti_dropout_key key = {
        .seed = 0x123456789abcdef0u, .step = 70, .shard = 3, .layer = 2};
    const float rate = 0.3f;
    float *x = sti_alloc_array(N, sizeof *x, "test"),
          *y = sti_alloc_array(N, 4, "test");
    for (int i = 0; i < N; i++)
        x[i] = (float)(i + 1);
    for (int threads = 1; threads <= 3; threads++) {
        const sti_team team = {.threads = threads};
        sti_dropout_f32(&team, &key, rate, N, x, y);
        for (uint64_t i = 0; i < N; i++) {
            uint32_t w[4];
            sti_random4(key.seed, STI_STREAM_DROPOUT, (uint64_t)2 << 48 | 70,
                        (uint64_t)3 << 40 | i / 4, w);
            const bool keep = sti_uniform(w[i % 4]) >= rate;
            assert_true(y[i] == (keep ? x[i] * (1.0f / (1.0f - rate)) : 0.0f));
        }
    }
    sti_dropout_f32(&sti_team_serial, &key, rate, N, x, x);
    assert_memory_equal(x, y, N * sizeof *x);
    sti_free(x);
    sti_free(y);
}

/* Vectors take the same words as the plain loop, NaN and zeros among the elements. */
static void every_instruction_set(void **state)
{
    (void)state;
    static float x[N], want[N], got[N];
    const sti_dropout_key key = {.seed = 99, .step = 1, .shard = 7, .layer = 3};
    const sti_isa best = sti_isa_now();
    for (int i = 0; i < N; i++)
        x[i] = i % 97 == 0 ? NAN : i % 89 == 0 ? -0.0f : (float)(i - N / 2);
    for (int isa = 0; isa <= (int)best; isa++) {
        sti_isa_force((sti_isa)isa);
        sti_dropout_f32(&sti_team_serial, &key, 0.4f, N - 7, x, isa == 0 ? want : got);
        assert_memory_equal(isa == 0 ? want : got, want, sizeof want);
    }
    sti_isa_force(best);
}

static double kept(const sti_dropout_key *key, float rate, float *y)
{
    static float ones[N];
    double sum = 0.0;
    for (int i = 0; i < N; i++)
        ones[i] = 1.0f;
    sti_dropout_f32(&sti_team_serial, key, rate, N, ones, y);
    for (int i = 0; i < N; i++)
        sum += y[i] != 0.0f;
    return sum / N;
}

/* Each part of the key gives another mask of the same rate. */
static void keys_are_independent(void **state)
{
    (void)state;
    static float y[5][N];
    const sti_dropout_key key[5] = {
        {1, 0, 0, 0}, {2, 0, 0, 0}, {1, 1, 0, 0}, {1, 0, 1, 0}, {1, 0, 0, 1}};
    for (int k = 0; k < 5; k++)
        assert_true(fabs(kept(&key[k], 0.25f, y[k]) - 0.75) < 0.01);
    for (int a = 0; a < 5; a++)
        for (int b = 0; b < a; b++) {
            int same = 0;
            for (int i = 0; i < N; i++)
                same += (y[a][i] != 0.0f) == (y[b][i] != 0.0f);
            /* 0.75^2 + 0.25^2 = 0.625 by chance */
            assert_true(fabs((double)same / N - 0.625) < 0.015);
        }
    assert_true(kept(&key[0], 0.0f, y[0]) == 1.0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(by_the_counter),
        cmocka_unit_test(every_instruction_set),
        cmocka_unit_test(keys_are_independent),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
