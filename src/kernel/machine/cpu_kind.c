#include "kernel/machine/cpu_kind.h"

#include <stdatomic.h>

#include "base/cpu.h"

static atomic_int forced = STI_CPU_KINDS; /* STI_CPU_KINDS: none */

sti_cpu_kind sti_cpu_kind_now(void)
{
    const int kind = atomic_load_explicit(&forced, memory_order_relaxed);
    if (kind < STI_CPU_KINDS)
        return (sti_cpu_kind)kind;
    if (sti_isa_now() != STI_ISA_AVX512)
        return STI_CPU_AVX2;
    return sti_cpu_halves_vectors() ? STI_CPU_AVX512_HALF : STI_CPU_AVX512_FULL;
}

void sti_cpu_kind_force(sti_cpu_kind kind)
{
    atomic_store(&forced, (int)kind);
}
