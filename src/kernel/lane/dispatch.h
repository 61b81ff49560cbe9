/* Choice of a table of kernels: STI_KERNELS_NOW(sti_pool_kernels) is the address of
 * sti_pool_kernels_ref, _avx2 or _avx512, by sti_isa_now(). */
#ifndef STI_KERNEL_DISPATCH_H
#define STI_KERNEL_DISPATCH_H

#include "base/cpu.h"

#if defined(__x86_64__)
#define STI_KERNELS_NOW(table)                         \
    (sti_isa_now() == STI_ISA_AVX512 ? &table##_avx512 \
     : sti_isa_now() == STI_ISA_AVX2 ? &table##_avx2   \
                                     : &table##_ref)
#else
#define STI_KERNELS_NOW(table) (&table##_ref)
#endif

#endif
