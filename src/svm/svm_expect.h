/* How long a training will take on this host, before it runs. */
#ifndef STI_SVM_SVM_EXPECT_H
#define STI_SVM_SVM_EXPECT_H

#include "svm/svm_fit.h"

typedef struct sti_svm_expect_desc {
    const sti_svm_fit *fit;
    const sti_table *table;
    const sti_svm_plan *plan; /* of that fit and table */
    double read_s;            /* what reading the table took */
    int64_t folds;            /* of -v; 0: none */
    bool probable;            /* -b 1 */
    int ranks;                /* that share the work, each on a host like this one */
} sti_svm_expect_desc;

/* Seconds from the start to the written model. Least squares: operations and bytes of a
 * training by the rates of this host (svm_rates.h), with the iterations that a sample
 * of at most 1,024 rows takes, which is solved twice, once halved, to see how they
 * grow. LIBSVM's types: the time that samples of at most 2,048 rows take, halved
 * likewise. Writing is taken to last as long as reading. NaN where a sample cannot be
 * solved; a failure where memory is short or a stop was asked for. */
stint_status sti_svm_expect(const sti_svm_expect_desc *desc, double *seconds_out);

#endif
