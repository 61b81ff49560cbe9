/* The wide tile for AVX-512: 28 accumulators, 2 vectors of B, 1 broadcast. */
#include "kernel/conv/conv_tile.h"

#if defined(__x86_64__)
#include "kernel/gemm/gemm_vec_avx512.h"

typedef struct tile_rows {
    const char *p[STI_CONV_TILE_PARTS];
    ptrdiff_t by1, by3, by5;
} tile_rows;

/* Pixel r of a part at base, base + 1 .. 6 strides: x86 scales an index by 1, 2, 4, so
 * three registers reach all. (The empty asm keeps the compiler from undoing that.) */
static inline __attribute__((always_inline)) tile_rows
tile_rows_at(const sti_conv_tile *t, int64_t run, const int parts)
{
    tile_rows w;
    w.by1 = t->a_row * (ptrdiff_t)sizeof(float);
    w.by3 = 3 * w.by1;
    w.by5 = 5 * w.by1;
    w.p[0] = (const char *)(t->a[0] + run);
    w.p[1] = (const char *)(t->a[1] + run);
    w.p[2] = (const char *)(t->a[parts - 1] + run);
    __asm__("" : "+r"(w.by3), "+r"(w.by5), "+r"(w.p[0]), "+r"(w.p[1]), "+r"(w.p[2]));
    return w;
}

static inline __attribute__((always_inline)) const float *
tile_pixel(const tile_rows *w, const int r, const int part)
{
    const char *p = w->p[r / part];
    switch (r % part) {
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
    default:
        p += 2 * w->by3;
        break;
    }
    return (const float *)(const void *)p;
}

/* Step `at` from here, of rows from .. to. */
static inline __attribute__((always_inline)) void
tile_rows_step(vec *acc, const tile_rows *w, const float *b, const int at,
               const int from, const int to, const int part)
{
    const vec b0 = vec_load(b + 32 * at), b1 = vec_load(b + 32 * at + 16);
#pragma GCC unroll 16
    for (int r = from; r < to; r++) {
        const vec a = vec_splat(tile_pixel(w, r, part)[at]);
        acc[2 * r] = vec_fma(a, b0, acc[2 * r]);
        acc[2 * r + 1] = vec_fma(a, b1, acc[2 * r + 1]);
    }
}

static inline __attribute__((always_inline)) void
tile_step(vec *acc, const tile_rows *w, const float *b, const int at, const int rows,
          const int part)
{
    tile_rows_step(acc, w, b, at, 0, rows, part);
}

static inline __attribute__((always_inline)) void tile_go(tile_rows *w, const int steps)
{
    w->p[0] += steps * (int)sizeof(float);
    w->p[1] += steps * (int)sizeof(float);
    w->p[2] += steps * (int)sizeof(float);
}

/* Two steps, and two lines that will be wanted. */
static inline __attribute__((always_inline)) void
tile_steps(vec *acc, tile_rows *w, const float **b, const char *prefetch,
           ptrdiff_t prefetch_line, const int rows, const int part)
{
    _mm_prefetch(prefetch, _MM_HINT_T0);
    _mm_prefetch(prefetch + prefetch_line, _MM_HINT_T0);
    tile_step(acc, w, *b, 0, rows, part);
    tile_step(acc, w, *b, 1, rows, part);
    *b += 64;
    tile_go(w, 2);
}

/* All steps but the last `less`, which begin at *w_out and *b_out. */
static inline __attribute__((always_inline)) void
tile_product(const sti_conv_tile *t, vec *acc, const int64_t less, tile_rows *w_out,
             const float **b_out, const int rows, const int part)
{
    const float *b = t->b;
    const char *c = (const char *)(t->c[0] + rows * t->c_row), *prefetch = t->prefetch;
    const ptrdiff_t c_row = t->c_row * (ptrdiff_t)sizeof(float);
    int64_t fetched = 0;
    tile_rows w = {0};
    for (int64_t i = 0; i < t->runs; i++) {
        w = tile_rows_at(t, t->a_run[i], (rows + part - 1) / part);
        int64_t k = i + 1 < t->runs ? t->run_k : t->run_k - less;
        for (; k >= 2 && fetched < rows; k -= 2) { /* of the next tile of C, a row */
            tile_steps(acc, &w, &b, c, 64, rows, part);
            fetched++;
            c += c_row;
        }
        for (; k >= 2; k -= 2) {
            tile_steps(acc, &w, &b, prefetch, t->prefetch_line, rows, part);
            prefetch += 2 * t->prefetch_line;
        }
        if (k > 0) {
            tile_step(acc, &w, b, 0, rows, part);
            b += 32;
            tile_go(&w, 1);
        }
    }
    *w_out = w;
    *b_out = b;
}

