/* Cuts parts of the arrays of fold.h into whole rows and pieces of rows, and holds the
 * plain loops for numbers of channels that do not fill a vector. */
#include "kernel/fold/fold.h"

#include <assert.h>
#include <stdbool.h>
#include <stddef.h>

#include "kernel/fold/fold_priv.h"
#include "kernel/lane/dispatch.h"

float sti_fold_coarse(int64_t rows)
{
    float coarse = 0.125f;
    /* 1 / coarse <= 0.7 sqrt(rows) */
    while (coarse > 0.015625f && coarse * coarse * (float)rows >= 8.0f)
        coarse *= 0.5f;
    return coarse;
}

static bool bit_at(const uint8_t *bits, int64_t i)
{
    return !bits || (bits[i / 8] >> (i % 8) & 1) != 0;
}

/* Sums with +0, as the vectors join kept lanes: -0 does not come out of either. */
static float folded(const uint8_t *bits, int64_t at, float v, float factor)
{
    if (!bits)
        return v;
    return (bit_at(bits, at) ? v : v * factor) + 0.0f;
}

static void any_fold(const sti_fold *a, int64_t begin, int64_t n, float *u)
{
    for (int64_t at = begin, k = begin % a->c; at < begin + n; at++) {
        u[at - begin] = folded(
            a->bits, at, (a->x[at - a->first] - a->mean[k]) * a->inv[k], a->coarse);
        k = k + 1 == a->c ? 0 : k + 1;
    }
}

/* y of n at `at`, in channel k. */
static float result_at(const sti_unfold *a, int64_t at, int64_t k, float n)
{
    const float y = n * a->scale[k] + a->shift[k];
    return a->residual ? y + a->residual[at] : y;
}

static void any_unfold(const sti_unfold *a, int64_t begin, int64_t n)
{
    for (int64_t at = begin, k = begin % a->c; at < begin + n; at++) {
        const int64_t i = at - a->first;
        const float v = folded(a->bits, at, a->u[i], 1.0f / a->coarse);
        if (a->x)
            a->x[i] = v * a->deviation[k] + a->mean[k];
        if (a->y)
            a->y[i] = bit_at(a->bits, at) ? result_at(a, at, k, v) : 0.0f;
        k = k + 1 == a->c ? 0 : k + 1;
    }
}

/* The next of [at, end) of arrays with c columns that kernels can work on: what is left
 * of a row, whole rows, or a row's beginning. Its columns; *rows_out: how many rows. */
static int64_t next_block(int64_t c, int64_t at, int64_t end, int64_t *rows_out)
{
    const int64_t col = at % c, left = end - at;
    *rows_out = 1;
    if (col > 0)
        return c - col < left ? c - col : left;
    if (left < c)
        return left;
    *rows_out = left / c;
    return c;
}

void sti_fold_f32(const sti_fold *a, int64_t begin, int64_t n, float *u_out)
{
    const sti_fold_kernels *kernels = STI_KERNELS_NOW(sti_fold_kernels);
    int64_t rows;
    assert(a->c >= 1 && begin % 16 == 0);
    if (a->c % 16 != 0) {
        any_fold(a, begin, n, u_out);
        return;
    }
    for (int64_t at = begin, c; at < begin + n; at += rows * c) {
        c = next_block(a->c, at, begin + n, &rows);
        kernels->fold(&(sti_fold_block){.rows = rows,
                                        .c = c,
                                        .factor = a->coarse,
                                        .from = a->x + (at - a->first),
                                        .mean = a->mean + at % a->c,
                                        .inv = a->inv + at % a->c,
                                        .bits = a->bits ? a->bits + at / 8 : NULL,
                                        .x = u_out + (at - begin)});
    }
}

void sti_unfold_f32(const sti_unfold *a, int64_t begin, int64_t n)
{
    const sti_fold_kernels *kernels = STI_KERNELS_NOW(sti_fold_kernels);
    int64_t rows;
    assert(a->c >= 1 && begin % 16 == 0);
    if (a->c % 16 != 0) {
        any_unfold(a, begin, n);
        return;
    }
    for (int64_t at = begin, c; at < begin + n; at += rows * c) {
        const int64_t col = at % a->c, i = at - a->first;
        c = next_block(a->c, at, begin + n, &rows);
        kernels->unfold(
            &(sti_fold_block){.rows = rows,
                              .c = c,
                              .factor = 1.0f / a->coarse,
                              .from = a->u + i,
                              .mean = a->x ? a->mean + col : NULL,
                              .deviation = a->x ? a->deviation + col : NULL,
                              .scale = a->y ? a->scale + col : NULL,
                              .shift = a->y ? a->shift + col : NULL,
                              .residual = a->residual ? a->residual + at : NULL,
                              .bits = a->bits ? a->bits + at / 8 : NULL,
                              .x = a->x ? a->x + i : NULL,
                              .y = a->y ? a->y + i : NULL});
    }
}
