/* Some rows of a problem side by side, copied, as one side of kernel tiles. */
#ifndef STI_SVM_SVM_PICK_H
#define STI_SVM_SVM_PICK_H

#include "kernel/gram/gram.h"
#include "stint/status.h"

typedef struct sti_svm_pick {
    sti_gram_rows rows; /* what was picked */
    double *dense, *term;
    int64_t *start;
    int32_t *column;
    double *value;
} sti_svm_pick;

/* Bytes that a pick of at most `most` rows takes. */
size_t sti_svm_pick_bytes(const sti_gram_rows *from, int64_t most);
stint_status sti_svm_pick_create(const sti_gram_rows *from, int64_t most,
                                 sti_svm_pick *pick_out);
void sti_svm_pick_fini(sti_svm_pick *pick); /* also of a zeroed one */

/* The rows row[0..count) of what it was created for. */
void sti_svm_pick_take(sti_svm_pick *pick, const sti_gram_rows *from, int64_t count,
                       const int64_t *row);

#endif
