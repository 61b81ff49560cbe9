/* Body of the loops of norm_block.h for blocks of whole vectors. Included once by each
 * instruction set's file, which defines STI_LANES and NORM_KERNELS (the table's name).
 *
 * A group of up to 4 vectors of columns is walked down its rows with everything that
 * depends on the column in registers. Four rows have an accumulator each. */
#include "kernel/lane/lane.h"
#include "kernel/norm/norm_block.h"

#define ALWAYS static inline __attribute__((always_inline))

/* Elements to the row that is about 2 KiB of reading ahead: the machine's own prefetch
 * stops at the end of a page, and of a row of the block. */
ALWAYS int64_t ahead_of(const sti_norm_block *b)
{
    enum { NEAR = 512, GROUP = 64 };
    const int64_t cols = b->cols < GROUP ? b->cols : GROUP;
    return (NEAR + cols - 1) / cols * b->ld;
}

/* (0 + 1) + (2 + 3) of accumulators a[r * n + v]. */
ALWAYS void join_store(const lane_f *a, int n, float *out)
{
    for (int v = 0; v < n; v++)
        lane_store(out + v * STI_LANES,
                   (a[v] + a[n + v]) + (a[2 * n + v] + a[3 * n + v]));
}

/* ---- sum ---- */

ALWAYS void sum_row(lane_f *a, const int n, const float *x)
{
#pragma GCC unroll 4
    for (int v = 0; v < n; v++)
        a[v] += lane_load(x + v * STI_LANES);
}

ALWAYS void sum_group(const sti_norm_block *block, int64_t col, const int n, float *s)
{
    const sti_norm_block local = *block, *b = &local; /* stores leave it alone */
    lane_f a[16] = {{0}};
    const float *x = b->x + col;
    int64_t r = 0;
    for (; r + 4 <= b->rows; r += 4, x += 4 * b->ld) {
#pragma GCC unroll 4
        for (int i = 0; i < 4; i++)
            sum_row(a + i * n, n, x + i * b->ld);
    }
#pragma GCC unroll 3
    for (int i = 0; i < 3; i++)
        if (r + i < b->rows)
            sum_row(a + i * n, n, x + i * b->ld);
    join_store(a, n, s + col);
}

/* ---- moments ---- */

/* The second walk finds x in the cache: memory has the time to fetch what is next. */
ALWAYS void moment_row(lane_f *a, lane_f *q, const lane_f *m, const int n,
                       const float *x, int64_t next)
{
#pragma GCC unroll 4
    for (int v = 0; v < n; v++) {
        lane_f d = lane_load(x + v * STI_LANES) - m[v];
        lane_ahead(x + v * STI_LANES, next);
        a[v] += d;
        q[v] += d * d;
    }
}

ALWAYS void moment_group(const sti_norm_block *block, int64_t col, const int n,
                         float *s, float *square)
{
    const sti_norm_block local = *block, *b = &local; /* stores leave it alone */
    lane_f a[8] = {{0}}, q[8] = {{0}}, m[2] = {{0}};
    const float *x = b->x + col;
    int64_t r = 0;
    for (int v = 0; v < n; v++)
        m[v] = lane_load(b->mean + col + v * STI_LANES);
    for (; r + 4 <= b->rows; r += 4, x += 4 * b->ld) {
#pragma GCC unroll 4
        for (int i = 0; i < 4; i++)
            moment_row(a + i * n, q + i * n, m, n, x + i * b->ld, b->next);
    }
#pragma GCC unroll 3
    for (int i = 0; i < 3; i++)
        if (r + i < b->rows)
            moment_row(a + i * n, q + i * n, m, n, x + i * b->ld, b->next);
    join_store(a, n, s + col);
    join_store(q, n, square + col);
}

/* ---- forward ---- */

typedef struct forward_params {
    lane_f mean[4], gain[4], shift[4];
} forward_params;

ALWAYS void forward_row(const sti_norm_block *b, const forward_params *p, int64_t at,
                        const int n, const int64_t ahead, const bool residual,
                        const bool relu, const bool bits)
{
#pragma GCC unroll 4
    for (int v = 0; v < n; v++, at += STI_LANES) {
        lane_ahead(b->x + at, ahead);
        if (residual)
            lane_ahead(b->residual + at, ahead);
        if (!b->stream)
            lane_ahead_written(b->y + at, ahead);
        lane_f y = (lane_load(b->x + at) - p->mean[v]) * p->gain[v] + p->shift[v];
        if (residual)
            y += lane_load(b->residual + at);
        if (relu) {
            lane_bits pass = lane_passes(y);
            y = lane_keep(y, pass);
            if (bits)
                lane_bits_store(b->bits_out, at, pass);
        }
        if (b->stream)
            lane_stream(b->y + at, y);
        else
            lane_store(b->y + at, y);
    }
}

