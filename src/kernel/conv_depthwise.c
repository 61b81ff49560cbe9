/* Choice of depthwise kernels. */
#include "kernel/conv_depthwise.h"

#include "base/cpu.h"

const sti_depthwise_kernels *sti_depthwise_kernels_now(void)
{
#if defined(__x86_64__)
    switch (sti_isa_now()) {
    case STI_ISA_AVX512:
        return &sti_depthwise_kernels_avx512;
    case STI_ISA_AVX2:
        return &sti_depthwise_kernels_avx2;
    case STI_ISA_REF:
    case STI_ISA_COUNT:
        break;
    }
#endif
    return &sti_depthwise_kernels_ref;
}
