/* Normal numbers as pure functions of what they are for: mean 0, deviation 1.
 *
 * Element e of a stream is made of the words of a counter-based generator by Box and
 * Muller's transform, so that any thread makes any part of it in any order, and makes
 * it again to the same bits. */
#ifndef STI_KERNEL_NORMAL_H
#define STI_KERNEL_NORMAL_H

#include <stdint.h>

typedef enum sti_normal_generator {
    STI_NORMAL_ARS,
    STI_NORMAL_PHILOX,
    STI_NORMAL_LFSR256,
    STI_NORMAL_LFSR64
} sti_normal_generator;

/* What a stream is for. */
typedef struct sti_normal_key {
    sti_normal_generator generator;
    uint64_t seed; /* of the run */
    int64_t step, micro;
    int32_t sample, layer;
} sti_normal_key;

/* Elements first .. first + n - 1, first a multiple of 512, on the calling thread. */
void sti_normal_fill(const sti_normal_key *key, int64_t first, int64_t n, float *out);

#endif
