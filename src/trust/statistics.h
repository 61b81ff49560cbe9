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

/* Ranks from 1 upwards, equal values sharing their mean. STINT_E_MEMORY. */
stint_status sti_midranks(int64_t n, const double *value, double *rank_out);

/* The area under the curve of a value with these ranks for telling the marked inputs:
 * the chance that a marked one has the larger value, ties counting half. NaN where all
 * or none are marked. */
double sti_auroc(int64_t n, const double *rank, const uint8_t *marked);

/* Spearman's rank correlation from two rows of ranks. NaN where either is constant. */
double sti_spearman(int64_t n, const double *rank_a, const double *rank_b);

#endif
