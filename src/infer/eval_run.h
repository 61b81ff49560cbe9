/* A model file over data: as stint_eval does it, for other rooms. */
#ifndef STI_INFER_EVAL_RUN_H
#define STI_INFER_EVAL_RUN_H

#include "infer/evaluate.h"
#include "model/posterior.h"
#include "stint/infer.h"
#include "store/model_file.h"

/* Images as the model takes them: its size and channels where desc leaves them open.
 * Some of its classes may have none (sti_data_tell_absent says which). STINT_E_INPUT:
 * of other classes, or of another size. */
stint_status sti_model_open_data(const stint_model_file *model,
                                 const stint_data_desc *desc, stint_data **data_out);

/* Logits [samples of the split, classes] of a model, as stint_eval runs it. */
stint_status sti_eval_logits(stint_model_file *model, const stint_data_desc *data,
                             int threads, int64_t batch,
                             stint_train_progress_fn *progress, void *user,
                             float *logits_out);

/* Networks that are drawn from one model, or the model as it is (draws.count 1 and
 * `sampled` false), heard over a split. */
typedef struct sti_hearing {
    stint_model_file *model;
    const stint_data_desc *data;
    bool sampled;
    bool strangers;       /* images of any classes */
    sti_eval_draws draws; /* opinions: zeroed before the first hearing, then of the same
                             split: those of several models add up */
    int threads;
    int64_t batch;
    stint_train_progress_fn *progress;
    void *user;
} sti_hearing;

/* What all networks heard so far say together goes to result_out as stint_eval has it
 * (of strangers without labels' meaning; NULL: not wanted), and *posterior_out (NULL:
 * not wanted) gets what the weights are, NaN where they are no distributions.
 * STINT_E_USAGE: sampled, and nothing is random; STINT_E_UNSUPPORTED: a text model. */
stint_status sti_eval_hear(const sti_hearing *hearing, stint_eval_result *result_out,
                           sti_posterior *posterior_out);

/* Images of any classes, as the model takes them. */
stint_status sti_model_open_strangers(const stint_model_file *model,
                                      const stint_data_desc *desc,
                                      stint_data **data_out);

#endif
