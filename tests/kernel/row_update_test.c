/* Interaction and row updates: the formulas in double, and the same bits on every
 * instruction set. */
#include "kernel/row/row_update.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/cpu.h"
#include "base/rng.h"
#include "kernel/interaction/interaction.h"

enum { WIDTH_MOST = 70, COUNT = 5 };

static float draw(uint64_t i)
{
    uint32_t w[4];
    sti_random4(3, STI_STREAM_TEST, i, 0, w);
    return 2 * sti_uniform(w[0]) - 1;
}

static void reference(const sti_row_update *u, double lr, int64_t t, const double *g,
                      double *record)
{
    const int64_t n = u->width;
    double mean = 0;
    for (int64_t i = 0; i < n; i++)
        mean += g[i] * g[i] / (double)n;
    if (u->rule == STI_ROW_ROWWISE_ADAGRAD)
        record[n] += mean;
    for (int64_t i = 0; i < n; i++) {
        double step = g[i];
        if (u->rule == STI_ROW_ADAGRAD) {
            record[n + i] += g[i] * g[i];
            step /= sqrt(record[n + i]) + 1e-3;
        } else if (u->rule == STI_ROW_ROWWISE_ADAGRAD) {
            step /= sqrt(record[n]) + 1e-3;
        } else if (u->rule == STI_ROW_LAZY_ADAM) {
            double *m = record + n, *v = record + 2 * n;
            m[i] = 0.9 * m[i] + 0.1 * g[i];
            v[i] = 0.999 * v[i] + 0.001 * g[i] * g[i];
            step = sqrt(1 - pow(0.999, (double)t)) / (1 - pow(0.9, (double)t)) * m[i] /
                   (sqrt(v[i]) + 1e-3);
        }
        record[i] -= lr * step;
    }
}

static void run_rule(sti_row_rule rule, int64_t width)
{
    float gradient[8 * WIDTH_MOST], scratch[WIDTH_MOST], first[3 * WIDTH_MOST];
    const uint32_t index[COUNT] = {0, 2, 3, 6, 7};
    for (int k = 0; k < STI_ISA_COUNT; k++) {
        float record[3 * WIDTH_MOST];
        double want[3 * WIDTH_MOST], g[WIDTH_MOST];
        if (!sti_isa_force((sti_isa)k))
            continue;
        const int64_t floats = width + sti_row_state_floats(rule, width);
        for (int64_t i = 0; i < floats; i++)
            want[i] = (double)(record[i] = i < width ? draw(1000 + (uint64_t)i) : 0);
        for (int64_t t = 1; t <= 4; t++) {
            for (int64_t i = 0; i < 8 * width; i++)
                gradient[i] = draw((uint64_t)(t * 10000 + i));
            for (int64_t i = 0; i < width; i++) {
                g[i] = 0;
                for (int c = 0; c < COUNT; c++)
                    g[i] += 0.25 * (double)gradient[index[c] * width + i];
            }
            const sti_row_update u =
                sti_row_update_of(rule, width, 0.05, 1e-3, 0.25, t);
            sti_row_update_f32(&u, gradient, COUNT, index, scratch, record);
            reference(&u, 0.05, t, g, want);
        }
        for (int64_t i = 0; i < floats; i++)
            assert_true(fabs((double)record[i] - want[i]) < 2e-6 * (1 + fabs(want[i])));
        if (k == 0)
            memcpy(first, record, (size_t)floats * sizeof *first);
        else
            assert_memory_equal(first, record, (size_t)floats * sizeof *first);
    }
}

static void rows_learn_by_their_rule(void **state)
{
    static const int64_t widths[] = {1, 7, 16, 33, WIDTH_MOST};
    (void)state;
    for (int rule = 0; rule < 4; rule++)
        for (int w = 0; w < 5; w++)
            run_rule((sti_row_rule)rule, widths[w]);
}

static void pairs_have_one_order(void **state)
{
    enum { SAMPLES = 5, VECTORS = 6, WIDTH = 37, PAIRS = 15 };
    float x[SAMPLES * VECTORS * WIDTH], y[2][SAMPLES * PAIRS], dy[SAMPLES * PAIRS],
        dx[2][SAMPLES * VECTORS * WIDTH];
    (void)state;
    for (int i = 0; i < SAMPLES * VECTORS * WIDTH; i++)
        x[i] = draw((uint64_t)i);
    for (int i = 0; i < SAMPLES * PAIRS; i++)
        dy[i] = draw((uint64_t)(70000 + i));
    for (int k = 0; k < STI_ISA_COUNT; k++)
        for (int threads = 1; threads <= 3; threads++) {
            const sti_team team = {threads};
            const int to = k > 0 || threads > 1;
            if (!sti_isa_force((sti_isa)k))
                continue;
            sti_interaction_f32(&team, SAMPLES, VECTORS, WIDTH, x, y[to]);
            sti_interaction_grad_f32(&team, SAMPLES, VECTORS, WIDTH, x, dy, dx[to]);
            if (to) {
                assert_memory_equal(y[0], y[1], sizeof y[0]);
                assert_memory_equal(dx[0], dx[1], sizeof dx[0]);
            }
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rows_learn_by_their_rule),
        cmocka_unit_test(pairs_have_one_order),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
