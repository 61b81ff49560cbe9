/* Register tiles for AVX512_BF16: 28 accumulators of 16 lanes. */
#include "kernel/gemm_bf16_tile.h"

#if defined(__x86_64__)
#include <immintrin.h>

#define ALWAYS static inline __attribute__((always_inline))

/* Rows r = 0..15 at base + r * stride from two bases and the multiples 1, 3, 5, 7 of
 * the stride, which x86 addresses scale by 1, 2, 4, 8; the empty asm keeps the compiler
 * from giving every row a register. With stride 1 the offsets are constants. */
typedef struct row_walk {
    const char *base[2];
    ptrdiff_t by1, by3, by5, by7;
} row_walk;

ALWAYS row_walk row_walk_at(const sti_bf16_pair *a, int64_t row, const bool steps)
{
    row_walk w = {{(const char *)a, NULL}, 0, 0, 0, 0};
    w.by1 = steps ? 4 : row * 4;
    w.by3 = 3 * w.by1;
    w.by5 = 5 * w.by1;
    w.by7 = 7 * w.by1;
    w.base[1] = w.base[0] + 9 * w.by1;
    if (!steps) {
        __asm__("" : "+r"(w.by3), "+r"(w.by5), "+r"(w.by7));
        __asm__("" : "+r"(w.base[0]), "+r"(w.base[1]));
    }
    return w;
}

ALWAYS __m512i row_walk_pair(const row_walk *w, const int r)
{
    const char *p = w->base[r / 9];
    switch (r % 9) {
    case 0:
        break;
    case 1:
        p += w->by1;
        break;
    case 2:
        p += 2 * w->by1;
        break;
    case 3:
        p += w->by3;
        break;
    case 4:
        p += 4 * w->by1;
        break;
    case 5:
        p += w->by5;
        break;
    case 6:
        p += 2 * w->by3;
        break;
    case 7:
        p += w->by7;
        break;
    default:
        p += 8 * w->by1;
        break;
    }
    return _mm512_set1_epi32((int)*(const sti_bf16_pair *)(const void *)p);
}

ALWAYS __mmask16 first_lanes(int64_t count)
{
    const unsigned lanes = count >= 16 ? 16 : count <= 0 ? 0 : (unsigned)count;
    return (__mmask16)((1U << lanes) - 1U);
}

ALWAYS void tile_begin(const sti_bf16_tile *t, const float *c, __m512 *acc,
                       const int rows, const int nv)
{
#pragma GCC unroll 28
    for (int i = 0; i < rows * nv; i++)
        acc[i] = _mm512_setzero_ps();
    if (!t->load)
        return;
#pragma GCC unroll 16
    for (int r = 0; r < rows; r++, c += t->c_row)
#pragma GCC unroll 2
        for (int v = 0; v < nv; v++)
            acc[r * nv + v] =
                _mm512_maskz_loadu_ps(first_lanes(t->cols - v * 16), c + v * 16);
}

ALWAYS void tile_end(const sti_bf16_tile *t, char *c, __m512 *acc, const int rows,
                     const int nv)
{
    if (t->bias) {
#pragma GCC unroll 2
        for (int v = 0; v < nv; v++) {
            const __m512 bias =
                _mm512_maskz_loadu_ps(first_lanes(t->cols - v * 16), t->bias + v * 16);
#pragma GCC unroll 16
            for (int r = 0; r < rows; r++)
                acc[r * nv + v] = _mm512_add_ps(acc[r * nv + v], bias);
        }
    }
    if (t->relu) {
#pragma GCC unroll 28
        for (int i = 0; i < rows * nv; i++)
            acc[i] = _mm512_max_ps(_mm512_setzero_ps(), acc[i]);
    }
    if (t->c_bf16) {
        sti_bf16 *out = (sti_bf16 *)(void *)c;
#pragma GCC unroll 16
        for (int r = 0; r < rows; r++, out += t->c_row)
#pragma GCC unroll 2
            for (int v = 0; v < nv; v++)
                _mm256_mask_storeu_epi16(out + v * 16, first_lanes(t->cols - v * 16),
                                         (__m256i)_mm512_cvtneps_pbh(acc[r * nv + v]));
        return;
    }
    float *out = (float *)(void *)c;
#pragma GCC unroll 16
    for (int r = 0; r < rows; r++, out += t->c_row)
#pragma GCC unroll 2
        for (int v = 0; v < nv; v++)
            _mm512_mask_storeu_ps(out + v * 16, first_lanes(t->cols - v * 16),
                                  acc[r * nv + v]);
}

