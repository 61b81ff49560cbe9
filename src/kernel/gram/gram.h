/* Tiles of a kernel matrix in double, or in float: k(u, v) for some rows u against some
 * rows v, and the product of such a tile with vectors. The same bits on every
 * instruction set.
 *
 *     linear       u.v
 *     polynomial   (gamma u.v + coef0)^degree, by repeated squaring
 *     rbf          exp(-gamma |u - v|^2), |u - v|^2 = max(0, u.u + v.v - 2 u.v)
 *     sigmoid      tanh(gamma u.v + coef0)
 *     precomputed  the value in column `number of v` of u; column 0 holds a row's
 * number laplacian    exp(-gamma sum |u_c - v_c|) chi_squared  exp(-gamma sum (u_c -
 * v_c)^2 / (u_c + v_c)), terms of 0 and 0 are 0
 *
 * u.v is one chain of fused multiply-adds in ascending order of the column, whatever
 * the blocking. A zero adds nothing to such a chain, so rows given without their zeros
 * (base/csr.h) have the bits of those with them. Sums of laplacian and chi_squared run
 * in ascending order, too; those of sparse rows begin at the sum of u alone and put
 * right what the entries of v change, so their bits are others than of dense rows. All
 * calls are pure loops over their operands: no allocation, no failure, any threads at
 * once on different outputs. */
#ifndef STI_KERNEL_GRAM_H
#define STI_KERNEL_GRAM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/csr.h"

/* The most rows and columns of a tile. */
enum { STI_GRAM_TILE = 256 };
#define STI_GRAM_TILE_BYTES (sizeof(double) * STI_GRAM_TILE * STI_GRAM_TILE)

/* The first five have LIBSVM's numbers. */
typedef enum sti_gram_kind {
    STI_GRAM_LINEAR,
    STI_GRAM_POLYNOMIAL,
    STI_GRAM_RBF,
    STI_GRAM_SIGMOID,
    STI_GRAM_PRECOMPUTED,
    STI_GRAM_LAPLACIAN,
    STI_GRAM_CHI_SQUARED, /* of entries >= 0 */
    STI_GRAM_KINDS
} sti_gram_kind;

typedef struct sti_gram_function {
    sti_gram_kind kind;
    double gamma, coef0;
    int64_t degree; /* at least 0 */
} sti_gram_function;

/* Values of a kernel matrix that somebody keeps, for rows that are some of its own. */
typedef struct sti_gram_kept sti_gram_kept;
struct sti_gram_kept {
    /* Fills tile_out [u_count, ld] with the values of rows u against rows v, which are
     * numbers in the matrix, at most STI_GRAM_TILE each. False: not all of them are
     * there, and what the tile holds is of no use. Threads may call it at once. */
    bool (*read)(const sti_gram_kept *kept, const int64_t *u, int64_t u_count,
                 const int64_t *v, int64_t v_count, void *tile_out, int64_t ld);
    bool single; /* values and tile_out are floats, else doubles */
    bool whole;  /* every value is there */
};

/* Rows of a problem. */
typedef struct sti_gram_rows {
    int64_t rows, columns;
    const double *dense; /* [rows, columns], or NULL: sparse */
    sti_csr sparse;      /* columns below `columns` */
    const double *term;  /* [rows] of sti_gram_terms */
    /* Tiles of two sides with the same one are read where that is possible. */
    const sti_gram_kept *kept; /* or NULL */
    const int64_t *number;     /* [rows] in the matrix that is kept */
} sti_gram_rows;

/* Bytes of scratch of sti_gram_tile and sti_gram_tile_f32; it is zeroed before the
 * first call and every call leaves it fit for the next. */
size_t sti_gram_scratch_bytes(const sti_gram_rows *rows);

/* What a row brings of its own: u.u in the order of the products; of laplacian and
 * chi_squared the sum of |u_c|; of precomputed the row's number. term_out [rows]. */
void sti_gram_terms(const sti_gram_function *function, const sti_gram_rows *rows,
                    double *term_out);

/* k(u_i, v_j) for rows i of u from u_begin, u_count of them, and of v likewise, at most
 * STI_GRAM_TILE each; both are dense, or both sparse, of as many columns. tile_out
 * [u_count, ld]: a row's first v_count entries are written. Precomputed: of v only the
 * terms are read, which are whole numbers from 1 to columns - 1 of u. */
void sti_gram_tile(const sti_gram_function *function, const sti_gram_rows *u,
                   int64_t u_begin, int64_t u_count, const sti_gram_rows *v,
                   int64_t v_begin, int64_t v_count, double *tile_out, int64_t ld,
                   void *scratch);

/* The same in float, for rows in double. Products of dense rows are sums in float, in
 * the same order, of operands rounded to float, and so is what is made of them; values
 * of other kinds and of sparse rows are those of sti_gram_tile, rounded. */
void sti_gram_tile_f32(const sti_gram_function *function, const sti_gram_rows *u,
                       int64_t u_begin, int64_t u_count, const sti_gram_rows *v,
                       int64_t v_begin, int64_t v_count, float *tile_out, int64_t ld,
                       void *scratch);

/* k(u_i, u_i) of rows from u_begin on, as a tile has them. */
void sti_gram_diagonal(const sti_gram_function *function, const sti_gram_rows *u,
                       int64_t u_begin, int64_t u_count, double *diagonal_out);

/* A tile [u_count, ld] times `columns` vectors x [v_count] into y_out [u_count], and,
 * where down is not NULL, the tile's transpose times across [u_count] added to down
 * [v_count]. Sums of y run in eight lanes along a row. A vector's bits do not depend on
 * those beside it. */
void sti_gram_apply(const double *tile, int64_t ld, int64_t u_count, int64_t v_count,
                    int64_t columns, const double *const *x, double *const *y_out,
                    const double *const *across, double *const *down);

/* The same for a tile of floats, each widened to double first: sums are in double. */
void sti_gram_apply_f32(const float *tile, int64_t ld, int64_t u_count, int64_t v_count,
                        int64_t columns, const double *const *x, double *const *y_out,
                        const double *const *across, double *const *down);

/* Sum of a[i] b[i] in eight lanes, joined as a tree. */
double sti_gram_dot(int64_t count, const double *a, const double *b);
/* y[i] += factor x[i]. */
void sti_gram_axpy(int64_t count, double factor, const double *x, double *y);
/* y[i] = factor x[i] + scale y[i], of which the second product is rounded. */
void sti_gram_axpby(int64_t count, double factor, const double *x, double scale,
                    double *y);
/* y[i] = x[i] + factor y[i]. */
void sti_gram_xpay(int64_t count, const double *x, double factor, double *y);
/* y[i] += a[i] b[i], which may be one. */
void sti_gram_add_products(int64_t count, const double *a, const double *b, double *y);

#endif
