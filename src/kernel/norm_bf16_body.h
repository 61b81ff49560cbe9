/* The loops of batch normalisation on bfloat16 (norm_bf16.h), part of bf16_body.h. A
 * group of up to MANY vectors of columns is walked down its rows with everything that
 * depends on the column in registers; four rows have an accumulator each. */

#define ALWAYS static inline __attribute__((always_inline))
enum { MANY = STI_LANES / 8 };

/* (0 + 1) + (2 + 3) of accumulators a[r * n + v]. */
ALWAYS void join_store(const lane_f *a, const int n, float *out)
{
#pragma GCC unroll 2
    for (int v = 0; v < n; v++)
        lane_store(out + v * STI_LANES,
                   (a[v] + a[n + v]) + (a[2 * n + v] + a[3 * n + v]));
}

ALWAYS void moment_row(const sti_norm_bf16_block *b, int64_t at, lane_f *s, lane_f *q,
                       const lane_f *x0, const int n)
{
#pragma GCC unroll 2
    for (int v = 0; v < n; v++) {
        const lane_f d = lane_bf16_load(b->x + at + v * STI_LANES) - x0[v];
        s[v] += d;
        q[v] += d * d;
    }
}

ALWAYS void moment_group(const sti_norm_bf16_block *b, int64_t col, const int n,
                         float *s_out, float *q_out)
{
    lane_f s[4 * MANY] = {{0}}, q[4 * MANY] = {{0}}, x0[MANY] = {{0}};
    int64_t r = 0, at = col;
#pragma GCC unroll 2
    for (int v = 0; v < n; v++)
        x0[v] = lane_bf16_load(b->x + col + v * STI_LANES);
    for (; r + 4 <= b->rows; r += 4, at += 4 * b->ld) {
#pragma GCC unroll 4
        for (int i = 0; i < 4; i++)
            moment_row(b, at + i * b->ld, s + i * n, q + i * n, x0, n);
    }
#pragma GCC unroll 3
    for (int i = 0; i < 3; i++)
        if (r + i < b->rows)
            moment_row(b, at + i * b->ld, s + i * n, q + i * n, x0, n);
    join_store(s, n, s_out + col);
    join_store(q, n, q_out + col);
}

typedef struct norm_params {
    lane_f mean[MANY], gain[MANY], shift[MANY], slope[MANY];
} norm_params;

ALWAYS void load_params(const sti_norm_bf16_block *b, int64_t col, const int n,
                        const bool slope, norm_params *p)
{
#pragma GCC unroll 2
    for (int v = 0; v < n; v++) {
        p->mean[v] = lane_load(b->mean + col + v * STI_LANES);
        p->gain[v] = lane_load(b->gain + col + v * STI_LANES);
        p->shift[v] = lane_load(b->shift + col + v * STI_LANES);
        if (slope)
            p->slope[v] = lane_load(b->slope + col + v * STI_LANES);
    }
}

