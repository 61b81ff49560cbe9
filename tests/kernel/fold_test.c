/* Folding for the codec: against the formulas, and the same bits on every instruction
 * set however the arrays are cut. */
#include "kernel/fold/fold.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/cpu.h"
#include "base/rng.h"

enum { ROWS = 173, MOST = 64 };

typedef struct folding {
    int64_t c;
    float x[ROWS * MOST], u[ROWS * MOST], back[ROWS * MOST], y[ROWS * MOST];
    float residual[ROWS * MOST];
    float mean[MOST], inv[MOST], scale[MOST], shift[MOST], deviation[MOST];
    uint8_t bits[ROWS * MOST / 8 + 8];
} folding;

static float noise(uint64_t id, int64_t i)
{
    uint32_t w[4];
    sti_random4(9, STI_STREAM_TEST, id, (uint64_t)i, w);
    return 4.0f * sti_uniform(w[0]) - 2.0f;
}

static folding *draw(int64_t c)
{
    folding *f = calloc(1, sizeof *f);
    f->c = c;
    for (int64_t i = 0; i < ROWS * c; i++) {
        f->x[i] = noise(1, i);
        f->residual[i] = noise(7, i);
        if (noise(2, i) > 0)
            f->bits[i / 8] |= (uint8_t)(1u << (i % 8));
    }
    for (int64_t k = 0; k < c; k++) {
        f->mean[k] = noise(3, k);
        f->inv[k] = 0.5f + noise(4, k) * 0.1f;
        f->scale[k] = noise(5, k);
        f->shift[k] = noise(6, k);
    }
    return f;
}

/* In parts of a length that cuts rows. */
static void run(folding *f, bool bits, bool sum, int64_t part)
{
    const uint8_t *set = bits ? f->bits : NULL;
    const float coarse = sti_fold_coarse(ROWS);
    const sti_fold fold = {f->c, coarse, f->x, f->mean, f->inv, set, 0};
    const sti_unfold unfold = {.c = f->c,
                               .coarse = coarse,
                               .u = f->u,
                               .mean = f->mean,
                               .deviation = f->deviation,
                               .scale = f->scale,
                               .shift = f->shift,
                               .residual = sum ? f->residual : NULL,
                               .bits = set,
                               .x = f->back,
                               .y = f->y};
    for (int64_t k = 0; k < f->c; k++)
        f->deviation[k] = 1.0f / f->inv[k];
    for (int64_t at = 0, all = ROWS * f->c; at < all; at += part) {
        const int64_t n = all - at < part ? all - at : part;
        sti_fold_f32(&fold, at, n, f->u + at);
        sti_unfold_f32(&unfold, at, n);
    }
}

static bool near(float a, double b)
{
    double d = (double)a - b;
    return d < 3e-6 && d > -3e-6;
}

static void check(const folding *f, bool bits, bool sum)
{
    for (int64_t i = 0; i < ROWS * f->c; i++) {
        int64_t k = i % f->c;
        bool set = !bits || (f->bits[i / 8] >> (i % 8) & 1);
        double n = ((double)f->x[i] - (double)f->mean[k]) * (double)f->inv[k];
        double y = n * (double)f->scale[k] + (double)f->shift[k];
        y += sum ? (double)f->residual[i] : 0;
        assert_true(near(f->u[i], set ? n : n / 8));
        assert_true(near(f->back[i], (double)f->x[i]));
        assert_true(near(f->y[i], set ? y : 0));
    }
}

static void folds_and_unfolds(void **state)
{
    static const int64_t channels[] = {1, 3, 8, 16, 48, 64};
    sti_isa best = sti_isa_now();
    (void)state;
    for (int i = 0; i < 24; i++) {
        folding *first = draw(channels[i / 4]);
        run(first, i & 1, i & 2, ROWS * MOST);
        check(first, i & 1, i & 2);
        for (int isa = 0; isa <= (int)best; isa++)
            for (int64_t part = 16; part < 2000; part *= 3) {
                folding *f = draw(channels[i / 4]);
                sti_isa_force((sti_isa)isa);
                run(f, i & 1, i & 2, part);
                assert_memory_equal(f->u, first->u, sizeof f->u);
                assert_memory_equal(f->back, first->back, sizeof f->back);
                assert_memory_equal(f->y, first->y, sizeof f->y);
                free(f);
            }
        sti_isa_force(best);
        free(first);
    }
}

