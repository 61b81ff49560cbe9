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

/* What a program is made for. */
typedef struct sti_smo_points {
    int64_t count, positives; /* classes: y = +1 comes before -1 */
    const double *y;          /* [count] targets of a regression, or NULL */
    const double *weight;     /* [count] factors of C, or NULL */
    double cost[2];           /* C of the two signs */
} sti_smo_points;

/* False: nu is too large for the classes. */
bool sti_smo_program_begin(sti_smo_program *program, const sti_smo_desc *desc,
                           const sti_smo_points *points);

/* beta_out [points]: factors of the kernel in f. */
void sti_smo_program_end(const sti_smo_program *program, const sti_smo_desc *desc,
                         const sti_smo_points *points, const sti_smo_result *result,
                         double *beta_out, sti_smo_machine *machine_out);

#endif
