/* Standard normal numbers that nobody stores: whoever needs them again makes them again
 * (Shift-BNN, Wan et al., MICRO 2021, which trains Bayesian networks so).
 *
 * Two generators are counter-based: an element is a pure function of a key and of its
 * place, so that any part of a stream can be made by any thread in any order.
 *   ARS:    ARS4x32-7 (Salmon et al., SC'11): seven rounds of AES with a Weyl sequence
 *           of keys. Instructions of the CPU for AES, or else a table, give its words.
 *   PHILOX: Philox4x32-10 of base/rng.h.
 * Words become normal numbers by the method of Box and Muller (1958), in float32 with
 * kernel/maths, whose bits hang on no instruction set. The least uniform number is
 * 2^-31, so that |eps| < 6.56.
 *
 * Two more are the paper's shift registers, which run back as well as forward: lfsr.h.
 *
 * All functions keep no pointer and may be called by any threads at once. */
#ifndef STI_KERNEL_NORMAL_H
#define STI_KERNEL_NORMAL_H

#include <stdint.h>

typedef enum sti_normal_generator {
    STI_NORMAL_ARS,
    STI_NORMAL_PHILOX,
    STI_NORMAL_LFSR256, /* lfsr.h */
    STI_NORMAL_LFSR64
} sti_normal_generator;

/* What a stream of numbers is for: no two keys share any. */
typedef struct sti_normal_key {
    sti_normal_generator generator;
    uint64_t seed;
    int64_t step;   /* below 2^48 */
    int64_t micro;  /* the micro-batch's number in its batch, below 2^24 */
    int32_t sample; /* of the micro-batch's samples, below 2^8 */
    int32_t layer;  /* below 2^16 */
} sti_normal_key;

/* Elements [first, first + n) of the key's stream, all of them below 2^34; key: of ARS
 * or PHILOX. A multiple of 64 is the fastest `first`. On the calling thread, in no
 * memory but some kilobytes of its stack. */
void sti_normal_fill(const sti_normal_key *key, int64_t first, int64_t n,
                     float *eps_out);

#endif