/* A part that lies somewhere else, folded and unfolded in place. */
static void parts_may_lie_elsewhere(void **state)
{
    (void)state;
    for (int i = 0; i < 4; i++) {
        const int64_t c = i & 1 ? 48 : 3, at = 64, n = ROWS * c - at;
        const uint8_t *bits = NULL;
        folding *f = draw(c);
        run(f, i & 2, false, ROWS * c);
        if (i & 2)
            bits = f->bits;
        float *part = malloc(sizeof f->u), *y = malloc(sizeof f->y);
        memcpy(part, f->x + at, (size_t)n * sizeof *part);
        const sti_fold fold = {.c = c,
                               .coarse = sti_fold_coarse(ROWS),
                               .x = part,
                               .mean = f->mean,
                               .inv = f->inv,
                               .bits = bits,
                               .first = at};
        sti_fold_f32(&fold, at, n, part);
        assert_memory_equal(part, f->u + at, (size_t)n * sizeof *part);
        const sti_unfold unfold = {.c = c,
                                   .coarse = sti_fold_coarse(ROWS),
                                   .u = part,
                                   .mean = f->mean,
                                   .deviation = f->deviation,
                                   .scale = f->scale,
                                   .shift = f->shift,
                                   .bits = bits,
                                   .x = part,
                                   .y = y,
                                   .first = at};
        sti_unfold_f32(&unfold, at, n);
        assert_memory_equal(part, f->back + at, (size_t)n * sizeof *part);
        assert_memory_equal(y, f->y + at, (size_t)n * sizeof *y);
        free(part);
        free(y);
        free(f);
    }
}

/* One of the two results alone, over u itself. */
static void results_may_be_left_out(void **state)
{
    (void)state;
    for (int i = 0; i < 4; i++) {
        const int64_t c = i & 1 ? 16 : 3;
        const bool sum = i & 2;
        folding *f = draw(c);
        run(f, true, sum, ROWS * c);
        float *u = malloc(sizeof f->u);
        memcpy(u, f->u, sizeof f->u);
        sti_unfold args = {.c = c,
                           .coarse = sti_fold_coarse(ROWS),
                           .u = u,
                           .mean = f->mean,
                           .deviation = f->deviation,
                           .scale = f->scale,
                           .shift = f->shift,
                           .residual = sum ? f->residual : NULL,
                           .bits = f->bits,
                           .y = u};
        sti_unfold_f32(&args, 0, ROWS * c);
        assert_memory_equal(u, f->y, (size_t)(ROWS * c) * sizeof *u);
        memcpy(u, f->u, sizeof f->u);
        args.x = u;
        args.y = NULL;
        sti_unfold_f32(&args, 0, ROWS * c);
        assert_memory_equal(u, f->back, (size_t)(ROWS * c) * sizeof *u);
        free(u);
        free(f);
    }
}

static void more_rows_are_coarser(void **state)
{
    (void)state;
    assert_true(sti_fold_coarse(1) == 0.125f);
    assert_true(sti_fold_coarse(511) == 0.125f);
    assert_true(sti_fold_coarse(512) == 0.0625f);
    assert_true(sti_fold_coarse(2048) == 0.03125f);
    assert_true(sti_fold_coarse(INT64_C(1) << 40) == 0.015625f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(folds_and_unfolds),
        cmocka_unit_test(parts_may_lie_elsewhere),
        cmocka_unit_test(results_may_be_left_out),
        cmocka_unit_test(more_rows_are_coarser),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
