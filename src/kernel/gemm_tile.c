/* Choice of register tiles. */
#include "kernel/gemm_tile.h"

#include "kernel/dispatch.h"

const sti_gemm_kernels *sti_gemm_kernels_now(void)
{
    return STI_KERNELS_NOW(sti_gemm_kernels);
}

int sti_gemm_panels(const sti_gemm_kernels *kernels, int64_t rows, int64_t cols)
{
    if (cols > 2 * STI_PANEL && rows <= kernels->max_rows[4])
        return 4;
    return cols > STI_PANEL && kernels->max_rows[2] > 0 ? 2 : 1;
}

int sti_gemm_whole_panels(const sti_gemm_kernels *kernels, int64_t rows, int64_t cols)
{
    if (cols >= 4 * STI_PANEL && rows <= kernels->max_rows[4])
        return 4;
    return cols > STI_PANEL && kernels->max_rows[2] > 0 ? 2 : 1;
}
