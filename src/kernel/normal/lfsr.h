/* Normal numbers out of shift registers that run back as well as forward, after
 * Shift-BNN (Wan et al., MICRO 2021): what a forward pass drew the backward pass draws
 * again, last number first, and nothing is stored but the registers.
 *
 * A register of n = 256 (or 64) bits obeys s[t + n] = s[t + a] ^ s[t + b] ^ s[t + c] ^
 * s[t], where x^n + x^a + x^b + x^c + 1 is primitive, so that its period is 2^n - 1. A
 * number is the count K of its ones: (K - n / 2) / sqrt(n / 4) has mean 0, variance 1
 * and n + 1 levels, and is all but normal by the central limit theorem (its kurtosis is
 * 3 - 2 / n).
 *
 * Each number takes n fresh bits. With one fresh bit a number, as hardware would have
 * it, neighbours share the other n - 1: a correlation of 1 - 1 / n.
 *
 * 512 registers lie side by side, one a bit of n words of 512 bits: word t of the state
 * holds bit t of all. A refresh is n exclusive ors of words and gives 512 numbers,
 * number i from register i; it undoes itself in the opposite order.
 *
 * All functions keep no pointer and may be called by any threads at once on different
 * states. Same bits for every instruction set. */
#ifndef STI_KERNEL_LFSR_H
#define STI_KERNEL_LFSR_H

#include <stdbool.h>
#include <stdint.h>

#include "kernel/normal/normal.h"
#include "stint/status.h"

/* Registers; bytes of a state, which is 64-byte aligned (64 bits take a quarter). */
enum { STI_LFSR_LANES = 512, STI_LFSR_BYTES = 16384 };

typedef struct sti_lfsr_taps {
    sti_normal_generator generator; /* LFSR256 or LFSR64 */
    int a, b, c;                    /* exponents: n > a > b > c > 0 */
} sti_lfsr_taps;

/* Bits of a register. */
int sti_lfsr_bits(sti_normal_generator generator);
/* "256,10,5,2": the exponents, falling. NULL or empty: the default of the generator.
 * STINT_E_USAGE: not four such numbers, or not primitive (tried in some milliseconds,
 * by the prime factors of 2^n - 1). */
stint_status sti_lfsr_taps_parse(const char *text, sti_normal_generator generator,
                                 sti_lfsr_taps *taps_out);

/* The registers' first bits for a key (whose layer does not count: the state goes from
 * one layer to the next). No register is all zeros. */
void sti_lfsr_seed(const sti_normal_key *key, void *state_out);
/* Is this such a state? */
bool sti_lfsr_is_seed(const sti_normal_key *key, const void *state);

/* Refresh, then eps_out [512] of the new state. */
void sti_lfsr_next(const sti_lfsr_taps *taps, void *state, float *eps_out);
/* eps_out [512] of the state, which is what the last sti_lfsr_next gave; then the state
 * before it. */
void sti_lfsr_back(const sti_lfsr_taps *taps, void *state, float *eps_out);

#endif
