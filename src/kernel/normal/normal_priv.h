/* Where normal numbers come from: words of a generator, 64 to a unit, and the loop that
 * makes 64 normal numbers of them. Private to the family. */
#ifndef STI_KERNEL_NORMAL_PRIV_H
#define STI_KERNEL_NORMAL_PRIV_H

#include <stdint.h>

/* Elements that are made together, of as many words: words 0 to 31 give lengths, 32 to
 * 63 directions; element j is the cosine's, j + 32 the sine's. A unit is 16 blocks of
 * four words. */
enum { STI_NORMAL_UNIT = 64, STI_NORMAL_UNIT_BLOCKS = 16 };

/* Counters of a stream: block i of it has the counter (a, b + i). */
typedef struct sti_normal_counter {
    uint64_t seed, a, b;
} sti_normal_counter;

/* Words of `units` units from unit `first` on. ARS: block by block. */
typedef void sti_normal_words_fn(const sti_normal_counter *counter, int64_t first,
                                 int64_t units, uint32_t *words_out);
sti_normal_words_fn sti_ars_words_ref;
/* Philox: in each unit word 0 of the 16 blocks, then word 1, and so on, which is the
 * order in which vectors hold them. */
sti_normal_words_fn sti_philox_words_ref;
#if defined(__x86_64__)
sti_normal_words_fn sti_ars_words_aes;  /* AES on 128 bits */
sti_normal_words_fn sti_ars_words_vaes; /* on 512 */
sti_normal_words_fn sti_philox_words_avx512;
#endif

/* The method of Box and Muller on `units` units of words. */
typedef void sti_box_muller_fn(int64_t units, const uint32_t *restrict words,
                               float *restrict eps_out);
sti_box_muller_fn sti_box_muller_ref;
#if defined(__x86_64__)
sti_box_muller_fn sti_box_muller_avx2, sti_box_muller_avx512;
#endif

/* The key of ARS: 128 bits, and what is added to each half from round to round (as in
 * Random123). */
#define STI_ARS_ROUNDS 7
#define STI_ARS_WEYL_0 UINT64_C(0x9E3779B97F4A7C15)
#define STI_ARS_WEYL_1 UINT64_C(0xBB67AE8584CAA73B)

/* Seven rounds on the counter of two words of 64 bits, as the table has it. */
void sti_ars_block(const uint64_t counter[2], const uint64_t key[2], uint32_t out[4]);

#endif
