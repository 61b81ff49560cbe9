/* Probabilities from the decision values of a model that has what they need: the pairs'
 * sigmoids coupled by the second method of Wu, Lin and Weng 2004, or the density of one
 * class (Que and Lin 2022). svm_platt.h finds what they need. */
#ifndef STI_SVM_SVM_PROBABILITY_H
#define STI_SVM_SVM_PROBABILITY_H

#include "svm/svm.h"

/* 1 / (1 + exp(u)) without overflow. */
double sti_svm_sigmoid(double u);

/* Doubles of scratch of sti_svm_probabilities. */
int64_t sti_svm_probabilities_scratch(const sti_svm_model *model);
/* probability_out [classes] from the values of a row (svm_predict.h) of a model with
 * prob_a and prob_b. Returns the most probable class, the first of equal ones. */
int64_t sti_svm_probabilities(const sti_svm_model *model, const double *value,
                              double *probability_out, double *scratch);

/* The probability that a row is none of the outliers, of a model with marks. */
double sti_svm_density(const sti_svm_model *model, double value);

#endif
