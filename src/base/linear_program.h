/* Linear programmes: maximise c x where the rows of A x are at most, or exactly, b and
 * no x is negative. Solved by the simplex method of GLPK, which is optional: without it
 * STINT_E_UNSUPPORTED names the package. */
#ifndef STI_BASE_LINEAR_PROGRAM_H
#define STI_BASE_LINEAR_PROGRAM_H

#include <stdbool.h>

#include "stint/status.h"

typedef struct sti_linear_program {
    int rows, columns;
    const double *objective; /* c [columns] */
    const double *matrix;    /* A [rows, columns] */
    const double *bound;     /* b [rows] */
    const bool *equal;       /* [rows]: exactly b; false: at most */
} sti_linear_program;

/* Is there a solver here? If not the failure that says so is recorded. */
bool sti_linear_program_known(void);
/* The largest c x, and (where not NULL) the x [columns] of it. STINT_E_BUDGET: no x
 * meets all rows; STINT_E_FAILED: c x has no limit, or the solver gave up. */
stint_status sti_linear_program_solve(const sti_linear_program *lp, double *value_out,
                                      double *x_out);

#endif
