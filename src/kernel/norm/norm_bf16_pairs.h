/* The loops of batch normalisation on bfloat16 for AVX-512, 32 elements at a time; part
 * of norm_bf16_body.h. Even and odd columns of a load are a vector each (lane_bf16.h).
 * A load is 32 columns of a row or, where a row has 16 (`narrow`), two rows; sums are
 * those of norm_bf16_body.h, four rows having an accumulator each. Rows come in fours.
 */

enum { PAIRED = 32 };

/* Halves of 32 columns of p or, narrow, of 16 twice. */
ALWAYS void load_columns(const float *p, const bool narrow, __m512 *half)
{
    const __m512 a = _mm512_loadu_ps(p), b = narrow ? a : _mm512_loadu_ps(p + 16);
    const __m512i even =
        _mm512_set_epi32(30, 28, 26, 24, 22, 20, 18, 16, 14, 12, 10, 8, 6, 4, 2, 0);
    half[0] = _mm512_permutex2var_ps(a, even, b);
    half[1] = _mm512_permutex2var_ps(a, _mm512_or_si512(even, _mm512_set1_epi32(1)), b);
}

/* (0 + 1) + (2 + 3) of the rows' accumulators a[2 i + odd]; narrow: of rows 2 i and
 * 2 i + 1. */
ALWAYS void join_halves(const __m512 *a, const bool narrow, float *out)
{
#pragma GCC unroll 2
    for (int odd = 0; odd < 2; odd++) {
        float sum[16], more[16];
        if (narrow) {
            _mm512_storeu_ps(sum, a[odd]);
            _mm512_storeu_ps(more, a[2 + odd]);
            for (int j = 0; j < 8; j++)
                out[2 * j + odd] = (sum[j] + sum[8 + j]) + (more[j] + more[8 + j]);
        } else {
            _mm512_storeu_ps(sum, (a[odd] + a[2 + odd]) + (a[4 + odd] + a[6 + odd]));
            for (int j = 0; j < 16; j++)
                out[2 * j + odd] = sum[j];
        }
    }
}

/* Elements that lie this far ahead, read or written, are brought into the second cache:
 * prefetchers begin anew at each page. */
enum { AHEAD = 2048 };

ALWAYS void fetch_ahead(const sti_bf16 *p)
{
    __builtin_prefetch((const void *)((uintptr_t)p + AHEAD * sizeof *p), 0, 2);
}

/* Vectors of four rows, and elements from one to the next. */
ALWAYS int vectors_of(const bool narrow)
{
    return narrow ? 2 : 4;
}

ALWAYS int64_t step_of(const sti_norm_bf16_block *b, const bool narrow)
{
    return narrow ? PAIRED : b->ld;
}

ALWAYS void moment_vector(const sti_norm_bf16_block *b, int64_t at, const __m512 *x0,
                          __m512 *s, __m512 *q)
{
    const __m512i x = _mm512_loadu_si512(b->x + at);
    fetch_ahead(b->x + at);
#pragma GCC unroll 2
    for (int odd = 0; odd < 2; odd++) {
        const __m512 d = lane_bf16_half(x, odd) - x0[odd];
        s[odd] += d;
        q[odd] += d * d;
    }
}

ALWAYS void moment_pairs(const sti_norm_bf16_block *b, int64_t col, const bool narrow,
                         float *s_out, float *q_out)
{
    __m512 s[8] = {{0}}, q[8] = {{0}}, x0[2];
    const __m512i first =
        narrow ? _mm512_broadcast_i64x4(_mm256_loadu_si256((const void *)(b->x + col)))
               : _mm512_loadu_si512(b->x + col);
    x0[0] = lane_bf16_half(first, 0);
    x0[1] = lane_bf16_half(first, 1);
    for (int64_t r = 0, at = col; r < b->rows; r += 4, at += 4 * b->ld) {
#pragma GCC unroll 4
        for (int i = 0; i < vectors_of(narrow); i++)
            moment_vector(b, at + i * step_of(b, narrow), x0, s + 2 * i, q + 2 * i);
    }
    join_halves(s, narrow, s_out + col);
    join_halves(q, narrow, q_out + col);
}

typedef struct pair_params {
    __m512 mean[2], gain[2], shift[2], slope[2];
} pair_params;

ALWAYS void load_pair_params(const sti_norm_bf16_block *b, int64_t col,
                             const bool narrow, const bool slope, pair_params *p)
{
    load_columns(b->mean + col, narrow, p->mean);
    load_columns(b->gain + col, narrow, p->gain);
    load_columns(b->shift + col, narrow, p->shift);
    if (slope)
        load_columns(b->slope + col, narrow, p->slope);
}

