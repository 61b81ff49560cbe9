/* How much the runs of one arm differ (Zhuang et al., "Randomness In Neural Network
 * Training: Characterizing the Impact of Tooling", arXiv 2106.11872), from tables of
 * answers and from model files. Deviations are those of the population of runs. */
#ifndef STI_TRUST_NOISE_METRICS_H
#define STI_TRUST_NOISE_METRICS_H

#include "stint/trust.h"

typedef struct sti_noise_table {
    int64_t runs, count; /* count: inputs */
    int32_t classes;
    const int32_t *label;         /* [count] */
    const int32_t *const *answer; /* [runs][count] */
    const int32_t *group;         /* [count], or NULL */
    int64_t groups;
} sti_noise_table;

/* Everything of *arm but its name, distances and onset; class_part [classes] and
 * group_part [groups] are the caller's, with their names. STINT_E_INPUT: fewer than two
 * runs, no inputs, an answer that is no class. */
stint_status sti_noise_measure(const sti_noise_table *table, stint_noise_arm *arm);

/* Means over all pairs of |a - b| and of |a/|a| - b/|b||, a and b all tensors of two
 * model files laid end to end. STINT_E_INPUT: the files have other tensors. */
stint_status sti_noise_distances(const char *const *path, int64_t runs,
                                 double *distance_out, double *normalised_out);

/* Is every figure exactly zero? */
bool sti_noise_is_zero(const stint_noise_arm *arm, int32_t classes, int64_t groups);

#endif
