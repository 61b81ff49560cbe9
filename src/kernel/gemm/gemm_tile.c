/* Choice of register tiles. */
#include "kernel/gemm/gemm_tile.h"

#include "kernel/lane/dispatch.h"

/* All have the same bits. */
const sti_gemm_kernels *sti_gemm_kernels_now(void)
{
#if defined(__x86_64__) && defined(STI_NARROW_TILES) /* of builds with sanitizers */
    return sti_isa_now() == STI_ISA_REF ? &sti_gemm_kernels_ref
                                        : &sti_gemm_kernels_avx2;
#else
    return STI_KERNELS_NOW(sti_gemm_kernels);
#endif
}

int sti_gemm_panels(const sti_gemm_kernels *kernels, int64_t rows, int64_t cols)
{
    if (cols > 2 * STI_PANEL && rows <= kernels->max_rows[4])
        return 4;
    return cols > STI_PANEL && kernels->max_rows[2] > 0 ? 2 : 1;
}

int sti_gemm_whole_panels(const sti_gemm_kernels *kernels, int64_t rows, int64_t cols)
{
    const int64_t panels = (cols + STI_PANEL - 1) / STI_PANEL;
    if (panels >= 4 && rows <= kernels->max_rows[4])
        return 4;
    if (panels == 3 && kernels->max_rows[3] > 0)
        return 3;
    return panels > 1 && kernels->max_rows[2] > 0 ? 2 : 1;
}

int sti_gemm_many_panels(const sti_gemm_kernels *kernels, int64_t cols)
{
    const int64_t panels = (cols + STI_PANEL - 1) / STI_PANEL;
    if (kernels->max_rows[3] > 0 && (panels == 3 || panels > 4))
        return 3;
    return panels > 1 && kernels->max_rows[2] > 0 ? 2 : 1;
}
