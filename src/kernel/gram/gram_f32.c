/* Kernel tiles in float: products by blocks that are rounded to float first. */
#include "kernel/gemm/brgemm.h"
#include "kernel/gram/gram.h"
#include "kernel/gram/gram_priv.h"
#include "kernel/lane/dispatch.h"

enum { DEPTH = STI_GRAM_DEPTH, TILE = STI_GRAM_TILE };

/* Rows that are made in double at a time, to be rounded. */
enum { ROUNDED = 32 };

/* Columns [k, k + depth) of rows of u as floats, [count, DEPTH]. */
static void round_rows(const double *u, int64_t count, int64_t columns, int64_t depth,
                       float *out)
{
    for (int64_t i = 0; i < count; i++)
        for (int64_t k = 0; k < depth; k++)
            out[i * DEPTH + k] = (float)u[i * columns + k];
}

/* The same of v, transposed: [DEPTH, TILE]. Eight rows at a time fill lines of out. */
static void turn_rows(const double *v, int64_t count, int64_t columns, int64_t depth,
                      float *out)
{
    for (int64_t j = 0; j < count; j += 8) {
        const int64_t width = count - j < 8 ? count - j : 8;
        for (int64_t k = 0; k < depth; k++)
            for (int64_t r = 0; r < width; r++)
                out[k * TILE + j + r] = (float)v[(j + r) * columns + k];
    }
}

/* u.v of dense rows; scratch holds a block of each. */
static void multiply_rows(const double *u, int64_t u_count, const double *v,
                          int64_t v_count, int64_t columns, float *tile, int64_t ld,
                          float *scratch)
{
    float *a = scratch, *b = scratch + (int64_t)TILE * DEPTH;
    int64_t k = 0;
    do { /* once also for no columns at all, whose products are 0 */
        const int64_t left = columns - k, depth = left < DEPTH ? left : DEPTH;
        const sti_brgemm g = {.m = u_count,
                              .n = v_count,
                              .k = depth,
                              .lda = DEPTH,
                              .ldb = TILE,
                              .ldc = ld,
                              .accumulate = k > 0};
        round_rows(u + k, u_count, columns, depth, a);
        turn_rows(v + k, v_count, columns, depth, b);
        sti_brgemm_stride_f32(&g, 1, a, b, 0, 0, tile);
        k += depth;
    } while (k < columns);
}

/* What has no products in float: made in double, some rows at a time. */
static void rounded_tile(const sti_gram_function *f, const sti_gram_rows *u,
                         int64_t u_begin, int64_t u_count, const sti_gram_rows *v,
                         int64_t v_begin, int64_t v_count, float *tile, int64_t ld,
                         void *scratch)
{
    double rows[ROUNDED * TILE];
    for (int64_t i = 0; i < u_count; i += ROUNDED) {
        const int64_t count = u_count - i < ROUNDED ? u_count - i : ROUNDED;
        sti_gram_tile(f, u, u_begin + i, count, v, v_begin, v_count, rows, TILE,
                      scratch);
        for (int64_t r = 0; r < count; r++)
            for (int64_t j = 0; j < v_count; j++)
                tile[(i + r) * ld + j] = (float)rows[r * TILE + j];
    }
}

void sti_gram_tile_f32(const sti_gram_function *f, const sti_gram_rows *u,
                       int64_t u_begin, int64_t u_count, const sti_gram_rows *v,
                       int64_t v_begin, int64_t v_count, float *tile_out, int64_t ld,
                       void *scratch)
{
    const sti_gram_kernels *kernels = STI_KERNELS_NOW(sti_gram_kernels);
    const bool products = f->kind <= STI_GRAM_SIGMOID;
    if (sti_gram_read(true, u, u_begin, u_count, v, v_begin, v_count, tile_out, ld))
        return;
    if (!products || !u->dense) {
        rounded_tile(f, u, u_begin, u_count, v, v_begin, v_count, tile_out, ld,
                     scratch);
        return;
    }
    multiply_rows(u->dense + u_begin * u->columns, u_count,
                  v->dense + v_begin * u->columns, v_count, u->columns, tile_out, ld,
                  scratch);
    for (int64_t i = 0; f->kind != STI_GRAM_LINEAR && i < u_count; i++)
        kernels->finish_f32(f, v_count, u->term[u_begin + i], v->term + v_begin,
                            tile_out + i * ld);
}

void sti_gram_apply_f32(const float *tile, int64_t ld, int64_t u_count, int64_t v_count,
                        int64_t columns, const double *const *x, double *const *y_out,
                        const double *const *across, double *const *down)
{
    STI_KERNELS_NOW(sti_gram_kernels)
        ->apply_f32(tile, ld, u_count, v_count, columns, x, y_out, across, down);
}
