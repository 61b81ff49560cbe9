/* Bits that columns have in common, counted: the inner loop of memorisation and
 * influence estimates (trust/memory_estimate.h). */
#ifndef STI_KERNEL_BIT_COUNT_H
#define STI_KERNEL_BIT_COUNT_H

#include <stdint.h>

enum { STI_BIT_LANES = 8 }; /* columns of a group */

/* count_out[8 g + lane] = number of bits set in both column 8 g + lane and `column`.
 * Columns lie in groups of eight, word by word, so that eight counts grow in the lanes
 * of one register and none has to be summed across:
 *   groups [group_count][words][8], column [words], count_out [8 * group_count].
 * Integers: every instruction set gives the same. Three operations a 512-bit word of
 * eight columns; bytes touched: 64 * words a group. */
void sti_bit_and_count(const uint64_t *groups, int64_t group_count, int64_t words,
                       const uint64_t *column, uint32_t *count_out);

/* The same for one pair: two columns as they are. */
int64_t sti_bit_and_count_pair(const uint64_t *a, const uint64_t *b, int64_t words);

typedef void sti_bit_and_count_fn(const uint64_t *groups, int64_t group_count,
                                  int64_t words, const uint64_t *column,
                                  uint32_t *count_out);
sti_bit_and_count_fn sti_bit_and_count_ref;
#if defined(__x86_64__)
sti_bit_and_count_fn sti_bit_and_count_avx2, sti_bit_and_count_avx512;
#endif

#endif
