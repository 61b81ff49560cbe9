/* The loops of the instruction set in use. */
#include "base/cpu.h"
#include "kernel/topk/topk_priv.h"

const sti_topk_ops *sti_topk_ops_now(sti_topk_form form)
{
#if defined(__x86_64__)
    switch (sti_isa_now()) {
    case STI_ISA_AVX512:
        return sti_topk_avx512[form];
    case STI_ISA_AVX2:
        return sti_topk_avx2[form];
    case STI_ISA_REF:
    case STI_ISA_COUNT:
        break;
    }
#endif
    return sti_topk_ref[form];
}
