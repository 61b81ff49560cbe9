/* Choice of register tiles. */
#include "kernel/gemm_tile.h"

const sti_gemm_kernels *sti_gemm_kernels_now(void)
{
#if defined(__x86_64__)
    switch (sti_isa_now()) {
    case STI_ISA_AVX512:
        return &sti_gemm_kernels_avx512;
    case STI_ISA_AVX2:
        return &sti_gemm_kernels_avx2;
    case STI_ISA_REF:
    case STI_ISA_COUNT:
        break;
    }
#endif
    return &sti_gemm_kernels_ref;
}

int sti_gemm_panels(const sti_gemm_kernels *kernels, int64_t rows, int64_t cols)
{
    if (cols > 2 * STI_PANEL && rows <= kernels->max_rows[4])
        return 4;
    return cols > STI_PANEL && kernels->max_rows[2] > 0 ? 2 : 1;
}
