/* AVX2 with FMA, 8 lanes: the vector words that the kernel bodies are written in. Only
 * for
 * *_avx2.c files, which are compiled for that instruction set. */
#ifndef STI_KERNEL_GEMM_VEC_AVX2_H
#define STI_KERNEL_GEMM_VEC_AVX2_H

#include <stdint.h>

#include <immintrin.h>

#include "kernel/gemm/gemm_vec_rows.h"

typedef __m256 vec;
enum { VEC_WIDTH = 8, VECS = 2 };

#define vec_zero()             _mm256_setzero_ps()
#define vec_load(p)            _mm256_loadu_ps(p)
#define vec_store(p, x)        _mm256_storeu_ps(p, x)
#define vec_splat(x)           _mm256_set1_ps(x)
#define vec_fma(a, b, c)       _mm256_fmadd_ps(a, b, c)
#define vec_fma_splat(a, b, c) _mm256_fmadd_ps(_mm256_set1_ps(*(a)), b, c)
#define vec_fma_onto(a, b, c)  _mm256_fmadd_ps(a, b, c)
#define vec_add(a, b)          _mm256_add_ps(a, b)
#define vec_relu(x)            _mm256_max_ps(_mm256_setzero_ps(), x) /* 0 > x ? 0 : x */

static inline __m256i first_lanes(int64_t count)
{
    const int n = count > 8 ? 8 : count < 0 ? 0 : (int)count;
    return _mm256_cmpgt_epi32(_mm256_set1_epi32(n),
                              _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7));
}

/* The first lanes of a vector, for several loads and stores. */
typedef __m256i vec_lanes;
#define vec_load_lanes(p, lanes)     _mm256_maskload_ps(p, lanes)
#define vec_store_lanes(p, x, lanes) _mm256_maskstore_ps(p, lanes, x)

static inline vec vec_load_part(const float *p, int64_t count)
{
    return _mm256_maskload_ps(p, first_lanes(count));
}

static inline void vec_store_part(float *p, vec x, int64_t count)
{
    _mm256_maskstore_ps(p, first_lanes(count), x);
}

static inline void vec_mask16(const float *y, uint8_t *mask)
{
    for (int i = 0; i < 2; i++)
        mask[i] = (uint8_t)_mm256_movemask_ps(
            _mm256_cmp_ps(_mm256_loadu_ps(y + 8 * i), _mm256_setzero_ps(), _CMP_GT_OQ));
}

/* Up to four steps of 8 rows into out[step], rows as lanes, as in the AVX-512 file. */
static inline __attribute__((always_inline)) void
vec_load_steps(const vec_rows *rows, const int at, const int steps, vec *out)
{
    const __m128i some =
        _mm_cmpgt_epi32(_mm_set1_epi32(steps), _mm_setr_epi32(0, 1, 2, 3));
    __m256 row[4];
#define FOUR(P) (steps == 4 ? _mm_loadu_ps(P) : _mm_maskload_ps(P, some))
#pragma GCC unroll 4
    for (int i = 0; i < 4; i++) {
        const float *p = rows->p[i] + at;
        row[i] = _mm256_insertf128_ps(_mm256_castps128_ps256(FOUR(p)),
                                      FOUR(p + rows->by4), 1);
    }
#undef FOUR
    const __m256 a = _mm256_unpacklo_ps(row[0], row[1]);
    const __m256 b = _mm256_unpackhi_ps(row[0], row[1]);
    const __m256 c = _mm256_unpacklo_ps(row[2], row[3]);
    const __m256 d = _mm256_unpackhi_ps(row[2], row[3]);
    out[0] = _mm256_shuffle_ps(a, c, 0x44);
    out[1] = _mm256_shuffle_ps(a, c, 0xEE);
    out[2] = _mm256_shuffle_ps(b, d, 0x44);
    out[3] = _mm256_shuffle_ps(b, d, 0xEE);
}

/* The way back: dst[i ld + s] = in[s][i]. */
static inline __attribute__((always_inline)) void
vec_store_steps(float *dst, int64_t ld, const int steps, const vec *in)
{
    const __m128i some =
        _mm_cmpgt_epi32(_mm_set1_epi32(steps), _mm_setr_epi32(0, 1, 2, 3));
    const __m256 a = _mm256_unpacklo_ps(in[0], in[1]);
    const __m256 b = _mm256_unpackhi_ps(in[0], in[1]);
    const __m256 c = _mm256_unpacklo_ps(in[2], in[3]);
    const __m256 d = _mm256_unpackhi_ps(in[2], in[3]);
    const __m256 row[4] = {_mm256_shuffle_ps(a, c, 0x44), _mm256_shuffle_ps(a, c, 0xEE),
                           _mm256_shuffle_ps(b, d, 0x44),
                           _mm256_shuffle_ps(b, d, 0xEE)};
#pragma GCC unroll 4
    for (int64_t i = 0; i < 4; i++) {
        float *p = dst + i * ld;
        _mm_maskstore_ps(p, some, _mm256_castps256_ps128(row[i]));
        _mm_maskstore_ps(p + 4 * ld, some, _mm256_extractf128_ps(row[i], 1));
    }
}

/* dst[j][i] = src[i][j], 8 x 8. */
static inline void vec_transpose(const float *src, int64_t ld, float *dst,
                                 int64_t width)
{
    const vec_rows rows = vec_rows_at(src, ld);
#pragma GCC unroll 2
    for (int q = 0; q < 8; q += 4) {
        vec out[4];
        vec_load_steps(&rows, q, 4, out);
#pragma GCC unroll 4
        for (int s = 0; s < 4; s++)
            vec_store(dst + (q + s) * width, out[s]);
    }
}

static inline void vec_load_transposed(const float *src, int64_t ld, vec *out)
{
    float rows[8 * 8];
    vec_transpose(src, ld, rows, 8);
    for (int i = 0; i < 8; i++)
        out[i] = _mm256_loadu_ps(rows + 8 * (ptrdiff_t)i);
}

/* Two rows become quads, as in the AVX-512 file. */
static inline void vec_quads(const float *src, int64_t ld, float *dst, int64_t step)
{
    const __m256 a = _mm256_loadu_ps(src), b = _mm256_loadu_ps(src + ld);
    _mm256_storeu_ps(dst, _mm256_permute2f128_ps(a, b, 0x20));
    _mm256_storeu_ps(dst + step, _mm256_permute2f128_ps(a, b, 0x31));
}

#endif
