/* Loss and answers over a whole split, on lanes that run a network for use. */
#ifndef STI_INFER_EVALUATE_H
#define STI_INFER_EVALUATE_H

#include "data/corpus.h"
#include "data/field.h"
#include "infer/lanes.h"
#include "infer/opinions.h"
#include "net/comm.h"
#include "stint/infer.h"

/* The samples of an evaluation: images, or windows of text. All is borrowed. */
typedef struct sti_eval_source {
    const stint_data *data;             /* NULL: text, or a field */
    sti_data_decoders *const *decoders; /* [lanes] of these images */
    const sti_data_norm *norm;
    const sti_corpus *text;
    sti_corpus_part part;          /* of the text: what is evaluated */
    const sti_field_points *field; /* points and their values; else NULL */
    bool
        strangers; /* images whose classes are not the network's: they have no labels */
} sti_eval_source;

/* Networks that every batch runs through, decoded once, where the lanes' network is one
 * that step for step is another (sti_model_sample): network k of them is that of step
 * first + k, the same for all images whatever the batch. */
typedef struct sti_eval_draws {
    int64_t first, count;
    uint64_t seed;
    sti_opinions *opinions; /* of the split's images: hear all of them; borrowed */
} sti_eval_draws;

/* What an evaluation finds. Samples of text are windows: there are no classes and no
 * answers then, and the loss is the mean over the tokens, in nats. Of a field it is the
 * mean square of all outputs of all points, summed in double. */
typedef struct sti_evaluation {
    int64_t count; /* samples of the split */
    int32_t classes;
    double loss, accuracy; /* means over the samples; accuracy of text, fields: NaN */
    int32_t *predicted;    /* [count], the lowest of equal ones */
    float *probability;    /* [count], of the predicted class */
    float *logits;         /* [count, classes], where somebody wants them; borrowed */
    /* NULL: one network. Else loss, accuracy and answers are of its opinions. */
    const sti_eval_draws *draws;
    double *batch_loss;      /* [batches], sums */
    int32_t *samples;        /* [lanes * images] */
    int64_t batches, images; /* images: samples of a batch */
    /* [lanes * images], of images alone: there where a batch goes through the lanes'
     * network in parts (sti_evaluation_in_parts); else NULL. */
    float *row_loss;
} sti_evaluation;

/* Bytes that an evaluation allocates. classes 0: of text. */
size_t sti_evaluation_bytes(int64_t count, int32_t classes, int64_t images, int lanes);
/* The class of the largest score, the lowest of equal ones. */
int32_t sti_largest_logit(const float *logits, int32_t classes);

stint_status sti_evaluation_init(sti_evaluation *evaluation, int64_t count,
                                 int32_t classes, int64_t images, int lanes);
/* Have the lanes run their batches of images part by part, where their network takes
 * fewer at a time. The loss has the bits of a batch run at once: its rows are summed in
 * one go. */
stint_status sti_evaluation_in_parts(sti_evaluation *evaluation, int lanes);
size_t sti_evaluation_parts_bytes(int64_t images, int lanes);
void sti_evaluation_fini(sti_evaluation *evaluation);

/* What there is to tell after `done` of `total` samples, begun at start_ns. */
stint_train_progress sti_evaluation_at(int64_t start_ns, int64_t done, int64_t total);

/* Called on the calling thread between rounds of batches. */
typedef void sti_evaluation_progress_fn(void *user, int64_t done, int64_t total);

/* Run the lanes' network over the samples. Allocates nothing. The sums are taken in the
 * order of the batches, whatever the lanes. Ranks of comm (NULL: one process) share the
 * batches out, and all get all answers. progress may be NULL. STINT_E_INTERRUPTED or
 * _TERMINATED after stint_stop(), but with ranks, which must not part ways here, nobody
 * looks. */
stint_status sti_evaluate(sti_infer_lanes *lanes, const sti_eval_source *source,
                          sti_comm *comm, sti_evaluation *evaluation,
                          sti_evaluation_progress_fn *progress, void *user);

#endif
