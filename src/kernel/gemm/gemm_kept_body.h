/* The kept walk of gemm_tile.h, for files whose gemm_vec_*.h has vectors as wide as a
 * panel and registers for one of 16 steps. */

/* So many rows side by side hide how long a multiply-add takes. */
enum { KEPT_ROWS = 8, KEPT_FEW = 4 };

static inline __attribute__((always_inline)) void
kept_rows(const float *a, const vec *b, float *c, const int64_t c_row, const int rows)
{
    vec acc[KEPT_ROWS];
#pragma GCC unroll 8
    for (int r = 0; r < rows; r++)
        acc[r] = vec_zero();
#pragma GCC unroll 16
    for (int k = 0; k < STI_GEMM_KEPT; k++)
#pragma GCC unroll 8
        for (int r = 0; r < rows; r++)
            acc[r] = vec_fma_splat(a + r * STI_GEMM_KEPT + k, b[k], acc[r]);
#pragma GCC unroll 8
    for (int r = 0; r < rows; r++, c += c_row)
        vec_store(c, acc[r]);
}

static void run_kept(const float *a, const float *b, int64_t rows, float *c,
                     int64_t c_row)
{
    vec kept[STI_GEMM_KEPT];
#pragma GCC unroll 16
    for (int k = 0; k < STI_GEMM_KEPT; k++)
        kept[k] = vec_load(b + k * VEC_WIDTH);
    for (; rows >= KEPT_ROWS; rows -= KEPT_ROWS) {
        kept_rows(a, kept, c, c_row, KEPT_ROWS);
        a += KEPT_ROWS * STI_GEMM_KEPT;
        c += KEPT_ROWS * c_row;
    }
    for (; rows >= KEPT_FEW; rows -= KEPT_FEW) {
        kept_rows(a, kept, c, c_row, KEPT_FEW);
        a += KEPT_FEW * STI_GEMM_KEPT;
        c += KEPT_FEW * c_row;
    }
    for (; rows > 0; rows--, a += STI_GEMM_KEPT, c += c_row)
        kept_rows(a, kept, c, c_row, 1);
}
