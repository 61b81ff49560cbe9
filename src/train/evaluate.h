/* Loss and answers over a whole split, on the lanes of a crew. */
#ifndef STI_TRAIN_EVALUATE_H
#define STI_TRAIN_EVALUATE_H

#include "train/crew.h"

/* Which of the crew's images. */
typedef enum sti_evaluation_of {
    STI_EVALUATE_TEST,
    STI_EVALUATE_TRAIN,
    STI_EVALUATE_VALIDATION
} sti_evaluation_of;

/* Of text, samples are windows, there are no classes and no answers, and the loss is
 * the mean over the tokens, in nats. */
typedef struct sti_evaluation {
    int64_t count; /* samples of the split */
    int32_t classes;
    sti_evaluation_of of;
    double loss, accuracy; /* means over the samples; accuracy of text: NaN */
    sti_corpus_part part;  /* of text: what is evaluated */
    int32_t *predicted;    /* [count], the lowest of equal ones */
    float *probability;    /* [count], of the predicted class */
    float *logits;         /* [count, classes], where somebody wants them; borrowed */
    double *batch_loss;    /* [batches], sums */
    int32_t *samples;      /* [lanes * images] */
    int64_t batches;
} sti_evaluation;

/* Bytes that an evaluation allocates. classes 0: of text. */
size_t sti_evaluation_bytes(int64_t count, int32_t classes, int64_t images, int lanes);
/* The class of the largest score, the lowest of equal ones. */
int32_t sti_largest_logit(const float *logits, int32_t classes);

stint_status sti_evaluation_init(sti_evaluation *evaluation, int64_t count,
                                 int32_t classes, int64_t images, int lanes);
void sti_evaluation_fini(sti_evaluation *evaluation);

/* Called on the calling thread between rounds of batches. */
typedef void sti_evaluation_progress_fn(void *user, int64_t done, int64_t total);

/* Run crew->desc.eval over crew->desc.test_data (train_data, text). Allocates nothing.
 * The sums are taken in the order of the batches, whatever the lanes. Ranks of the crew
 * share the batches out, and all get all answers. STINT_E_INTERRUPTED or _TERMINATED
 * after stint_stop(), but with ranks, which must not part ways here, nobody looks. */
stint_status sti_evaluate(sti_crew *crew, const sti_data_norm *norm,
                          sti_evaluation *evaluation,
                          sti_evaluation_progress_fn *progress, void *user);

#endif
