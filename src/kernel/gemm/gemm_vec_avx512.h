/* AVX-512, 16 lanes: the vector words that the kernel bodies are written in. Only for
 * *_avx512.c files, which are compiled for that instruction set. */
#ifndef STI_KERNEL_GEMM_VEC_AVX512_H
#define STI_KERNEL_GEMM_VEC_AVX512_H

#include <stdint.h>

#include <immintrin.h>

#include "kernel/gemm/gemm_vec_rows.h"

typedef __m512 vec;
enum { VEC_WIDTH = 16, VECS = 1 };

#define vec_zero()       _mm512_setzero_ps()
#define vec_load(p)      _mm512_loadu_ps(p)
#define vec_store(p, x)  _mm512_storeu_ps(p, x)
#define vec_splat(x)     _mm512_set1_ps(x)
#define vec_fma(a, b, c) _mm512_fmadd_ps(a, b, c)
#define vec_add(a, b)    _mm512_add_ps(a, b)
#define vec_relu(x)      _mm512_max_ps(_mm512_setzero_ps(), x) /* 0 > x ? 0 : x */

/* *a b + c in one instruction: the load takes no register and no place of its own in
 * the pipeline. Only where *a needs no index register; else it costs twice. */
static inline vec vec_fma_splat(const float *a, vec b, vec c)
{
    __asm__("vfmadd231ps %2%{1to16%}, %1, %0" : "+v"(c) : "v"(b), "m"(*a));
    return c;
}

/* vec_fma that stays in c's register. */
static inline vec vec_fma_onto(vec a, vec b, vec c)
{
    __asm__("vfmadd231ps %2, %1, %0" : "+v"(c) : "v"(b), "v"(a));
    return c;
}

/* The same for the lower half of the lanes: half the work where 512 bits go through
 * units of 256 in two turns, no more elsewhere. */
static inline vec vec_fma_splat_half(const float *a, vec b, vec c)
{
    __asm__("vfmadd231ps %2%{1to8%}, %t1, %t0" : "+v"(c) : "v"(b), "m"(*a));
    return c;
}

static inline vec vec_fma_onto_half(vec a, vec b, vec c)
{
    __asm__("vfmadd231ps %t2, %t1, %t0" : "+v"(c) : "v"(b), "v"(a));
    return c;
}
#define vec_fma_splat_half vec_fma_splat_half

static inline __mmask16 first_lanes(int64_t count)
{
    const unsigned lanes = count >= 16 ? 16 : count <= 0 ? 0 : (unsigned)count;
    return (__mmask16)((1U << lanes) - 1U);
}

/* The first lanes of a vector, for several loads and stores. */
typedef __mmask16 vec_lanes;
#define vec_load_lanes(p, lanes)     _mm512_maskz_loadu_ps(lanes, p)
#define vec_store_lanes(p, x, lanes) _mm512_mask_storeu_ps(p, lanes, x)

static inline vec vec_load_lanes_half(const float *p, vec_lanes lanes)
{
    return _mm512_zextps256_ps512(_mm256_maskz_loadu_ps((__mmask8)lanes, p));
}

static inline vec vec_load_part(const float *p, int64_t count)
{
    return _mm512_maskz_loadu_ps(first_lanes(count), p);
}

static inline void vec_store_part(float *p, vec x, int64_t count)
{
    _mm512_mask_storeu_ps(p, first_lanes(count), x);
}

static inline void vec_mask16(const float *y, uint8_t *mask)
{
    const __mmask16 m =
        _mm512_cmp_ps_mask(_mm512_loadu_ps(y), _mm512_setzero_ps(), _CMP_GT_OQ);
    mask[0] = (uint8_t)m;
    mask[1] = (uint8_t)(m >> 8);
}

/* Up to four steps, `at` on, into out[step], rows as lanes: quarters of lanes are
 * loaded so that the last two of the four butterfly stages come for free. Two loads
 * into each half, then two halves: a chain of three insertions takes a third longer. */
static inline __attribute__((always_inline)) void
vec_load_steps(const vec_rows *rows, const int at, const int steps, vec *out)
{
    const __mmask8 some = (__mmask8)((1U << steps) - 1U);
    __m512 row[4];
#define FOUR(P)     (steps == 4 ? _mm_loadu_ps(P) : _mm_maskz_loadu_ps(some, P))
#define EIGHT(P, Q) _mm256_insertf128_ps(_mm256_castps128_ps256(FOUR(P)), FOUR(Q), 1)
#pragma GCC unroll 4
    for (int i = 0; i < 4; i++) { /* lanes 4l..4l+3 hold row 4l + i */
        const float *p = rows->p[i] + at;
        const __m256 low = EIGHT(p, p + rows->by4);
        const __m256 high = EIGHT(p + 2 * rows->by4, p + rows->by12);
        row[i] = _mm512_insertf32x8(_mm512_castps256_ps512(low), high, 1);
    }
#undef EIGHT
#undef FOUR
    const __m512 a = _mm512_unpacklo_ps(row[0], row[1]);
    const __m512 b = _mm512_unpackhi_ps(row[0], row[1]);
    const __m512 c = _mm512_unpacklo_ps(row[2], row[3]);
    const __m512 d = _mm512_unpackhi_ps(row[2], row[3]);
    out[0] = _mm512_shuffle_ps(a, c, 0x44);
    out[1] = _mm512_shuffle_ps(a, c, 0xEE);
    out[2] = _mm512_shuffle_ps(b, d, 0x44);
    out[3] = _mm512_shuffle_ps(b, d, 0xEE);
}

/* The empty asm keeps the compiler (gcc 12) from storing quarters by vextractf32x4
 * through the mask: that one instruction faults on what the mask leaves out, too. */
