/* What several networks say of the same images: the mean of their probabilities, how
 * uncertain it is, and how much of that is because they disagree.
 *
 * With the mean p of N networks' probabilities p_n, H(p) = - sum over classes p ln p is
 * the entropy of the answer in nats. Part of it every network has by itself, the mean
 * of H(p_n): what images leave open. The rest, H(p) - mean H(p_n), is the mutual
 * information of answer and weights: what the weights leave open, and more training
 * data would settle (Houlsby et al. 2011). */
#ifndef STI_INFER_OPINIONS_H
#define STI_INFER_OPINIONS_H

#include <stddef.h>
#include <stdint.h>

#include "stint/status.h"

typedef struct sti_opinions {
    int64_t count; /* images */
    int32_t classes;
    int64_t networks; /* heard so far, alike of all images */
    /* Sums over the networks: [count, classes] of probabilities and of their squares,
     * [count] of entropies. */
    double *sum, *squares, *entropy;
} sti_opinions;

/* Nothing heard yet. STINT_E_MEMORY. */
stint_status sti_opinions_init(sti_opinions *opinions, int64_t count, int32_t classes);
void sti_opinions_fini(sti_opinions *opinions); /* a zeroed one is fine */

/* One more network of one image: probabilities [classes]. Several threads may add to
 * different images. `networks` is the caller's to count. */
void sti_opinions_add(sti_opinions *opinions, int64_t image, const float *probability);

/* Mean probability of a class, and the standard deviation of the networks about it. */
double sti_opinions_mean(const sti_opinions *opinions, int64_t image, int32_t c);
double sti_opinions_deviation(const sti_opinions *opinions, int64_t image, int32_t c);
/* The class of the largest mean, the lowest of equal ones. */
int32_t sti_opinions_answer(const sti_opinions *opinions, int64_t image);
/* - ln of the mean probability of this class; where that is 0, of the least float32. */
double sti_opinions_loss(const sti_opinions *opinions, int64_t image, int32_t c);
/* Nats, both at least 0. */
double sti_opinions_entropy(const sti_opinions *opinions, int64_t image);
double sti_opinions_information(const sti_opinions *opinions, int64_t image);

#endif
