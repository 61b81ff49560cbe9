/* Where the systems of least-squares machines start when the same rows are trained on
 * again with another C: at the last solutions. */
#ifndef STI_SVM_SVM_START_H
#define STI_SVM_SVM_START_H

#include <stdbool.h>

#include "svm/kernel_product.h"

/* Solutions of one training, all machines of it. */
typedef struct sti_svm_start {
    double *x;   /* [sti_svm_start_values], another's */
    bool filled; /* x holds solutions of these very rows */
} sti_svm_start;

/* Values of a training on `points` rows in `classes` classes; pairs: a machine for
 * every pair of classes, more than one; else one machine of `columns` right-hand sides.
 */
int64_t sti_svm_start_values(int64_t points, bool pairs, int64_t classes,
                             int64_t columns);

/* Between a machine's solutions x [columns, its rows] and their place in the start:
 * into it where `keep`, else out of it. Threads may do so at once for different
 * machines. pairs: the machine is that of two classes, ranges->index. */
void sti_svm_start_move(const sti_svm_start *start, int64_t points, bool pairs,
                        int64_t classes, const sti_kernel_ranges *ranges,
                        int64_t columns, double *x, bool keep);

#endif
