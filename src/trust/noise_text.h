/* The noise laboratory on a text: what follows each token of its test part is what runs
 * are told apart by. Classes are tokens. */
#ifndef STI_TRUST_NOISE_TEXT_H
#define STI_TRUST_NOISE_TEXT_H

#include "trust/noise_runs.h"

/* lab->text, with its test part. STINT_E_INPUT: that has no two tokens. */
stint_status sti_noise_text_open(sti_noise_lab *lab);
/* Next tokens of the test part, and kinds of tokens. */
int64_t sti_noise_text_count(const sti_noise_lab *lab);
int32_t sti_noise_text_classes(const sti_noise_lab *lab);
/* The tokens that are right, [count]. */
stint_status sti_noise_text_labels(const sti_noise_lab *lab, int32_t *label_out);
/* Tokens as text, [classes], in the laboratory's arena. */
stint_status sti_noise_text_names(const sti_noise_lab *lab, const char ***name_out);
/* What the model file at `path` answers, [count], of memory that the caller frees. */
stint_status sti_noise_text_answers(const sti_noise_lab *lab, const char *path,
                                    int32_t **answer_out);

#endif
