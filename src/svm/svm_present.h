/* The columns of sparse rows that any of them has an entry in, so that what grows with
 * columns grows with these alone and not with the largest index. */
#ifndef STI_SVM_SVM_PRESENT_H
#define STI_SVM_SVM_PRESENT_H

#include "base/csr.h"
#include "stint/status.h"

typedef struct sti_svm_present {
    int64_t count;
    int32_t *column; /* [count] ascending */
} sti_svm_present;

/* STINT_E_MEMORY. While it is made it takes 4 bytes an entry more, at most. */
stint_status sti_svm_present_find(const sti_csr *x, sti_svm_present *present_out);
void sti_svm_present_fini(sti_svm_present *present); /* also of a zeroed one */
/* Only how many. */
stint_status sti_svm_present_count(const sti_csr *x, int64_t *count_out);

/* Places of a row's columns, ascending, from column[0] to column[count - 1]; of one
 * that is not there `present->count`, a place that no other has. */
void sti_svm_present_places(const sti_svm_present *present, int64_t count,
                            const int32_t *column, int32_t *place_out);

#endif
