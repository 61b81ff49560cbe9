/* The lines of a model file's support vectors, made by several threads. */
#ifndef STI_SVM_SVM_POINTS_H
#define STI_SVM_SVM_POINTS_H

#include "base/team.h"
#include "svm/svm.h"

/* Takes text in its order. STINT_OK, or a failure that ends the writing. */
typedef stint_status sti_svm_points_fn(void *user, const char *text, size_t bytes);

/* A line for every point of the model: its alphas, its features. */
stint_status sti_svm_points_write(const sti_svm_model *model, const sti_team *team,
                                  sti_svm_points_fn *take, void *user);

#endif
