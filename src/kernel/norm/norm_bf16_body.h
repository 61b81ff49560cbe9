/* The loops of batch normalisation on bfloat16 (norm_bf16.h), part of bf16_body.h. A
 * vector of columns is walked down its rows with everything that depends on the column
 * in registers; four rows have an accumulator each. AVX-512 takes 32 columns where it
 * can (norm_bf16_pairs.h). */

#define ALWAYS static inline __attribute__((always_inline))

/* (0 + 1) + (2 + 3) of accumulators. */
ALWAYS void join_store(const lane_f *a, float *out)
{
    lane_store(out, (a[0] + a[1]) + (a[2] + a[3]));
}

ALWAYS void moment_row(const sti_norm_bf16_block *b, int64_t at, lane_f *s, lane_f *q,
                       lane_f x0)
{
    const lane_f d = lane_bf16_load(b->x + at) - x0;
    *s += d;
    *q += d * d;
}

ALWAYS void moment_group(const sti_norm_bf16_block *b, int64_t col, float *s_out,
                         float *q_out)
{
    lane_f s[4] = {{0}}, q[4] = {{0}};
    const lane_f x0 = lane_bf16_load(b->x + col);
    int64_t r = 0, at = col;
    for (; r + 4 <= b->rows; r += 4, at += 4 * b->ld) {
#pragma GCC unroll 4
        for (int i = 0; i < 4; i++)
            moment_row(b, at + i * b->ld, s + i, q + i, x0);
    }
#pragma GCC unroll 3
    for (int i = 0; i < 3; i++)
        if (r + i < b->rows)
            moment_row(b, at + i * b->ld, s + i, q + i, x0);
    join_store(s, s_out + col);
    join_store(q, q_out + col);
}

typedef struct norm_params {
    lane_f mean, gain, shift, slope;
} norm_params;

ALWAYS norm_params load_params(const sti_norm_bf16_block *b, int64_t col,
                               const bool slope)
{
    norm_params p = {.mean = lane_load(b->mean + col),
                     .gain = lane_load(b->gain + col),
                     .shift = lane_load(b->shift + col)};
    if (slope)
        p.slope = lane_load(b->slope + col);
    return p;
}

ALWAYS void forward_row(const sti_norm_bf16_block *b, const norm_params *p, int64_t at,
                        const bool residual, const bool relu_too, const bool bits)
{
    lane_f y = (lane_bf16_load(b->x + at) - p->mean) * p->gain + p->shift;
    if (residual)
        y += lane_bf16_load(b->residual + at);
    if (relu_too) {
        const lane_bits pass = lane_passes(y);
        y = lane_keep(y, pass);
        if (bits)
            lane_bits_store(b->bits_out, at, pass);
    }
    lane_bf16_store(b->y + at, y);
}

ALWAYS void forward_group(const sti_norm_bf16_block *b, int64_t col,
                          const bool residual, const bool relu_too, const bool bits)
{
    const norm_params p = load_params(b, col, false);
    for (int64_t r = 0, at = col; r < b->rows; r++, at += b->ld)
        forward_row(b, &p, at, residual, relu_too, bits);
}

ALWAYS lane_f load_z(const sti_norm_bf16_block *b, int64_t at, const bool bits)
{
    const lane_f z = lane_bf16_load(b->dy + at);
    return bits ? lane_keep(z, lane_bits_load(b->bits, at)) : z;
}

ALWAYS void grad_sum_row(const sti_norm_bf16_block *b, int64_t at, lane_f *s, lane_f *q,
                         lane_f m, const bool bits)
{
    const lane_f z = load_z(b, at, bits);
    *s += z;
    *q += z * (lane_bf16_load(b->x + at) - m);
}

