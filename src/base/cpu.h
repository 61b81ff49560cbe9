/* The instruction set that kernels use, decided once: the best this CPU and operating
 * system support, or what STINT_ISA=ref|avx2|avx512 forces. */
#ifndef STI_BASE_CPU_H
#define STI_BASE_CPU_H

#include "stint/status.h"

typedef enum sti_isa {
    STI_ISA_REF,
    STI_ISA_AVX2,   /* AVX2 and FMA */
    STI_ISA_AVX512, /* F, BW, DQ, VL */
    STI_ISA_COUNT
} sti_isa;

/* Never fails: an impossible STINT_ISA is reported by
 * sti_isa_check and ignored here. */
sti_isa sti_isa_now(void);
const char *sti_isa_name(sti_isa isa);
int sti_isa_has(sti_isa isa); /* can this CPU run it? */
/* STINT_E_USAGE: unknown name in STINT_ISA; STINT_E_UNSUPPORTED: not on this CPU. */
stint_status sti_isa_check(void);
/* "Intel(R) Xeon(R) ..." as the CPU names itself, or "unknown CPU". */
const char *sti_cpu_name(void);
/* Tests: switch the instruction set of this process (false if the CPU lacks it). */
int sti_isa_force(sti_isa isa);
/* AMX_BF16, on top of AVX-512 and AVX512_BF16, with the system's leave to use it
 * (asked for by the first call, for the whole process). */
int sti_cpu_has_amx_bf16(void);
/* Tests: pretend that it is missing (or no longer so). */
void sti_cpu_hide_amx_bf16(int hide);

#endif
