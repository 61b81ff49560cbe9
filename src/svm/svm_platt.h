/* Probabilities from decision values. For classes a sigmoid a pair (Platt 1999; Lin,
 * Lin and Weng 2007) from decision values of five folds, the pairs coupled by the
 * second method of Wu, Lin and Weng 2004; for numbers the width of a Laplace
 * distribution (Lin and Weng 2004); for one class marks of the density (Que and Lin
 * 2022). */
#ifndef STI_SVM_SVM_PLATT_H
#define STI_SVM_SVM_PLATT_H

#include "svm/svm_folds.h"

/* sti_svm_fit_train, with probabilities: what they need is found first, on folds whose
 * order is drawn as svm-train draws it. */
stint_status sti_svm_fit_probable(const sti_svm_fit *fit, const sti_table *table,
                                  const sti_svm_plan *plan, int threads,
                                  sti_libc_random *random, sti_svm_model *model_out,
                                  sti_svm_fit_result *result_out);

/* Doubles of scratch of sti_svm_probabilities. */
int64_t sti_svm_probabilities_scratch(const sti_svm_model *model);
/* probability_out [classes] from the values of a row (svm_predict.h) of a model with
 * prob_a and prob_b. Returns the most probable class, the first of equal ones. */
int64_t sti_svm_probabilities(const sti_svm_model *model, const double *value,
                              double *probability_out, double *scratch);

/* The probability that a row is none of the outliers, of a model with marks. */
double sti_svm_density(const sti_svm_model *model, double value);

#endif
