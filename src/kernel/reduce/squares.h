/* The sum of squares of many numbers, in double precision. */
#ifndef STI_KERNEL_SQUARES_H
#define STI_KERNEL_SQUARES_H

#include "base/team.h"

/* Partial sums that n numbers are cut into, by their number alone. */
int64_t sti_squares_pieces(int64_t n);
/* Sum of x[i]^2, products and sums in double: eight interleaved sums in pieces of 2^14
 * numbers, pieces in their order; the same bits for any team. partial:
 * [sti_squares_pieces(n)]. Cost: 2 n flop, reads x once. */
double sti_squares_f32(const sti_team *team, int64_t n, const float *x,
                       double *partial);

#endif
