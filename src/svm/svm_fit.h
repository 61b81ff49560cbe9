/* A machine of any type with its parameters, trained on one table or another: by
 * conjugate gradients (svm_train.h) or by sequential minimal optimisation (svm_smo.h).
 */
#ifndef STI_SVM_SVM_FIT_H
#define STI_SVM_SVM_FIT_H

#include "svm/svm_smo.h"

/* A factor of C for a class. */
typedef struct sti_svm_weight {
    double label; /* as a table has it: a number, or a place in its names */
    double factor;
} sti_svm_weight;

typedef struct sti_svm_fit {
    bool ls; /* ls_svc or ls_svr by `least_squares`, else by `smo` */
    sti_svm_train_desc least_squares; /* table and weight are set here */
    sti_smo_desc smo;                 /* so are its */
    const sti_svm_weight *weight;
    int64_t weight_count;
} sti_svm_fit;

typedef struct sti_svm_fit_result {
    sti_svm_train_result least_squares; /* of ls */
    sti_smo_machine *machine;           /* [machines], else NULL; who called frees it */
} sti_svm_fit_result;

bool sti_svm_fit_classifies(const sti_svm_fit *fit);

/* Ranks that share a training, or NULL. */
sti_comm *sti_svm_fit_comm(const sti_svm_fit *fit);
void sti_svm_fit_set_comm(sti_svm_fit *fit, sti_comm *comm);

/* See sti_svm_plan_training and sti_smo_plan. */
stint_status sti_svm_fit_plan(const sti_svm_fit *fit, const sti_table *table,
                              sti_svm_plan *plan_out);
/* See sti_svm_train and sti_smo_train. result_out NULL: not wanted. */
stint_status sti_svm_fit_train(const sti_svm_fit *fit, const sti_table *table,
                               const sti_svm_plan *plan, sti_svm_model *model_out,
                               sti_svm_fit_result *result_out);

#endif
