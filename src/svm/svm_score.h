/* How well answers meet the labels, by the measures that LIBSVM's programs print. */
#ifndef STI_SVM_SVM_SCORE_H
#define STI_SVM_SVM_SCORE_H

#include <stdint.h>

typedef struct sti_svm_score {
    int64_t correct, total; /* answers that are the label */
    double mse, scc;        /* mean squared error, squared correlation */
} sti_svm_score;

/* answer and y [count]. */
sti_svm_score sti_svm_score_of(int64_t count, const double *answer, const double *y);

#endif
