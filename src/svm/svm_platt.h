/* What a model needs for probabilities: for classes a sigmoid a pair (Platt 1999; Lin,
 * Lin and Weng 2007) from decision values of five folds; for numbers the width of a
 * Laplace distribution (Lin and Weng 2004); for one class marks of the density (Que and
 * Lin 2022). svm_probability.h puts it to use. */
#ifndef STI_SVM_SVM_PLATT_H
#define STI_SVM_SVM_PLATT_H

#include "svm/svm_folds.h"

/* sti_svm_fit_train, with probabilities: what they need is found first, on folds whose
 * order is drawn as svm-train draws it. */
stint_status sti_svm_fit_probable(const sti_svm_fit *fit, const sti_table *table,
                                  const sti_svm_plan *plan, int threads,
                                  sti_libc_random *random, sti_svm_model *model_out,
                                  sti_svm_fit_result *result_out);

#endif