ALWAYS void grad_sum_group(const sti_norm_bf16_block *b, int64_t col, const bool bits,
                           float *s_out, float *q_out)
{
    lane_f s[4] = {{0}}, q[4] = {{0}};
    const lane_f m = lane_load(b->mean + col);
    int64_t r = 0, at = col;
    for (; r + 4 <= b->rows; r += 4, at += 4 * b->ld) {
#pragma GCC unroll 4
        for (int i = 0; i < 4; i++)
            grad_sum_row(b, at + i * b->ld, s + i, q + i, m, bits);
    }
#pragma GCC unroll 3
    for (int i = 0; i < 3; i++)
        if (r + i < b->rows)
            grad_sum_row(b, at + i * b->ld, s + i, q + i, m, bits);
    join_store(s, s_out + col);
    join_store(q, q_out + col);
}

ALWAYS void backward_row(const sti_norm_bf16_block *b, const norm_params *p, int64_t at,
                         const bool bits, const bool dx, const bool dres)
{
    const lane_f z = load_z(b, at, bits);
    lane_f d = z;
    if (dx)
        d = ((z - p->shift) - (lane_bf16_load(b->x + at) - p->mean) * p->slope) *
            p->gain;
    if (dres)
        lane_bf16_store(b->dresidual + at, z);
    if (dx)
        lane_bf16_store(b->y + at, d);
}

ALWAYS void backward_group(const sti_norm_bf16_block *b, int64_t col, const bool bits,
                           const bool dx, const bool dres)
{
    norm_params p = {{0}, {0}, {0}, {0}};
    if (dx)
        p = load_params(b, col, true);
    for (int64_t r = 0, at = col; r < b->rows; r++, at += b->ld)
        backward_row(b, &p, at, bits, dx, dres);
}

#if STI_LANES == 16

#include "kernel/norm/norm_bf16_pairs.h"

/* NAME_pairs(b, col, narrow, ..) where it can, else NAME_group(b, col, ..). */
#define FOR_GROUPS(NAME, ...)                                   \
    do {                                                        \
        const bool fours = b->rows % 4 == 0;                    \
        int64_t col = 0;                                        \
        if (fours && b->ld == STI_LANES) {                      \
            NAME##_pairs(b, col, true, __VA_ARGS__);            \
            return;                                             \
        }                                                       \
        for (; fours && col + PAIRED <= b->cols; col += PAIRED) \
            NAME##_pairs(b, col, false, __VA_ARGS__);           \
        for (; col < b->cols; col += STI_LANES)                 \
            NAME##_group(b, col, __VA_ARGS__);                  \
    } while (0)

#else

#define FOR_GROUPS(NAME, ...)                                  \
    do {                                                       \
        for (int64_t col = 0; col < b->cols; col += STI_LANES) \
            NAME##_group(b, col, __VA_ARGS__);                 \
    } while (0)

#endif

static void block_moments(const sti_norm_bf16_block *b, float *s, float *q)
{
    FOR_GROUPS(moment, s, q);
}

static void block_forward(const sti_norm_bf16_block *b)
{
    const bool bits = b->bits_out != NULL;
    if (b->residual && b->relu && bits)
        FOR_GROUPS(forward, true, true, true);
    else if (b->residual && b->relu)
        FOR_GROUPS(forward, true, true, false);
    else if (b->residual)
        FOR_GROUPS(forward, true, false, false);
    else if (b->relu && bits)
        FOR_GROUPS(forward, false, true, true);
    else if (b->relu)
        FOR_GROUPS(forward, false, true, false);
    else
        FOR_GROUPS(forward, false, false, false);
}

static void block_grad_sums(const sti_norm_bf16_block *b, float *s, float *q)
{
    if (b->bits)
        FOR_GROUPS(grad_sum, true, s, q);
    else
        FOR_GROUPS(grad_sum, false, s, q);
}

static void block_backward(const sti_norm_bf16_block *b)
{
    const bool bits = b->bits != NULL;
    if (b->y && b->dresidual && bits)
        FOR_GROUPS(backward, true, true, true);
    else if (b->y && b->dresidual)
        FOR_GROUPS(backward, false, true, true);
    else if (b->y && bits)
        FOR_GROUPS(backward, true, true, false);
    else if (b->y)
        FOR_GROUPS(backward, false, true, false);
    else if (bits)
        FOR_GROUPS(backward, true, false, true);
    else
        FOR_GROUPS(backward, false, false, true);
}
