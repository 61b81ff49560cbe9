/* Kinds of CPU that want other block sizes: by how many multiply-adds a core does in
 * the time that its caches bring a line. Only the time of a product hangs on the kind,
 * never a bit of it. */
#ifndef STI_KERNEL_CPU_KIND_H
#define STI_KERNEL_CPU_KIND_H

typedef enum sti_cpu_kind {
    /* AVX2 and less, on any CPU: 16 multiply-adds a cycle, in tiles of 6 x 16, so that
     * many tiles read a panel of B. */
    STI_CPU_AVX2,
    /* AVX-512 whose vectors take turns in units of half the width (Zen 4): 16 a cycle,
     * in tiles of up to 28 rows. A tile of 14 x 32 takes 28 cycles for a step of k, in
     * which two lines of B must come: the second-level cache keeps up. */
    STI_CPU_AVX512_HALF,
    /* AVX-512 in two units of the whole width (Intel's servers, and what is unknown):
     * 32 a cycle. The tile takes 14 cycles, and waits for the second-level cache. */
    STI_CPU_AVX512_FULL,
    STI_CPU_KINDS
} sti_cpu_kind;

/* The kind of this machine with the instruction set in use. */
sti_cpu_kind sti_cpu_kind_now(void);

/* Tests: pretend to be of a kind; STI_CPU_KINDS ends it. */
void sti_cpu_kind_force(sti_cpu_kind kind);

#endif
