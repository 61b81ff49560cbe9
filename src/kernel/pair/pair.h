/* Steps of sequential minimal optimisation (Platt 1998) on a working set: which two
 * variables move, by second-order information (Fan, Chen and Lin 2005), and what their
 * move does to the others. The same bits on every instruction set.
 *
 * A variable has a violation v = -y G (y its sign, G its gradient). `up` is 0 where the
 * variable may move up, and -infinity where not; `low` 0 where it may move down, and
 * +infinity where not. Of equal candidates the last one is taken, as LIBSVM does. Rows
 * of the kernel matrix are in float, all arithmetic on them is in double. Arrays of
 * `count` entries, a multiple of STI_PAIR_LANES: who has fewer fills up with v = 0, up
 * = -infinity, low = +infinity. Pure loops: no allocation, no failure. */
#ifndef STI_KERNEL_PAIR_H
#define STI_KERNEL_PAIR_H

#include <stdint.h>

enum { STI_PAIR_LANES = 8 };

/* Where a set stands: its largest v of those that may move up, the last of them, and
 * the least v of those that may move down. */
typedef struct sti_pair_state {
    double most, least; /* -infinity, +infinity: there is none */
    int64_t first;      /* place of most, or -1 */
} sti_pair_state;

/* The partner of a variable with violation v_first, diagonal d_first and kernel row
 * `row`: of those that may move down and have v < v_first, the one with the largest
 * (v_first - v)^2 / max(d_first + diagonal - 2 row, or 1e-12 where that is <= 0). -1:
 * there is none. gain_out (NULL: not wanted): that quotient. */
int64_t sti_pair_second(int64_t count, double v_first, double d_first, const float *row,
                        const double *diagonal, const double *v, const double *low,
                        double *gain_out);

/* v -= step (row_first - row_second), and where the set stands then; step 0 tells where
 * it stands now. */
sti_pair_state sti_pair_move(int64_t count, double step, const float *row_first,
                             const float *row_second, double *v, const double *up,
                             const double *low);

/* out[j] += factor[t] row[t][j], one fused multiply-add after the other in ascending t,
 * for any count. */
void sti_pair_add(int64_t rows, const float *const *row, const double *factor,
                  int64_t count, double *out);

#endif
