/* Features brought to one range, as svm-scale does it: same numbers, same text. */
#ifndef STI_SVM_SVM_SCALE_H
#define STI_SVM_SVM_SCALE_H

#include <stdbool.h>

#include "base/text.h"
#include "data/data_table.h"

/* What maps a feature's [least, most] to [lower, upper]; one with a single value, in
 * which least == most, is left out of the result. */
typedef struct sti_svm_scale {
    double lower, upper;
    int64_t first, columns; /* indices first to columns - 1 */
    double *least, *most;   /* [columns] */
    bool targets; /* labels, numbers, are mapped from y_range to y_bound likewise */
    double y_bound[2], y_range[2];
} sti_svm_scale;

/* Ranges of a table's features, its zeros counted. */
stint_status sti_svm_scale_of(const sti_table *table, double lower, double upper,
                              sti_svm_scale *scale_out);
void sti_svm_scale_fini(sti_svm_scale *scale); /* also of a zeroed one */

/* Add the range of a table's labels. STINT_E_INPUT: they are no numbers. */
stint_status sti_svm_scale_targets(const sti_table *table, double lower, double upper,
                                   sti_svm_scale *scale);

/* svm-scale's file of ranges. Reading: STINT_E_INPUT with file and line. */
stint_status sti_svm_scale_write(const sti_svm_scale *scale, const char *path);
stint_status sti_svm_scale_read(const char *path, sti_svm_scale *scale_out);
stint_status sti_svm_scale_parse(const char *text, size_t n_bytes, const char *name,
                                 sti_svm_scale *scale_out);

/* A row as LIBSVM text; features that the scale does not know are left out. */
void sti_svm_scale_row(const sti_svm_scale *scale, const sti_table *table, int64_t row,
                       sti_text *out);

#endif
