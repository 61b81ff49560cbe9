/* Memorisation and influence from bit columns (Feldman and Zhang, arXiv 2008.03703).
 *
 * An example's column has a bit a run: was it trained on, did the network get it right.
 * With n1 = |B|, n0 = runs - n1, a = |B and C|, c = |C|,
 *   influence = a / n1 - (c - a) / n0,  error^2 = p1 (1 - p1) / n1 + p0 (1 - p0) / n0,
 * so a pair costs one AND and count; the matrix is never stored. Nothing is estimated
 * where n1 or n0 is below 2. */
#ifndef STI_TRUST_MEMORY_ESTIMATE_H
#define STI_TRUST_MEMORY_ESTIMATE_H

#include "base/team.h"
#include "stint/trust.h"

typedef struct sti_memory_bits {
    int64_t runs, words; /* words of 64 runs a column; bits beyond the runs are zero */
    int64_t train, test;
    uint64_t *member;      /* [train, words] */
    uint64_t *train_right; /* [train, words] */
    uint64_t *test_right;  /* [test, words] */
    int32_t *train_label, *test_label;
    int32_t classes;
} sti_memory_bits;

/* All columns zero, labels too. */
stint_status sti_memory_bits_init(sti_memory_bits *bits, int64_t runs, int64_t train,
                                  int64_t test);
void sti_memory_bits_fini(sti_memory_bits *bits); /* a zeroed one is fine */
size_t sti_memory_bits_bytes(int64_t runs, int64_t train, int64_t test);
void sti_memory_set(uint64_t *columns, int64_t words, int64_t column, int64_t run);

/* The training images of a run: member_out [train] 0 or 1, `members` of them, a
 * function of (seed, run) alone; order [train] is scratch. */
void sti_memory_members(uint64_t seed, int64_t run, int64_t train, int64_t members,
                        int32_t *order, uint8_t *member_out);

/* Everything but what is "of stint_memory_run alone". desc: memorised, every_class,
 * nearest. `seed` keys the permutations by which chance is judged. STINT_E_USAGE: fewer
 * than 2 runs. */
stint_status sti_memory_estimate(const sti_memory_bits *bits,
                                 const stint_memory_desc *desc, uint64_t seed,
                                 const sti_team *team, stint_memory *memory_out);

#endif
