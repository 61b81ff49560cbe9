/* Inverted dropout (Srivastava et al. 2014) from the counter-based generator: the mask
 * is a pure function, made again in the backward pass instead of saved.
 *
 * Element e of layer l in step s and shard d uses word e % 4 of
 * sti_random4(seed, STI_STREAM_DROPOUT, a, b) with
 *     a = l << 48 | s     (l < 2^16, s < 2^48)
 *     b = d << 40 | e / 4 (d < 2^24, e < 2^42)
 * and is kept where its uniform number is >= rate. */
#ifndef STI_KERNEL_DROPOUT_H
#define STI_KERNEL_DROPOUT_H

#include <stdint.h>

#include "base/team.h"

typedef struct sti_dropout_key {
    uint64_t seed;
    int64_t step, shard, layer;
} sti_dropout_key;

/* y = x / (1 - rate) where kept, else +0; 0 <= rate < 1. y may be x. */
void sti_dropout_f32(const sti_team *team, const sti_dropout_key *key, float rate,
                     int64_t n, const float *x, float *y);

#endif
