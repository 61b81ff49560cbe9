/* The k-th smallest magnitude of numbers that lie in several places, exactly. */
#ifndef STI_TRAIN_THRESHOLD_H
#define STI_TRAIN_THRESHOLD_H

#include <stdbool.h>
#include <stdint.h>

#include "kernel/maths/maths.h"

/* Numbers above it stay; of those equal to it the first `ties` in the order of the
 * visit stay, too: so just k are cut, and of equal ones those of lower index stay. */
typedef struct sti_threshold {
    uint32_t magnitude;
    int64_t ties;
} sti_threshold;

/* Calls sti_threshold_count(counter, x, n) once for each run of numbers. */
typedef struct sti_threshold_counter sti_threshold_counter;
typedef void sti_threshold_visit_fn(void *user, sti_threshold_counter *counter);
void sti_threshold_count(sti_threshold_counter *counter, const float *x, int64_t n);

/* Digit by digit, from the highest, by four visits: no memory, whatever the number of
 * numbers. 1 <= k <= how many there are. */
sti_threshold sti_threshold_find(int64_t k, sti_threshold_visit_fn *visit, void *user);

/* Magnitudes compare as their bits do. */
static inline uint32_t sti_magnitude(float x)
{
    return sti_f32_bits(x) & 0x7fffffffu;
}

/* Is x cut? To be asked in the order of the visit: ties are counted down. */
static inline bool sti_threshold_cuts(sti_threshold *t, float x)
{
    const uint32_t m = sti_magnitude(x);
    return m < t->magnitude || (m == t->magnitude && t->ties-- <= 0);
}

#endif
