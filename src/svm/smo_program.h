/* The quadratic programs of LIBSVM's five types, and what their solutions mean. */
#ifndef STI_SVM_SMO_PROGRAM_H
#define STI_SVM_SMO_PROGRAM_H

#include "svm/smo.h"
#include "svm/svm_smo.h"

/* Room for a program and its solution. */
typedef struct sti_smo_program {
    sti_smo_problem problem;
    double *bound, *linear, *alpha; /* [variables] */
} sti_smo_program;

/* Variables of a machine of so many points. */
int64_t sti_smo_variables(sti_svm_type type, int64_t points);

/* For `positives` points of y = +1 before negatives of -1 (classes), or points with
 * targets y (regression; else NULL). cost: of the two signs. False: nu is too large for
 * the classes. */
bool sti_smo_program_begin(sti_smo_program *program, const sti_smo_desc *desc,
                           int64_t points, int64_t positives, const double *y,
                           const double cost[2]);

/* beta_out [points]: factors of the kernel in f. */
void sti_smo_program_end(const sti_smo_program *program, const sti_smo_desc *desc,
                         const double cost[2], const sti_smo_result *result,
                         double *beta_out, sti_smo_machine *machine_out);

#endif
