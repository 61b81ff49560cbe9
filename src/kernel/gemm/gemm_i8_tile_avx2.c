/* Register tiles of 8-bit products for AVX2: two exact products of 16-bit pairs, since
 * the instruction for bytes saturates. */
#include "kernel/gemm/gemm_i8_tile.h"

#if defined(__x86_64__)
#include <immintrin.h>

typedef __m256i vec;
typedef __m256i vec_lanes;
enum { VEC_WIDTH = 8, VECS = 2 };

#define vec_zero()               _mm256_setzero_si256()
#define vec_load(p)              _mm256_loadu_si256((const __m256i *)(const void *)(p))
#define vec_store(p, x)          _mm256_storeu_si256((__m256i *)(void *)(p), x)
#define vec_splat(x)             _mm256_broadcastd_epi32(_mm_loadu_si32(&(x)))
#define vec_fma_onto(a, b, c)    vec_fma(a, b, c)
#define vec_fma_splat(a, b, c)   vec_fma(vec_splat(*(a)), b, c)
#define vec_add(a, b)            _mm256_add_epi32(a, b)
#define vec_sub(a, b)            _mm256_sub_epi32(a, b)
#define vec_relu(x)              (x)
#define vec_load_lanes(p, l)     _mm256_maskload_epi32((const int *)(const void *)(p), l)
#define vec_store_lanes(p, x, l) _mm256_maskstore_epi32((int *)(void *)(p), l, x)

static inline __m256i first_lanes(int64_t count)
{
    const int n = count > 8 ? 8 : count < 0 ? 0 : (int)count;
    return _mm256_cmpgt_epi32(_mm256_set1_epi32(n),
                              _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7));
}

static inline __attribute__((always_inline)) vec vec_fma(vec a, vec b, vec c)
{
    const vec a0 = _mm256_and_si256(a, _mm256_set1_epi16(255));
    const vec a1 = _mm256_srli_epi16(a, 8);
    const vec b0 = _mm256_srai_epi16(_mm256_slli_epi16(b, 8), 8);
    const vec b1 = _mm256_srai_epi16(b, 8);
    c = _mm256_add_epi32(c, _mm256_madd_epi16(a0, b0));
    return _mm256_add_epi32(c, _mm256_madd_epi16(a1, b1));
}

#include "kernel/gemm/gemm_i8_tile_body.h"

TILES_4(TILE, nn, 1)
TILES_4(TILE, tn, 1)

static tile_fn *const nn1[] = {TILES_4(TILE_NAME, nn, 1)};
static tile_fn *const tn1[] = {TILES_4(TILE_NAME, tn, 1)};

static void run_nn(const sti_gemm_tile *t)
{
    nn1[t->rows - 1](t);
}

static void run_tn(const sti_gemm_tile *t)
{
    tn1[t->rows - 1](t);
}

static void dequantize(const sti_dequantize *e, int64_t rows, int64_t cols, int64_t ld,
                       void *c)
{
    for (int64_t j = 0; j < cols; j += VEC_WIDTH) {
        const vec_lanes l = first_lanes(cols - j);
        const __m256 scale = _mm256_maskload_ps(e->scale + j, l);
        const __m256 bias =
            e->bias ? _mm256_maskload_ps(e->bias + j, l) : _mm256_setzero_ps();
        float *at = (float *)c + j;
        for (int64_t r = 0; r < rows; r++, at += ld) {
            const __m256 sum = _mm256_cvtepi32_ps(vec_load_lanes(at, l));
            __m256 y =
                e->bias ? _mm256_fmadd_ps(scale, sum, bias) : _mm256_mul_ps(scale, sum);
            if (e->relu)
                y = _mm256_max_ps(_mm256_setzero_ps(), y);
            _mm256_maskstore_ps(at, l, y);
        }
    }
}

const sti_gemm_i8_kernels sti_gemm_i8_kernels_avx2 = {
    .max_rows = {0, 4, 0},
    .nn = run_nn,
    .tn = run_tn,
    .pack = pack_rows,
    .pack_transposed = pack_columns,
    .offsets = offsets,
    .dequantize = dequantize,
};
#else
typedef int sti_gemm_i8_tile_avx2_unused;
#endif
