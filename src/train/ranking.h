/* How well scores tell clicks from others. */
#ifndef STI_TRAIN_RANKING_H
#define STI_TRAIN_RANKING_H

#include <stdbool.h>
#include <stdint.h>

#include "stint/status.h"

typedef struct sti_ranking {
    int64_t count, positives;
    double auc; /* area under the ROC curve, exact, ties half; NaN: one class only */
    double log_loss;    /* mean of -y log p - (1 - y) log(1 - p), from logits */
    double accuracy;    /* of p > 1/2 */
    double calibration; /* mean p over the share of positives; NaN: there are none */
} sti_ranking;

/* Judge logits [count] against labels of 0 and 1; sums are taken in double, in the
 * order of the samples. STINT_E_MEMORY: it takes 16 bytes a sample. */
stint_status sti_rank_scores(const float *logit, const uint8_t *label, int64_t count,
                             sti_ranking *out);
/* Bytes that it takes. */
static inline int64_t sti_ranking_bytes(int64_t count)
{
    return 16 * count;
}

#endif