ALWAYS void forward_group(const sti_norm_block *block, int64_t col, const int n,
                          const bool residual, const bool relu, const bool bits)
{
    const sti_norm_block local = *block, *b = &local; /* stores leave it alone */
    forward_params p;
    for (int v = 0; v < n; v++) {
        p.mean[v] = lane_load(b->mean + col + v * STI_LANES);
        p.gain[v] = lane_load(b->gain + col + v * STI_LANES);
        p.shift[v] = lane_load(b->shift + col + v * STI_LANES);
    }
    const int64_t ahead = ahead_of(b);
    int64_t r = 0, at = col;
    for (; r + 4 <= b->rows; r += 4, at += 4 * b->ld) {
#pragma GCC unroll 4
        for (int i = 0; i < 4; i++)
            forward_row(b, &p, at + i * b->ld, n, ahead, residual, relu, bits);
    }
    for (; r < b->rows; r++, at += b->ld)
        forward_row(b, &p, at, n, ahead, residual, relu, bits);
}

/* ---- backward ---- */

ALWAYS lane_f load_z(const sti_norm_block *b, int64_t at, const int64_t ahead,
                     const bool bits)
{
    lane_f z = lane_load(b->dy + at);
    lane_ahead(b->dy + at, ahead);
    lane_ahead(b->x + at, ahead);
    return bits ? lane_keep(z, lane_bits_load(b->bits, at)) : z;
}

ALWAYS void grad_sum_row(const sti_norm_block *b, lane_f *a, lane_f *q, const lane_f *m,
                         const int n, int64_t at, const int64_t ahead, const bool bits)
{
#pragma GCC unroll 4
    for (int v = 0; v < n; v++, at += STI_LANES) {
        lane_f z = load_z(b, at, ahead, bits);
        a[v] += z;
        q[v] += z * (lane_load(b->x + at) - m[v]);
    }
}

ALWAYS void grad_sum_group(const sti_norm_block *block, int64_t col, const int n,
                           const bool bits, float *s, float *square)
{
    const sti_norm_block local = *block, *b = &local; /* stores leave it alone */
    lane_f a[8] = {{0}}, q[8] = {{0}}, m[2] = {{0}};
    const int64_t ahead = ahead_of(b);
    int64_t r = 0, at = col;
    for (int v = 0; v < n; v++)
        m[v] = lane_load(b->mean + col + v * STI_LANES);
    for (; r + 4 <= b->rows; r += 4, at += 4 * b->ld) {
#pragma GCC unroll 4
        for (int i = 0; i < 4; i++)
            grad_sum_row(b, a + i * n, q + i * n, m, n, at + i * b->ld, ahead, bits);
    }
#pragma GCC unroll 3
    for (int i = 0; i < 3; i++)
        if (r + i < b->rows)
            grad_sum_row(b, a + i * n, q + i * n, m, n, at + i * b->ld, ahead, bits);
    join_store(a, n, s + col);
    join_store(q, n, square + col);
}

typedef struct backward_params {
    lane_f mean[2], gain[2], shift[2], slope[2];
} backward_params;

ALWAYS void backward_row(const sti_norm_block *b, const backward_params *p, int64_t at,
                         const int n, const int64_t ahead, const bool bits,
                         const bool dx, const bool dres)
{
#pragma GCC unroll 4
    for (int v = 0; v < n; v++, at += STI_LANES) {
        lane_f z = load_z(b, at, ahead, bits), d = z;
        if (dx)
            d = ((z - p->shift[v]) -
                 (lane_load(b->x + at) - p->mean[v]) * p->slope[v]) *
                p->gain[v];
        if (dres && !b->stream_dresidual)
            lane_ahead_written(b->dresidual + at, ahead);
        if (dres && b->stream_dresidual)
            lane_stream(b->dresidual + at, z);
        else if (dres)
            lane_store(b->dresidual + at, z);
        if (dx && b->stream)
            lane_stream(b->y + at, d);
        else if (dx)
            lane_store(b->y + at, d);
    }
}

