/* Fidelity of a changed model, from the logits of both (the metrics of "Going Beyond
 * Classification Accuracy Metrics in Model Compression", arXiv 2012.01604, and the
 * identities that they must keep). */
#ifndef STI_TRUST_FIDELITY_H
#define STI_TRUST_FIDELITY_H

#include "stint/trust.h"

typedef struct sti_fidelity_data {
    int64_t count;
    int32_t classes;
    const float *reference, *changed; /* logits [count, classes] */
    const int32_t *label;             /* [count] */
    const char *const *class_name;    /* [classes] */
    const int32_t *group;             /* [count], or NULL */
    const char *const *group_name;    /* [groups] */
    int64_t groups;
} sti_fidelity_data;

/* All of *out but the floor. STINT_E_INPUT: logits that are not finite, named by model
 * and input; STINT_E_BUG: an identity does not hold. */
stint_status sti_fidelity_find(const sti_fidelity_data *data, stint_fidelity *out);

/* Take answers [floors][count] of models that differ from the reference by chance alone
 * into out. */
stint_status sti_fidelity_floor(const sti_fidelity_data *data,
                                const int32_t *const *answer, int64_t floors,
                                stint_fidelity *out);

/* The class of the largest logit, the lowest of equal ones, of each row. -1 and the row
 * in *bad_out where one is not finite. */
bool sti_fidelity_answers(const float *logits, int64_t count, int32_t classes,
                          int32_t *answer_out, int64_t *bad_out);

#endif
