/* The loop of gemm_f64_priv.h over eight lanes. The including file names the TABLE,
 * includes kernel/lane/eight_*.h, and says how many rows a register tile has (MR). */
#include "kernel/gemm/gemm_f64_priv.h"

static inline void register_tile(int rows, int64_t k, sti_view_f64 a,
                                 const double *panel, bool accumulate, double *c,
                                 int64_t ldc)
{
    lanes low[MR], high[MR];
    for (int i = 0; i < rows; i++) {
        low[i] = accumulate ? lanes_load(c + i * ldc) : lanes_all(0);
        high[i] = accumulate ? lanes_load(c + i * ldc + 8) : lanes_all(0);
    }
    for (int64_t s = 0; s < k; s++) {
        const lanes b0 = lanes_load(panel + s * STI_GEMM_F64_PANEL);
        const lanes b1 = lanes_load(panel + s * STI_GEMM_F64_PANEL + 8);
        for (int i = 0; i < rows; i++) {
            const lanes x = lanes_all(a.at[i * a.row + s * a.column]);
            low[i] = lanes_fma(x, b0, low[i]);
            high[i] = lanes_fma(x, b1, high[i]);
        }
    }
    for (int i = 0; i < rows; i++) {
        lanes_store(c + i * ldc, low[i]);
        lanes_store(c + i * ldc + 8, high[i]);
    }
}

static void gemm_f64_panel(int64_t m, int64_t k, sti_view_f64 a, const double *panel,
                           bool accumulate, double *c, int64_t ldc)
{
    int64_t i = 0;
    for (; i + MR <= m; i += MR, a.at += MR * a.row)
        register_tile(MR, k, a, panel, accumulate, c + i * ldc, ldc);
    for (; i < m; i++, a.at += a.row)
        register_tile(1, k, a, panel, accumulate, c + i * ldc, ldc);
}

const sti_gemm_f64_kernels TABLE = {gemm_f64_panel};