ALWAYS void backward_group(const sti_norm_block *block, int64_t col, const int n,
                           const bool bits, const bool dx, const bool dres)
{
    const sti_norm_block local = *block, *b = &local; /* stores leave it alone */
    backward_params p = {{{0}}, {{0}}, {{0}}, {{0}}};
    for (int v = 0; v < n && dx; v++) {
        p.mean[v] = lane_load(b->mean + col + v * STI_LANES);
        p.gain[v] = lane_load(b->gain + col + v * STI_LANES);
        p.shift[v] = lane_load(b->shift + col + v * STI_LANES);
        p.slope[v] = lane_load(b->slope + col + v * STI_LANES);
    }
    const int64_t ahead = ahead_of(b);
    int64_t r = 0, at = col;
    for (; r + 4 <= b->rows; r += 4, at += 4 * b->ld) {
#pragma GCC unroll 4
        for (int i = 0; i < 4; i++)
            backward_row(b, &p, at + i * b->ld, n, ahead, bits, dx, dres);
    }
    for (; r < b->rows; r++, at += b->ld)
        backward_row(b, &p, at, n, ahead, bits, dx, dres);
}

/* ---- over all columns ---- */

/* Groups of MANY vectors, then of one. */
#define FOR_GROUPS(MANY, CALL_MANY, CALL_ONE)                              \
    do {                                                                   \
        int64_t col = 0;                                                   \
        for (; col + (MANY)*STI_LANES <= b->cols; col += (MANY)*STI_LANES) \
            CALL_MANY;                                                     \
        for (; col < b->cols; col += STI_LANES)                            \
            CALL_ONE;                                                      \
    } while (0)

static void block_sum(const sti_norm_block *b, float *s)
{
    FOR_GROUPS(STI_LANES / 4, sum_group(b, col, STI_LANES / 4, s),
               sum_group(b, col, 1, s));
}

static void block_moments(const sti_norm_block *b, float *s, float *q)
{
    FOR_GROUPS(STI_LANES / 8, moment_group(b, col, STI_LANES / 8, s, q),
               moment_group(b, col, 1, s, q));
}

#define FORWARD(RESIDUAL, RELU, BITS)                             \
    FOR_GROUPS(4, forward_group(b, col, 4, RESIDUAL, RELU, BITS), \
               forward_group(b, col, 1, RESIDUAL, RELU, BITS))

static void block_forward(const sti_norm_block *b)
{
    const bool bits = b->bits_out != NULL;
    if (b->residual && b->relu && bits)
        FORWARD(true, true, true);
    else if (b->residual && b->relu)
        FORWARD(true, true, false);
    else if (b->residual)
        FORWARD(true, false, false);
    else if (b->relu && bits)
        FORWARD(false, true, true);
    else if (b->relu)
        FORWARD(false, true, false);
    else
        FORWARD(false, false, false);
    if (b->stream)
        lane_fence();
}

static void block_grad_sums(const sti_norm_block *b, float *s, float *q)
{
    enum { MANY = STI_LANES / 8 };
    if (b->bits)
        FOR_GROUPS(MANY, grad_sum_group(b, col, MANY, true, s, q),
                   grad_sum_group(b, col, 1, true, s, q));
    else
        FOR_GROUPS(MANY, grad_sum_group(b, col, MANY, false, s, q),
                   grad_sum_group(b, col, 1, false, s, q));
}

#define BACKWARD(BITS, DX, DRES)                             \
    FOR_GROUPS(2, backward_group(b, col, 2, BITS, DX, DRES), \
               backward_group(b, col, 1, BITS, DX, DRES))

static void block_backward(const sti_norm_block *b)
{
    const bool bits = b->bits != NULL;
    if (b->y && b->dresidual && bits)
        BACKWARD(true, true, true);
    else if (b->y && b->dresidual)
        BACKWARD(false, true, true);
    else if (b->y && bits)
        BACKWARD(true, true, false);
    else if (b->y)
        BACKWARD(false, true, false);
    else if (bits)
        BACKWARD(true, false, true);
    else
        BACKWARD(false, false, true);
    if (b->stream || b->stream_dresidual)
        lane_fence();
}

const sti_norm_kernels NORM_KERNELS = {
    .sum = block_sum,
    .moments = block_moments,
    .forward = block_forward,
    .grad_sums = block_grad_sums,
    .backward = block_backward,
};
