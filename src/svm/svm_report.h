/* The page of a training: one HTML file with the residual over the iterations, which
 * rows the machine takes for which class, decision values, and for two features the
 * regions, as svm-toy draws them. */
#ifndef STI_SVM_SVM_REPORT_H
#define STI_SVM_SVM_REPORT_H

#include "svm/svm_train.h"

/* What is told. All is borrowed. */
typedef struct sti_svm_report {
    const char *data, *type; /* file; "ls_svc" */
    const sti_table *table;  /* the training rows */
    const sti_svm_model *model;
    const sti_svm_plan *plan;
    const double *history; /* [STI_SVM_HISTORY] residuals, 0 from the end on; or NULL */
    int64_t iterations;
    double residual, c, seconds; /* seconds: of solving */
    int threads;
} sti_svm_report;

/* Bytes that making it takes beside table and model, at most. */
size_t sti_svm_report_bytes(const sti_csr *x, int64_t columns, int64_t values,
                            int threads);

/* Predict the training rows and write the page; atomic. STINT_E_IO, STINT_E_MEMORY. */
stint_status sti_svm_report_write(const char *path, const sti_svm_report *report);

#endif
