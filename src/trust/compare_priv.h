/* Parts of a comparison that others in this room need. */
#ifndef STI_TRUST_COMPARE_PRIV_H
#define STI_TRUST_COMPARE_PRIV_H

#include "infer/eval_run.h"
#include "trust/fidelity.h"

/* Answers and, if wanted, margins (largest logit less the next) of the model at `path`
 * over `count` inputs of a split. STINT_E_INPUT: it is not of the reference's task, or
 * a score is not finite. margin_out may be NULL. */
stint_status sti_compare_answers(const stint_compare_desc *desc,
                                 const stint_model_file *reference, const char *path,
                                 stint_data_split split, int64_t count,
                                 int32_t *answer_out, float *margin_out);

#endif
