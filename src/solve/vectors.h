/* Long vectors by many threads. A dot product is the sum, in their order, of stretches
 * of STI_VECTOR_PART: the same bits for any threads, those of solve/krylov.h. */
#ifndef STI_SOLVE_VECTORS_H
#define STI_SOLVE_VECTORS_H

#include <stdint.h>

#include "base/team.h"

enum { STI_VECTOR_PART = 4096 };

static inline int64_t sti_vector_parts(int64_t n)
{
    return (n + STI_VECTOR_PART - 1) / STI_VECTOR_PART;
}

/* parts [sti_vector_parts(n)]: scratch. */
double sti_vector_dot(const sti_team *team, int64_t n, const double *a, const double *b,
                      double *parts);
/* y = factor x + scale y; scale 0: y need not be set. */
void sti_vector_combine(const sti_team *team, int64_t n, double factor, const double *x,
                        double scale, double *y);
/* y = x + scale y in one rounding. */
void sti_vector_extend(const sti_team *team, int64_t n, const double *x, double scale,
                       double *y);
/* y = a - b. */
void sti_vector_subtract(const sti_team *team, int64_t n, const double *a,
                         const double *b, double *y);

#endif
