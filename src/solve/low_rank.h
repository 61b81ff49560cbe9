/* A preconditioner for K + D: K positive semidefinite and known by its columns, D
 * diagonal and positive. K is replaced by F F^T of low rank, a Cholesky factor in which
 * pivots are drawn with probabilities proportional to what is left of the diagonal
 * (randomly pivoted Cholesky, Chen, Epperly, Tropp and Webber 2022, in blocks with
 * rejection, Epperly, Tropp and Webber 2024), and (F F^T + D)^-1 is applied by the
 * formula of Woodbury. What is drawn is a function of the problem alone. */
#ifndef STI_SOLVE_LOW_RANK_H
#define STI_SOLVE_LOW_RANK_H

#include <stddef.h>
#include <stdint.h>

#include "base/team.h"
#include "stint/status.h"

/* Pivots that are drawn at a time, and columns that are asked for. */
enum { STI_LOW_RANK_BLOCK = 32 };

/* The next pivots [count <= STI_LOW_RANK_BLOCK], before columns of them are asked for.
 * Called by one thread. A failure ends the making. */
typedef stint_status sti_low_rank_pivots_fn(void *arg, int64_t count,
                                            const int64_t *pivot);
/* Rows [begin, begin + rows) of the columns of K at those pivots: out [rows, ld].
 * Called by several threads at once, each with its worker. */
typedef void sti_low_rank_columns_fn(void *arg, int64_t begin, int64_t rows,
                                     double *out, int64_t ld, int worker);

typedef struct sti_low_rank_desc {
    int64_t n;
    int64_t rank;           /* at most; 1 to n */
    const double *diagonal; /* [n] of K */
    const double *ridge;    /* [n] D; borrowed for as long as it is applied */
    sti_low_rank_pivots_fn *pivots;
    sti_low_rank_columns_fn *columns;
    void *arg;
} sti_low_rank_desc;

typedef struct sti_low_rank sti_low_rank;

/* The rank that pays for n points: some square roots of n, more of them the larger
 * `ratio`, the mean of K's diagonal over D's. A multiple of the block, or n. */
int64_t sti_low_rank_choose(int64_t n, double ratio);

/* Bytes for at most n rows and so many columns that it is applied to at once. */
size_t sti_low_rank_bytes(int64_t n, int64_t rank, int64_t columns, int threads);
/* Room for that. STINT_E_MEMORY. */
stint_status sti_low_rank_create(int64_t n, int64_t rank, int64_t columns, int threads,
                                 sti_low_rank **low_rank_out);
void sti_low_rank_destroy(sti_low_rank *low_rank); /* NULL is fine */

/* Make the factor of a problem, whose n and rank are at most those of the room. The
 * team has at most as many threads and is kept for the applications. */
stint_status sti_low_rank_make(sti_low_rank *low_rank, const sti_team *team,
                               const sti_low_rank_desc *desc);
/* The rank that it has: less than asked for where nothing is left of the diagonal. */
int64_t sti_low_rank_rank(const sti_low_rank *low_rank);

/* A sti_krylov_product_fn: y[c] = (F F^T + D)^-1 x[c]; arg is the low rank. */
stint_status sti_low_rank_apply(void *arg, int64_t count, const double *const *x,
                                double *const *y);

#endif