/* Vector i of the tile in C. */
static inline __attribute__((always_inline)) float *
tile_c(float *const *c, ptrdiff_t c_row, const int i, const int part)
{
    return c[i / 2 / part] + i / 2 % part * c_row + 16 * (i % 2);
}

/* Rows from .. to of C, bias and ReLU. */
static inline __attribute__((always_inline)) void tile_finish(const sti_conv_tile *t,
                                                              vec *acc, const int from,
                                                              const int to,
                                                              const int part)
{
    const __mmask16 lanes[2] = {first_lanes(t->cols), first_lanes(t->cols - 16)};
    /* What the tile says is read before the stores: as far as the compiler knows, one
     * of them might change it. */
    float *const c[STI_CONV_TILE_PARTS] = {t->c[0], t->c[1], t->c[2]};
    const ptrdiff_t c_row = t->c_row;
    if (t->sum) {
#pragma GCC unroll 32
        for (int i = 2 * from; i < 2 * to; i++)
            acc[i] = vec_add(
                _mm512_maskz_loadu_ps(lanes[i % 2], tile_c(c, c_row, i, part)), acc[i]);
    }
    if (t->bias) {
        const vec bias[2] = {_mm512_maskz_loadu_ps(lanes[0], t->bias),
                             _mm512_maskz_loadu_ps(lanes[1], t->bias + 16)};
#pragma GCC unroll 32
        for (int i = 2 * from; i < 2 * to; i++)
            acc[i] = vec_add(acc[i], bias[i % 2]);
    }
    if (t->relu) {
#pragma GCC unroll 32
        for (int i = 2 * from; i < 2 * to; i++)
            acc[i] = vec_relu(acc[i]);
    }
    if (t->cols == STI_CONV_TILE_COLS) {
#pragma GCC unroll 32
        for (int i = 2 * from; i < 2 * to; i++)
            vec_store(tile_c(c, c_row, i, part), acc[i]);
        return;
    }
#pragma GCC unroll 32
    for (int i = 2 * from; i < 2 * to; i++)
        _mm512_mask_storeu_ps(tile_c(c, c_row, i, part), lanes[i % 2], acc[i]);
}

/* The last steps go by a few rows at a time, as in gemm_tile_body.h: stores of one row
 * beside the multiply-adds of the next. */
enum { END_STEPS = 4, END_ROWS = 2 };

static inline __attribute__((always_inline)) void
tile_run(const sti_conv_tile *t, const int rows, const int part)
{
    vec acc[2 * STI_CONV_TILE_ROWS];
    tile_rows w;
    const float *b;
#pragma GCC unroll 32
    for (int i = 0; i < 2 * rows; i++)
        acc[i] = vec_zero();
    if (t->runs == 0 || t->run_k < END_STEPS) {
        tile_product(t, acc, 0, &w, &b, rows, part);
        tile_finish(t, acc, 0, rows, part);
        return;
    }
    tile_product(t, acc, END_STEPS, &w, &b, rows, part);
#pragma GCC unroll 16
    for (int r = 0; r < rows; r += END_ROWS) {
        const int to = r + END_ROWS < rows ? r + END_ROWS : rows;
#pragma GCC unroll 4
        for (int at = 0; at < END_STEPS; at++)
            tile_rows_step(acc, &w, b, at, r, to, part);
        tile_finish(t, acc, r, to, part);
    }
}

static void tile_quads(const sti_conv_tile *t)
{
    tile_run(t, STI_CONV_TILE_QUAD * STI_CONV_TILE_PARTS, STI_CONV_TILE_QUAD);
}

#define TILE(R)                                  \
    static void tile_##R(const sti_conv_tile *t) \
    {                                            \
        tile_run(t, R, (R + 1) / 2);             \
    }
#define NAME(R) tile_##R,
#define TILES(X) \
    X(1) X(2) X(3) X(4) X(5) X(6) X(7) X(8) X(9) X(10) X(11) X(12) X(13) X(14)

TILES(TILE)

void sti_conv_tile_avx512(const sti_conv_tile *t)
{
    static sti_conv_tile_fn *const tiles[] = {TILES(NAME)};
    if (t->three)
        tile_quads(t);
    else
        tiles[t->rows - 1](t);
}
#else
typedef int sti_conv_tile_avx512_unused;
#endif