ALWAYS void forward_vector(const sti_norm_bf16_block *b, const pair_params *p,
                           int64_t at, const bool residual, const bool relu_too,
                           const bool bits)
{
    const __m512i x = _mm512_loadu_si512(b->x + at);
    const __m512i more = residual ? _mm512_loadu_si512(b->residual + at) : x;
    fetch_ahead(b->x + at);
    if (residual)
        fetch_ahead(b->residual + at);
    fetch_ahead(b->y + at);
    __m512 y[2];
#pragma GCC unroll 2
    for (int odd = 0; odd < 2; odd++) {
        y[odd] = (lane_bf16_half(x, odd) - p->mean[odd]) * p->gain[odd] + p->shift[odd];
        if (residual)
            y[odd] += lane_bf16_half(more, odd);
    }
    __m512i out = lane_bf16_pack(y);
    if (relu_too) {
        /* As integers, numbers from -inf to -0 are those up to -128; a NaN passes. No
         * float32 > 0 was rounded to 0: none was denormal. */
        const __mmask32 keep = _mm512_cmpgt_epi16_mask(out, _mm512_set1_epi16(-128));
        out = _mm512_maskz_mov_epi16(keep, out);
        if (bits) {
            const uint32_t pass = _mm512_test_epi16_mask(out, out);
            memcpy(b->bits_out + at / 8, &pass, sizeof pass);
        }
    }
    _mm512_storeu_si512(b->y + at, out);
}

ALWAYS void forward_pairs(const sti_norm_bf16_block *b, int64_t col, const bool narrow,
                          const bool residual, const bool relu_too, const bool bits)
{
    pair_params p;
    load_pair_params(b, col, narrow, false, &p);
    for (int64_t r = 0, at = col; r < b->rows; r += 4, at += 4 * b->ld) {
#pragma GCC unroll 4
        for (int i = 0; i < vectors_of(narrow); i++)
            forward_vector(b, &p, at + i * step_of(b, narrow), residual, relu_too,
                           bits);
    }
}

ALWAYS __m512i load_z_pairs(const sti_norm_bf16_block *b, int64_t at, const bool bits)
{
    uint32_t pass = ~0u;
    if (!bits)
        return _mm512_loadu_si512(b->dy + at);
    memcpy(&pass, b->bits + at / 8, sizeof pass);
    return _mm512_maskz_loadu_epi16(pass, b->dy + at);
}

ALWAYS void grad_sum_vector(const sti_norm_bf16_block *b, int64_t at, const __m512 *m,
                            const bool bits, __m512 *s, __m512 *q)
{
    const __m512i z = load_z_pairs(b, at, bits), x = _mm512_loadu_si512(b->x + at);
    fetch_ahead(b->dy + at);
    fetch_ahead(b->x + at);
#pragma GCC unroll 2
    for (int odd = 0; odd < 2; odd++) {
        s[odd] += lane_bf16_half(z, odd);
        q[odd] += lane_bf16_half(z, odd) * (lane_bf16_half(x, odd) - m[odd]);
    }
}

ALWAYS void grad_sum_pairs(const sti_norm_bf16_block *b, int64_t col, const bool narrow,
                           const bool bits, float *s_out, float *q_out)
{
    __m512 s[8] = {{0}}, q[8] = {{0}}, m[2];
    load_columns(b->mean + col, narrow, m);
    for (int64_t r = 0, at = col; r < b->rows; r += 4, at += 4 * b->ld) {
#pragma GCC unroll 4
        for (int i = 0; i < vectors_of(narrow); i++)
            grad_sum_vector(b, at + i * step_of(b, narrow), m, bits, s + 2 * i,
                            q + 2 * i);
    }
    join_halves(s, narrow, s_out + col);
    join_halves(q, narrow, q_out + col);
}

ALWAYS void backward_vector(const sti_norm_bf16_block *b, const pair_params *p,
                            int64_t at, const bool bits, const bool dx, const bool dres)
{
    const __m512i dy = load_z_pairs(b, at, bits);
    const __m512 z[2] = {lane_bf16_half(dy, 0), lane_bf16_half(dy, 1)};
    const __m512i x = dx ? _mm512_loadu_si512(b->x + at) : dy;
    if (dres)
        _mm512_storeu_si512(b->dresidual + at, lane_bf16_pack(z));
    if (dx) {
        __m512 d[2];
#pragma GCC unroll 2
        for (int odd = 0; odd < 2; odd++)
            d[odd] = ((z[odd] - p->shift[odd]) -
                      (lane_bf16_half(x, odd) - p->mean[odd]) * p->slope[odd]) *
                     p->gain[odd];
        _mm512_storeu_si512(b->y + at, lane_bf16_pack(d));
    }
}

ALWAYS void backward_pairs(const sti_norm_bf16_block *b, int64_t col, const bool narrow,
                           const bool bits, const bool dx, const bool dres)
{
    pair_params p;
    if (dx)
        load_pair_params(b, col, narrow, true, &p);
    for (int64_t r = 0, at = col; r < b->rows; r += 4, at += 4 * b->ld) {
#pragma GCC unroll 4
        for (int i = 0; i < vectors_of(narrow); i++)
            backward_vector(b, &p, at + i * step_of(b, narrow), bits, dx, dres);
    }
}
