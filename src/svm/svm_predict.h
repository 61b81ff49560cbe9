/* Decision values and labels of a model's (svm.h). */
#ifndef STI_SVM_SVM_PREDICT_H
#define STI_SVM_SVM_PREDICT_H

#include "base/account.h"
#include "svm/svm.h"

/* Values a row: a pair each in the order 0-1, 0-2, ..., 1-2, ...; a class each of one
 * against the rest; or one. */
int64_t sti_svm_values(const sti_svm_model *model);

/* Can the model be asked about the rows? STINT_E_INPUT: they have more features than
 * it, or not what its kernel wants; the complaint names the row, where path is that of
 * their file this and the line. */
stint_status sti_svm_predict_check(const sti_svm_model *model, const sti_table *table,
                                   const char *path);

/* value_out [rows, values]. answer_out [rows]: a place among the model's classes, or
 * where it has none the value itself (one_class: +1 or -1). Every value is a function
 * of its row and the model alone. STINT_E_INPUT: the rows have more features than the
 * model. */
stint_status sti_svm_predict(const sti_svm_model *model, const sti_table *table,
                             int threads, double *value_out, double *answer_out);

/* The same for rows whose numbers in the model's shared matrix are known: number
 * [rows].
 */
stint_status sti_svm_predict_shared(const sti_svm_model *model, const sti_table *table,
                                    const int64_t *number, int threads,
                                    double *value_out, double *answer_out);

/* What a prediction takes, and how many of so many threads fit into a budget (0: none).
 * STINT_E_BUDGET: not even one does; the account is then that of one. */
stint_status sti_svm_predict_plan(const sti_svm_model *model, const sti_table *table,
                                  int threads, size_t budget_bytes,
                                  sti_account *account_out, int *threads_out);

#endif