ALWAYS void tile_run(const sti_bf16_tile *t, const sti_bf16_pair *a, char *c,
                     const int rows, const int nv, const bool steps)
{
    __m512 acc[28];
    tile_begin(t, (const float *)(const void *)c, acc, rows, nv);
    const sti_bf16_pair *b = t->b;
    for (int64_t i = 0; i < t->runs; i++) {
        row_walk w = row_walk_at(a + t->a_run[i], t->a_row, steps);
        for (int64_t p = t->run_k; p > 0; p--, b += 16 * nv) {
            __m512bh bv[2];
#pragma GCC unroll 2
            for (int v = 0; v < nv; v++)
                bv[v] = (__m512bh)_mm512_loadu_si512(b + v * 16);
#pragma GCC unroll 16
            for (int r = 0; r < rows; r++) {
                const __m512bh av = (__m512bh)row_walk_pair(&w, r);
#pragma GCC unroll 2
                for (int v = 0; v < nv; v++)
                    acc[r * nv + v] = _mm512_dpbf16_ps(acc[r * nv + v], av, bv[v]);
            }
            w.base[0] += steps ? t->a_step * 4 : 4;
            w.base[1] += steps ? t->a_step * 4 : 4;
        }
    }
    tile_end(t, c, acc, rows, nv);
}

typedef void tile_fn(const sti_bf16_tile *t);

#define TILE_NAME(ROWS, NV, STEPS) tile_##ROWS##_##NV##_##STEPS,
#define TILE(ROWS, NV, STEPS)                                               \
    static void tile_##ROWS##_##NV##_##STEPS(const sti_bf16_tile *t)        \
    {                                                                       \
        const sti_bf16_pair *a = t->a;                                      \
        char *c = t->c;                                                     \
        const int64_t c_line = t->c_line * (t->c_bf16 ? 2 : 4);             \
        for (int64_t i = 0; i < t->lines; i++, a += t->a_line, c += c_line) \
            tile_run(t, a, c, ROWS, NV, STEPS);                             \
    }
#define TILES_14(DO, NV, STEPS) \
    DO(1, NV, STEPS)            \
    DO(2, NV, STEPS)            \
    DO(3, NV, STEPS)            \
    DO(4, NV, STEPS)            \
    DO(5, NV, STEPS)            \
    DO(6, NV, STEPS)            \
    DO(7, NV, STEPS)            \
    DO(8, NV, STEPS)            \
    DO(9, NV, STEPS)            \
    DO(10, NV, STEPS)           \
    DO(11, NV, STEPS)           \
    DO(12, NV, STEPS)           \
    DO(13, NV, STEPS)           \
    DO(14, NV, STEPS)
#define TILES_16(DO, NV, STEPS) \
    TILES_14(DO, NV, STEPS)     \
    DO(15, NV, STEPS)           \
    DO(16, NV, STEPS)

TILES_16(TILE, 1, 0)
TILES_14(TILE, 2, 0)
TILES_16(TILE, 1, 1)
TILES_14(TILE, 2, 1)

static tile_fn *const rows_1[] = {TILES_16(TILE_NAME, 1, 0)};
static tile_fn *const rows_2[] = {TILES_14(TILE_NAME, 2, 0)};
static tile_fn *const steps_1[] = {TILES_16(TILE_NAME, 1, 1)};
static tile_fn *const steps_2[] = {TILES_14(TILE_NAME, 2, 1)};

static void run_rows(const sti_bf16_tile *t)
{
    (t->nv == 1 ? rows_1 : rows_2)[t->rows - 1](t);
}

static void run_steps(const sti_bf16_tile *t)
{
    (t->nv == 1 ? steps_1 : steps_2)[t->rows - 1](t);
}

const sti_bf16_tile_kernels sti_bf16_tiles_avx512bf16 = {
    .rows = run_rows,
    .steps = run_steps,
};
#else
typedef int sti_gemm_bf16_tile_avx512bf16_unused;
#endif
