/* The walk b_in_registers of gemm_tile.h, for files whose gemm_vec_*.h has vectors as
 * wide as a panel and registers for one of 16 steps. */

/* So many rows side by side hide how long a multiply-add takes. */
enum { REGISTER_B_ROWS = 8, REGISTER_B_FEW = 4 };

static inline __attribute__((always_inline)) void
register_b_rows(const float *a, const vec *b, float *c, const int64_t c_row,
                const int rows)
{
    vec acc[REGISTER_B_ROWS];
#pragma GCC unroll 8
    for (int r = 0; r < rows; r++)
        acc[r] = vec_zero();
#pragma GCC unroll 16
    for (int k = 0; k < STI_GEMM_REGISTER_B; k++)
#pragma GCC unroll 8
        for (int r = 0; r < rows; r++)
            acc[r] = vec_fma_splat(a + r * STI_GEMM_REGISTER_B + k, b[k], acc[r]);
#pragma GCC unroll 8
    for (int r = 0; r < rows; r++, c += c_row)
        vec_store(c, acc[r]);
}

static void run_b_in_registers(const float *a, const float *b, int64_t rows, float *c,
                               int64_t c_row)
{
    vec held[STI_GEMM_REGISTER_B];
#pragma GCC unroll 16
    for (int k = 0; k < STI_GEMM_REGISTER_B; k++)
        held[k] = vec_load(b + k * VEC_WIDTH);
    for (; rows >= REGISTER_B_ROWS; rows -= REGISTER_B_ROWS) {
        register_b_rows(a, held, c, c_row, REGISTER_B_ROWS);
        a += REGISTER_B_ROWS * STI_GEMM_REGISTER_B;
        c += REGISTER_B_ROWS * c_row;
    }
    for (; rows >= REGISTER_B_FEW; rows -= REGISTER_B_FEW) {
        register_b_rows(a, held, c, c_row, REGISTER_B_FEW);
        a += REGISTER_B_FEW * STI_GEMM_REGISTER_B;
        c += REGISTER_B_FEW * c_row;
    }
    for (; rows > 0; rows--, a += STI_GEMM_REGISTER_B, c += c_row)
        register_b_rows(a, held, c, c_row, 1);
}
