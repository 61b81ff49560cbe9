/* Sums, means and maxima by fixed trees, so that the bits depend on shapes alone.
 *
 * A long run of numbers is cut into chunks of 4096; inside a chunk, element i goes to
 * accumulator (i / 16) % 4, lane i % 16; accumulators join as (0 + 1) + (2 + 3), lanes
 * by halves (8, 4, 2, 1); chunks join by a binary tree over the chunk index. Column
 * sums cut the rows into chunks of 256, row i into accumulator i % 4, joined the same
 * way; columns never mix. Error: a few ulp of sum |x| for any practical length. */
#ifndef STI_KERNEL_REDUCE_H
#define STI_KERNEL_REDUCE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/team.h"

#define STI_REDUCE_CHUNK     4096 /* elements; part of the numerics */
#define STI_REDUCE_ROW_CHUNK 256  /* rows; part of the numerics */

typedef enum sti_reduce {
    STI_REDUCE_SUM,
    STI_REDUCE_MEAN, /* the sum divided by the count */
    STI_REDUCE_MAX   /* NaN wins */
} sti_reduce;

/* y [outer, inner] = reduce over the middle axis of x [outer, count, inner]; count
 * >= 1. inner == 1: sums of contiguous rows; outer == 1: column sums. x and y are
 * disjoint. scratch: 64-byte aligned, may be NULL when the size is 0. */
size_t sti_reduce_scratch_bytes(int64_t outer, int64_t count, int64_t inner);
void sti_reduce_f32(const sti_team *team, sti_reduce kind, int64_t outer, int64_t count,
                    int64_t inner, const float *x, float *y, void *scratch);

/* y = reduce over the axes in the bit set (bit i: axis i) of x [dim]; several groups of
 * axes are reduced innermost first. */
size_t sti_reduce_axes_scratch_bytes(int rank, const int64_t *dim, unsigned axes);
void sti_reduce_axes_f32(const sti_team *team, sti_reduce kind, int rank,
                         const int64_t *dim, unsigned axes, const float *x, float *y,
                         void *scratch);

#endif