ALWAYS void forward_row(const sti_norm_bf16_block *b, const norm_params *p, int64_t at,
                        const int n, const bool residual, const bool relu_too,
                        const bool bits)
{
#pragma GCC unroll 2
    for (int v = 0; v < n; v++, at += STI_LANES) {
        lane_f y = (lane_bf16_load(b->x + at) - p->mean[v]) * p->gain[v] + p->shift[v];
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
}

ALWAYS void forward_group(const sti_norm_bf16_block *b, int64_t col, const int n,
                          const bool residual, const bool relu_too, const bool bits)
{
    norm_params p;
    load_params(b, col, n, false, &p);
    int64_t r = 0, at = col;
    for (; r + 4 <= b->rows; r += 4, at += 4 * b->ld) {
#pragma GCC unroll 4
        for (int i = 0; i < 4; i++)
            forward_row(b, &p, at + i * b->ld, n, residual, relu_too, bits);
    }
    for (; r < b->rows; r++, at += b->ld)
        forward_row(b, &p, at, n, residual, relu_too, bits);
}

ALWAYS lane_f load_z(const sti_norm_bf16_block *b, int64_t at, const bool bits)
{
    const lane_f z = lane_bf16_load(b->dy + at);
    return bits ? lane_keep(z, lane_bits_load(b->bits, at)) : z;
}

ALWAYS void grad_sum_row(const sti_norm_bf16_block *b, int64_t at, lane_f *s, lane_f *q,
                         const lane_f *m, const int n, const bool bits)
{
#pragma GCC unroll 2
    for (int v = 0; v < n; v++, at += STI_LANES) {
        const lane_f z = load_z(b, at, bits);
        s[v] += z;
        q[v] += z * (lane_bf16_load(b->x + at) - m[v]);
    }
}

ALWAYS void grad_sum_group(const sti_norm_bf16_block *b, int64_t col, const int n,
                           const bool bits, float *s_out, float *q_out)
{
    lane_f s[4 * MANY] = {{0}}, q[4 * MANY] = {{0}}, m[MANY] = {{0}};
    int64_t r = 0, at = col;
#pragma GCC unroll 2
    for (int v = 0; v < n; v++)
        m[v] = lane_load(b->mean + col + v * STI_LANES);
    for (; r + 4 <= b->rows; r += 4, at += 4 * b->ld) {
#pragma GCC unroll 4
        for (int i = 0; i < 4; i++)
            grad_sum_row(b, at + i * b->ld, s + i * n, q + i * n, m, n, bits);
    }
#pragma GCC unroll 3
    for (int i = 0; i < 3; i++)
        if (r + i < b->rows)
            grad_sum_row(b, at + i * b->ld, s + i * n, q + i * n, m, n, bits);
    join_store(s, n, s_out + col);
    join_store(q, n, q_out + col);
}

ALWAYS void backward_row(const sti_norm_bf16_block *b, const norm_params *p, int64_t at,
                         const int n, const bool bits, const bool dx, const bool dres)
{
#pragma GCC unroll 2
    for (int v = 0; v < n; v++, at += STI_LANES) {
        const lane_f z = load_z(b, at, bits);
        lane_f d = z;
        if (dx)
            d = ((z - p->shift[v]) -
                 (lane_bf16_load(b->x + at) - p->mean[v]) * p->slope[v]) *
                p->gain[v];
        if (dres)
            lane_bf16_store(b->dresidual + at, z);
        if (dx)
            lane_bf16_store(b->y + at, d);
    }
}

ALWAYS void backward_group(const sti_norm_bf16_block *b, int64_t col, const int n,
                           const bool bits, const bool dx, const bool dres)
{
    norm_params p = {{{0}}, {{0}}, {{0}}, {{0}}};
    if (dx)
        load_params(b, col, n, true, &p);
    int64_t r = 0, at = col;
    for (; r + 4 <= b->rows; r += 4, at += 4 * b->ld) {
#pragma GCC unroll 4
        for (int i = 0; i < 4; i++)
            backward_row(b, &p, at + i * b->ld, n, bits, dx, dres);
    }
    for (; r < b->rows; r++, at += b->ld)
        backward_row(b, &p, at, n, bits, dx, dres);
}

/* Groups of MANY vectors, then of one. */
#define FOR_GROUPS(CALL_MANY, CALL_ONE)                                    \
    do {                                                                   \
        int64_t col = 0;                                                   \
        for (; col + MANY * STI_LANES <= b->cols; col += MANY * STI_LANES) \
            CALL_MANY;                                                     \
        for (; col < b->cols; col += STI_LANES)                            \
            CALL_ONE;                                                      \
    } while (0)

static void block_moments(const sti_norm_bf16_block *b, float *s, float *q)
{
    FOR_GROUPS(moment_group(b, col, MANY, s, q), moment_group(b, col, 1, s, q));
}

#define FORWARD(RESIDUAL, RELU, BITS)                             \
    FOR_GROUPS(forward_group(b, col, MANY, RESIDUAL, RELU, BITS), \
               forward_group(b, col, 1, RESIDUAL, RELU, BITS))

static void block_forward(const sti_norm_bf16_block *b)
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
}

static void block_grad_sums(const sti_norm_bf16_block *b, float *s, float *q)
{
    if (b->bits)
        FOR_GROUPS(grad_sum_group(b, col, MANY, true, s, q),
                   grad_sum_group(b, col, 1, true, s, q));
    else
        FOR_GROUPS(grad_sum_group(b, col, MANY, false, s, q),
                   grad_sum_group(b, col, 1, false, s, q));
}

#define BACKWARD(BITS, DX, DRES)                             \
    FOR_GROUPS(backward_group(b, col, MANY, BITS, DX, DRES), \
               backward_group(b, col, 1, BITS, DX, DRES))

static void block_backward(const sti_norm_bf16_block *b)
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
}
