/* Register tiles of 8-bit products for AVX-512 with VNNI: four products and their sum
 * in one instruction. */
#include "kernel/gemm/gemm_i8_tile.h"

#if defined(__x86_64__)
#include <immintrin.h>

typedef __m512i vec;
typedef __mmask16 vec_lanes;
enum { VEC_WIDTH = 16, VECS = 1 };

#define vec_zero()               _mm512_setzero_si512()
#define vec_load(p)              _mm512_loadu_si512(p)
#define vec_store(p, x)          _mm512_storeu_si512(p, x)
#define vec_splat(x)             _mm512_broadcastd_epi32(_mm_loadu_si32(&(x)))
#define vec_fma(a, b, c)         _mm512_dpbusd_epi32(c, a, b)
#define vec_fma_onto(a, b, c)    vec_fma(a, b, c)
#define vec_fma_splat(a, b, c)   vec_fma(vec_splat(*(a)), b, c)
#define vec_add(a, b)            _mm512_add_epi32(a, b)
#define vec_sub(a, b)            _mm512_sub_epi32(a, b)
#define vec_relu(x)              (x)
#define vec_load_lanes(p, l)     _mm512_maskz_loadu_epi32(l, p)
#define vec_store_lanes(p, x, l) _mm512_mask_storeu_epi32(p, l, x)

static inline __mmask16 first_lanes(int64_t count)
{
    const unsigned lanes = count >= 16 ? 16 : count <= 0 ? 0 : (unsigned)count;
    return (__mmask16)((1U << lanes) - 1U);
}

#include "kernel/gemm/gemm_i8_tile_body.h"

TILES_28(TILE, nn, 1)
TILES_14(TILE, nn, 2)
TILES_28(TILE, tn, 1)
TILES_14(TILE, tn, 2)

static tile_fn *const nn1[] = {TILES_28(TILE_NAME, nn, 1)};
static tile_fn *const nn2[] = {TILES_14(TILE_NAME, nn, 2)};
static tile_fn *const tn1[] = {TILES_28(TILE_NAME, tn, 1)};
static tile_fn *const tn2[] = {TILES_14(TILE_NAME, tn, 2)};

static void run_nn(const sti_gemm_tile *t)
{
    if (t->nv == 1)
        nn1[t->rows - 1](t);
    else
        nn2[t->rows - 1](t);
}

static void run_tn(const sti_gemm_tile *t)
{
    if (t->nv == 1)
        tn1[t->rows - 1](t);
    else
        tn2[t->rows - 1](t);
}

static void dequantize(const sti_dequantize *e, int64_t rows, int64_t cols, int64_t ld,
                       void *c)
{
    for (int64_t j = 0; j < cols; j += VEC_WIDTH) {
        const vec_lanes l = first_lanes(cols - j);
        const __m512 scale = _mm512_maskz_loadu_ps(l, e->scale + j);
        const __m512 bias =
            e->bias ? _mm512_maskz_loadu_ps(l, e->bias + j) : _mm512_setzero_ps();
        float *at = (float *)c + j;
        for (int64_t r = 0; r < rows; r++, at += ld) {
            const __m512 sum = _mm512_cvtepi32_ps(vec_load_lanes(at, l));
            __m512 y =
                e->bias ? _mm512_fmadd_ps(scale, sum, bias) : _mm512_mul_ps(scale, sum);
            if (e->relu)
                y = _mm512_max_ps(_mm512_setzero_ps(), y);
            _mm512_mask_storeu_ps(at, l, y);
        }
    }
}

const sti_gemm_i8_kernels sti_gemm_i8_kernels_avx512vnni = {
    .max_rows = {0, 28, 14},
    .nn = run_nn,
    .tn = run_tn,
    .pack = pack_rows,
    .pack_transposed = pack_columns,
    .offsets = offsets,
    .dequantize = dequantize,
};
#else
typedef int sti_gemm_i8_tile_avx512vnni_unused;
#endif
