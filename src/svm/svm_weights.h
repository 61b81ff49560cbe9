/* Weights of points: factors of C, one for every row of a table. */
#ifndef STI_SVM_SVM_WEIGHTS_H
#define STI_SVM_SVM_WEIGHTS_H

#include <stddef.h>
#include <stdint.h>

#include "stint/status.h"

/* A text of `rows` lines, each a finite number above 0. *weight_out [rows] is the
 * caller's (sti_free). STINT_E_INPUT, with `name` and line: something else, or another
 * number of lines; STINT_E_MEMORY. */
stint_status sti_svm_weights_parse(const char *text, size_t n_bytes, const char *name,
                                   int64_t rows, double **weight_out);
/* The same of a file; also STINT_E_IO. */
stint_status sti_svm_weights_read(const char *path, int64_t rows, double **weight_out);

#endif
