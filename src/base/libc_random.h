/* The numbers that rand() of the GNU C library gives after srand(seed): an additive
 * feedback generator of degree 31 (Knuth, vol. 2, 3.2.2) begun by a linear congruence.
 * Programs that shuffle by rand() can be followed to the same order; for all else there
 * is base/rng.h. A plain value: copies go on alike. */
#ifndef STI_BASE_LIBC_RANDOM_H
#define STI_BASE_LIBC_RANDOM_H

#include <stdint.h>

typedef struct sti_libc_random {
    uint32_t word[31];
    int at;
} sti_libc_random;

/* A program that never calls srand has seed 1. */
void sti_libc_random_begin(sti_libc_random *random, uint32_t seed);
/* 0 to 2^31 - 1. */
uint32_t sti_libc_random_next(sti_libc_random *random);

#endif
