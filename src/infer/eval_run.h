/* A model file over data: as stint_eval does it, for other rooms. */
#ifndef STI_INFER_EVAL_RUN_H
#define STI_INFER_EVAL_RUN_H

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

#endif