static inline __attribute__((always_inline)) void vec_store_four(float *p, __m128 x,
                                                                 const int steps)
{
    if (steps == 4) {
        _mm_storeu_ps(p, x);
        return;
    }
    __asm__("" : "+v"(x));
    _mm_mask_storeu_ps(p, (__mmask8)((1U << steps) - 1U), x);
}

/* The way back: dst[i ld + s] = in[s][i]. */
static inline __attribute__((always_inline)) void
vec_store_steps(float *dst, int64_t ld, const int steps, const vec *in)
{
    const __m512 a = _mm512_unpacklo_ps(in[0], in[1]);
    const __m512 b = _mm512_unpackhi_ps(in[0], in[1]);
    const __m512 c = _mm512_unpacklo_ps(in[2], in[3]);
    const __m512 d = _mm512_unpackhi_ps(in[2], in[3]);
    const __m512 row[4] = {_mm512_shuffle_ps(a, c, 0x44), _mm512_shuffle_ps(a, c, 0xEE),
                           _mm512_shuffle_ps(b, d, 0x44),
                           _mm512_shuffle_ps(b, d, 0xEE)};
#pragma GCC unroll 4
    for (int64_t i = 0; i < 4; i++) {
        float *p = dst + i * ld;
        vec_store_four(p, _mm512_castps512_ps128(row[i]), steps);
        vec_store_four(p + 4 * ld, _mm512_extractf32x4_ps(row[i], 1), steps);
        vec_store_four(p + 8 * ld, _mm512_extractf32x4_ps(row[i], 2), steps);
        vec_store_four(p + 12 * ld, _mm512_extractf32x4_ps(row[i], 3), steps);
    }
}

/* dst[j][i] = src[i][j], 16 x 16. */
static inline void vec_transpose(const float *src, int64_t ld, float *dst,
                                 int64_t width)
{
    const vec_rows rows = vec_rows_at(src, ld);
#pragma GCC unroll 4
    for (int q = 0; q < 16; q += 4) {
        vec out[4];
        vec_load_steps(&rows, q, 4, out);
#pragma GCC unroll 4
        for (int s = 0; s < 4; s++)
            vec_store(dst + (q + s) * width, out[s]);
    }
}

/* The same into registers, where each line of src is best loaded but once: rows that
 * lie a page apart push each other out of the first-level cache. */
static inline __attribute__((always_inline)) void
vec_load_transposed(const float *src, int64_t ld, vec *out)
{
    __m512 r[16], t[16];
#pragma GCC unroll 8
    for (int i = 0; i < 16; i += 2) {
        const __m512 a = _mm512_loadu_ps(src + i * ld);
        const __m512 b = _mm512_loadu_ps(src + (i + 1) * ld);
        t[i] = _mm512_unpacklo_ps(a, b);
        t[i + 1] = _mm512_unpackhi_ps(a, b);
    }
#pragma GCC unroll 4
    for (int i = 0; i < 16; i += 4) {
        r[i] = _mm512_shuffle_ps(t[i], t[i + 2], 0x44);
        r[i + 1] = _mm512_shuffle_ps(t[i], t[i + 2], 0xEE);
        r[i + 2] = _mm512_shuffle_ps(t[i + 1], t[i + 3], 0x44);
        r[i + 3] = _mm512_shuffle_ps(t[i + 1], t[i + 3], 0xEE);
    }
#pragma GCC unroll 4
    for (int c = 0; c < 4; c++) { /* quarters of lanes: columns c, c + 4, ... */
        const __m512 a = _mm512_shuffle_f32x4(r[c], r[4 + c], 0x88);
        const __m512 b = _mm512_shuffle_f32x4(r[c], r[4 + c], 0xDD);
        const __m512 d = _mm512_shuffle_f32x4(r[8 + c], r[12 + c], 0x88);
        const __m512 e = _mm512_shuffle_f32x4(r[8 + c], r[12 + c], 0xDD);
        out[c] = _mm512_shuffle_f32x4(a, d, 0x88);
        out[c + 4] = _mm512_shuffle_f32x4(b, e, 0x88);
        out[c + 8] = _mm512_shuffle_f32x4(a, d, 0xDD);
        out[c + 12] = _mm512_shuffle_f32x4(b, e, 0xDD);
    }
}

/* dst[4 i + j] = src[j] + 4 i, in quarters of lanes: four rows become quads. */
static inline void vec_quads(const float *src, int64_t ld, float *dst, int64_t step)
{
    const __m512 a = _mm512_loadu_ps(src), b = _mm512_loadu_ps(src + ld);
    const __m512 c = _mm512_loadu_ps(src + 2 * ld), d = _mm512_loadu_ps(src + 3 * ld);
    const __m512 ab = _mm512_shuffle_f32x4(a, b, 0x44); /* a0 a1 b0 b1 */
    const __m512 cd = _mm512_shuffle_f32x4(c, d, 0x44);
    const __m512 ab2 = _mm512_shuffle_f32x4(a, b, 0xEE); /* a2 a3 b2 b3 */
    const __m512 cd2 = _mm512_shuffle_f32x4(c, d, 0xEE);
    _mm512_storeu_ps(dst, _mm512_shuffle_f32x4(ab, cd, 0x88));
    _mm512_storeu_ps(dst + step, _mm512_shuffle_f32x4(ab, cd, 0xDD));
    _mm512_storeu_ps(dst + 2 * step, _mm512_shuffle_f32x4(ab2, cd2, 0x88));
    _mm512_storeu_ps(dst + 3 * step, _mm512_shuffle_f32x4(ab2, cd2, 0xDD));
}

#endif
