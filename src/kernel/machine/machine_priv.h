/* Loops of machine.c, one table an instruction set. Private to the kernel room. */
#ifndef STI_KERNEL_MACHINE_PRIV_H
#define STI_KERNEL_MACHINE_PRIV_H

#include <stdbool.h>
#include <stdint.h>

typedef struct sti_machine_kernels {
    /* So many rounds of independent multiply-adds; gives the operations done, 2 a
     * multiply-add, and 0 where the CPU lacks the instruction. */
    double (*f32)(int64_t rounds);
    double (*bf16)(int64_t rounds);
    double (*int8)(int64_t rounds);
    /* Reads all of x; bytes is a multiple of 1024. What it gives depends on all. */
    uint64_t (*read)(const void *x, int64_t bytes);
} sti_machine_kernels;

extern const sti_machine_kernels sti_machine_kernels_ref;
#if defined(__x86_64__)
extern const sti_machine_kernels sti_machine_kernels_avx2;
extern const sti_machine_kernels sti_machine_kernels_avx512;

/* As .bf16, for a thread that may use the matrix unit (STI_BF16_MATRIX). */
double sti_machine_bf16_amx(int64_t rounds);
#endif

#endif
