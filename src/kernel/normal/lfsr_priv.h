/* The loops of shift registers, a table an instruction set. Private to the family. */
#ifndef STI_KERNEL_LFSR_PRIV_H
#define STI_KERNEL_LFSR_PRIV_H

#include "kernel/normal/lfsr.h"

typedef struct sti_lfsr_kernels {
    void (*next)(const sti_lfsr_taps *taps, void *state, float *eps_out);
    void (*back)(const sti_lfsr_taps *taps, void *state, float *eps_out);
} sti_lfsr_kernels;

extern const sti_lfsr_kernels sti_lfsr_kernels_ref;
#if defined(__x86_64__)
extern const sti_lfsr_kernels sti_lfsr_kernels_avx2, sti_lfsr_kernels_avx512;
#endif

/* The taps that the loops know beforehand, so that words wait in registers. */
#define STI_LFSR256_A 10
#define STI_LFSR256_B 5
#define STI_LFSR256_C 2
#define STI_LFSR64_A  4
#define STI_LFSR64_B  3
#define STI_LFSR64_C  1

#endif
