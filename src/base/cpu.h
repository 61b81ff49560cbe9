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
/* Vectors of 512 bits take turns in units of half that width (Zen 4): one multiply-add
 * a cycle, half of what other cores with AVX-512 do, so that caches keep up with more.
 */
int sti_cpu_halves_vectors(void);
/* Tests: switch the instruction set of this process (false if the CPU lacks it). */
int sti_isa_force(sti_isa isa);

/* What the CPU has for bfloat16, on top of AVX-512; each has those before it. */
typedef enum sti_bf16_unit {
    STI_BF16_NONE,
    STI_BF16_DOT,   /* AVX512_BF16: conversions, dot products of pairs */
    STI_BF16_MATRIX /* AMX_BF16, with the system's leave to use it */
} sti_bf16_unit;

/* STI_BF16_NONE where the instruction set in use is not AVX-512. The first call asks
 * for the leave, for the whole process. */
sti_bf16_unit sti_bf16_unit_now(void);
/* Tests: pretend that all above `most` is missing. */
void sti_bf16_unit_limit(sti_bf16_unit most);

#endif
