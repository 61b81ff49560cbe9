/* The weight gradient's tile for AVX-512: up to 14 values of x by 32 channels of dy. */
#include "kernel/conv/conv_tile.h"

#if defined(__x86_64__)
#include "kernel/gemm/gemm_vec_avx512.h"

static inline __attribute__((always_inline)) void
grad_begin(const sti_gemm_tile *t, const float *c, vec *acc, const int rows)
{
    const __mmask16 m0 = first_lanes(t->cols), m1 = first_lanes(t->cols - 16);
#pragma GCC unroll 16
    for (int r = 0; r < rows; r++, c += t->c_row) {
        acc[2 * r] = t->load ? _mm512_maskz_loadu_ps(m0, c) : vec_zero();
        acc[2 * r + 1] = t->load ? _mm512_maskz_loadu_ps(m1, c + 16) : vec_zero();
    }
}

static inline __attribute__((always_inline)) void
grad_end(const sti_gemm_tile *t, float *c, const vec *acc, const int rows)
{
    const __mmask16 m0 = first_lanes(t->cols), m1 = first_lanes(t->cols - 16);
#pragma GCC unroll 16
    for (int r = 0; r < rows; r++, c += t->c_row) {
        _mm512_mask_storeu_ps(c, m0, acc[2 * r]);
        _mm512_mask_storeu_ps(c + 16, m1, acc[2 * r + 1]);
    }
}

static inline __attribute__((always_inline)) void grad_run(const sti_gemm_tile *t,
                                                           const float *from, float *c,
                                                           sti_conv_stream *prefetch,
                                                           const int rows)
{
    vec acc[2 * STI_CONV_TILE_ROWS];
    sti_conv_stream s = *prefetch;
    grad_begin(t, c, acc, rows);
    for (int64_t i = 0; i < t->runs; i++) {
        const float *a = from + t->a_run[i], *b = t->b + t->b_run[i];
        for (int64_t k = t->run_k; k > 0; k--, a += t->a_step, b += t->b_step) {
            _mm_prefetch(s.at, _MM_HINT_T0);
            s.left--;
            s.at += s.left ? 64 : s.skip;
            s.left = s.left ? s.left : s.lines;
            const vec b0 = vec_load(b), b1 = vec_load(b + 16);
#pragma GCC unroll 16
            for (int r = 0; r < rows; r++) {
                const vec x = vec_splat(a[r]);
                acc[2 * r] = vec_fma(x, b0, acc[2 * r]);
                acc[2 * r + 1] = vec_fma(x, b1, acc[2 * r + 1]);
            }
        }
    }
    grad_end(t, c, acc, rows);
    *prefetch = s;
}

#define GRAD(R)                                                                \
    static void grad_##R(const sti_gemm_tile *t, sti_conv_stream *prefetch)    \
    {                                                                          \
        const float *a = t->a;                                                 \
        float *c = t->c;                                                       \
        for (int64_t i = 0; i < t->lines; i++, a += t->a_line, c += t->c_line) \
            grad_run(t, a, c, prefetch, R);                                    \
    }
#define NAME(R) grad_##R,
#define GRADS(X) \
    X(1) X(2) X(3) X(4) X(5) X(6) X(7) X(8) X(9) X(10) X(11) X(12) X(13) X(14)

GRADS(GRAD)

void sti_conv_grad_tile_avx512(const sti_gemm_tile *t, sti_conv_stream *prefetch)
{
    static sti_conv_grad_tile_fn *const tiles[] = {GRADS(NAME)};
    tiles[t->rows - 1](t, prefetch);
}
#else
typedef int sti_conv_grad_tile_avx512_unused;
#endif
