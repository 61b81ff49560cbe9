/* Tiles of a kernel matrix in double: k(u, v) for some rows u against some rows v, and
 * the product of such a tile with vectors. The same bits on every instruction set.
 *
 *     linear      u.v
 *     polynomial  (gamma u.v + coef0)^degree, by repeated squaring
 *     rbf         exp(-gamma |u - v|^2), |u - v|^2 = max(0, u.u + v.v - 2 u.v)
 *     sigmoid     tanh(gamma u.v + coef0)
 *
 * u.v is one chain of fused multiply-adds in ascending order of the column, whatever
 * the blocking. A zero adds nothing to such a chain, so rows given without their zeros
 * (base/csr.h) have the bits of those with them. All calls are pure loops over their
 * operands: no allocation, no failure, any threads at once on different outputs. */
#ifndef STI_KERNEL_GRAM_H
#define STI_KERNEL_GRAM_H

#include <stddef.h>
#include <stdint.h>

#include "base/csr.h"

/* The most rows and columns of a tile. */
enum { STI_GRAM_TILE = 256 };
#define STI_GRAM_TILE_BYTES (sizeof(double) * STI_GRAM_TILE * STI_GRAM_TILE)

typedef enum sti_gram_kind {
    STI_GRAM_LINEAR,
    STI_GRAM_POLYNOMIAL,
    STI_GRAM_RBF,
    STI_GRAM_SIGMOID,
    STI_GRAM_KINDS
} sti_gram_kind;

typedef struct sti_gram_function {
    sti_gram_kind kind;
    double gamma, coef0;
    int64_t degree; /* at least 0 */
} sti_gram_function;

/* Rows of a problem. */
typedef struct sti_gram_rows {
    int64_t rows, columns;
    const double *dense;  /* [rows, columns], or NULL: sparse */
    sti_csr sparse;       /* columns below `columns` */
    const double *square; /* [rows], u.u */
} sti_gram_rows;

/* Bytes of scratch of sti_gram_tile; it is zeroed before the first call and every call
 * leaves it fit for the next. */
size_t sti_gram_scratch_bytes(const sti_gram_rows *rows);

/* u.u of every row, in the order of the products. square_out [rows]. */
void sti_gram_squares(const sti_gram_rows *rows, double *square_out);

/* k(u_i, v_j) for rows i of u from u_begin, u_count of them, and of v likewise, at most
 * STI_GRAM_TILE each; both are dense, or both sparse, of as many columns. tile_out
 * [u_count, STI_GRAM_TILE]: a row's first v_count entries are written. */
void sti_gram_tile(const sti_gram_function *function, const sti_gram_rows *u,
                   int64_t u_begin, int64_t u_count, const sti_gram_rows *v,
                   int64_t v_begin, int64_t v_count, double *tile_out, void *scratch);

/* A tile [u_count, STI_GRAM_TILE] times x [v_count] into y_out [u_count], and, where
 * down is not NULL, the tile's transpose times across [u_count] added to down
 * [v_count]. Sums of y run in eight lanes along a row. */
void sti_gram_apply(const double *tile, int64_t u_count, int64_t v_count,
                    const double *x, double *y_out, const double *across, double *down);

/* Sum of a[i] b[i] in eight lanes, joined as a tree. */
double sti_gram_dot(int64_t count, const double *a, const double *b);

#endif
