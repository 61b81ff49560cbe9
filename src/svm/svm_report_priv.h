/* Inside the page of a training. */
#ifndef STI_SVM_SVM_REPORT_PRIV_H
#define STI_SVM_SVM_REPORT_PRIV_H

#include "base/number.h"
#include "base/text.h"
#include "svm/svm_report.h"

/* The name of a class; text is room for a number. */
const char *sti_svm_report_class(const sti_svm_model *model, int64_t class,
                                 char text[STI_NUMBER_BYTES]);

/* For two features: the plane cut into cells of the answer's colour, and rows on it. */
stint_status sti_svm_report_add_regions(const sti_svm_report *report, sti_text *out);

#endif
