/* What a memorisation study leaves in its folder. */
#ifndef STI_TRUST_MEMORY_PAGE_H
#define STI_TRUST_MEMORY_PAGE_H

#include "data/data.h"
#include "trust/memory_estimate.h"

/* In `folder`, each written atomically:
 *   members.npy, train_right.npy, test_right.npy  u64 [images, words]: bit r % 64 of
 * word r / 64 is run r memorisation.npy  f64 [train]; influence.npy f64 [test], the
 * largest of a memorised image (-1: there is none); cuts.npy f64 [2]: from where on
 * images count as memorised, and pairs as influence memorised.tsv, influence.tsv,
 * memory.html test may be NULL. */
stint_status sti_memory_write(const char *folder, const sti_memory_bits *bits,
                              const stint_memory *memory, const stint_data *train,
                              const stint_data *test);

#endif
