/* Choice of the wide tile. */
#include "kernel/conv/conv_tile.h"

#include <stddef.h>

#include "base/cpu.h"

sti_conv_tile_fn *sti_conv_tile_now(void)
{
#if defined(__x86_64__)
    if (sti_isa_now() == STI_ISA_AVX512)
        return sti_conv_tile_avx512;
#endif
    return NULL;
}

sti_conv_grad_tile_fn *sti_conv_grad_tile_now(void)
{
#if defined(__x86_64__)
    if (sti_isa_now() == STI_ISA_AVX512)
        return sti_conv_grad_tile_avx512;
#endif
    return NULL;
}
