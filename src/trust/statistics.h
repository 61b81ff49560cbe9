/* Small statistics for counts. Functions of their arguments alone: no libm. */
#ifndef STI_TRUST_STATISTICS_H
#define STI_TRUST_STATISTICS_H

#include <stdint.h>

#include "stint/trust.h"

/* Wilson's interval for a share (Wilson 1927), 95 %. */
stint_share sti_share(int64_t count, int64_t n);

/* McNemar's exact test: probability of a split at least as uneven as (b, c) among b + c
 * fair coins, both tails. */
double sti_mcnemar_exact(int64_t b, int64_t c);

/* 2.5 % and 97.5 % points of the mean of value [n] over 1000 bootstrap draws, by
 * counter-based random numbers. Not finite for n = 0. */
void sti_bootstrap_mean(int64_t n, const float *value, uint64_t seed, double *low,
                        double *high);

#endif
