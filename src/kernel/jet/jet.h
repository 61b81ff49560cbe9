/* Truncated Taylor series ("jets") of many values side by side, in several variables.
 *
 * A series in d variables to total order K has N = C(K + d, d) coefficients
 * u_a = (d^|a| u / dx^a) / a!, sorted by total degree and within one as u_xx, u_xy,
 * u_yy. Arrays are [rows, n]: coefficient after coefficient, n values each. An operand
 * may have fewer rows than N, those of a lower degree: the rest are zero, and are not
 * multiplied. Results have N rows.
 *
 * In the place of an order STI_JET_LAPLACIAN keeps d + 2 rows: the value, the first
 * derivatives, and one row for the sum of the coefficients u_xx, u_yy, ..., half of the
 * Laplacian, which is closed under sums, products and functions.
 *
 * The recurrences are those of Griewank and Walther, "Evaluating Derivatives" (2008),
 * chapter 13, along the first variable that a multi-index has. Each value's sums run in
 * one order, so instruction sets and threads give the same bits. */
#ifndef STI_KERNEL_JET_H
#define STI_KERNEL_JET_H

#include <stdbool.h>
#include <stdint.h>

#include "base/team.h"
#include "stint/status.h"

enum {
    STI_JET_VARIABLES = 4,
    STI_JET_ORDER = 10,
    STI_JET_LAPLACIAN = 11, /* in the place of an order: see below */
    STI_JET_ROWS = 256,     /* most coefficients of a value */
    STI_JET_PAIRS = 8192    /* most products of a table */
};

typedef enum sti_jet_kind {
    STI_JET_SIN,
    STI_JET_COS,
    STI_JET_EXP,
    STI_JET_LOG,
    STI_JET_TANH,
    STI_JET_SIGMOID,
    STI_JET_SOFTPLUS,
    STI_JET_SILU,
    STI_JET_GELU, /* the tanh form */
    STI_JET_SQRT,
    STI_JET_RECIPROCAL,
    STI_JET_SQUARE,
    STI_JET_RELU,
    STI_JET_KINDS
} sti_jet_kind;

/* Coefficients of a series in d variables to order K; 0: out of the bounds above. */
int sti_jet_rows(int variables, int order);

/* A product of rows left and right that counts for an output, and its share b_k / a_k
 * in a derivative along the output's first variable k; 0: none. */
typedef struct sti_jet_pair {
    int16_t left, right;
    float share;
} sti_jet_pair;

/* The multi-indices of a series and what is multiplied. */
typedef struct sti_jet_table {
    int variables, order, rows;
    int8_t index[STI_JET_ROWS][STI_JET_VARIABLES];
    float factorial[STI_JET_ROWS];   /* a!: what a coefficient is a derivative by */
    int16_t begin[STI_JET_ROWS + 1]; /* pairs of row a: begin[a] .. begin[a + 1] - 1, by
                                        rising left: (0, a) first and (a, 0) last */
    sti_jet_pair pair[STI_JET_PAIRS];
} sti_jet_table;

/* The table, made once and kept for the process; NULL after STINT_E_MEMORY. Rows of the
 * bounds above. Threads may call it at once. */
const sti_jet_table *sti_jet_table_of(int variables, int order);
/* Row of a multi-index [variables]; -1: beyond the order. Not of a Laplacian. */
int sti_jet_row(const sti_jet_table *table, const int *index);

/* y [rows of the table, n] = f(factor (x + bias)): x [x_rows, n]; bias [width] (or
 * NULL) belongs to the values' last axis and to coefficient 0 alone. y must not overlap
 * x. */
typedef struct sti_jet_call {
    const sti_jet_table *table;
    sti_jet_kind kind;
    int x_rows;
    int64_t n, width;
    float factor;
} sti_jet_call;
void sti_jet_unary_f32(const sti_team *team, const sti_jet_call *call, const float *x,
                       const float *bias, float *y);

/* z [rows, n] = the series of the product of a [a_rows, n] and b [b_rows, n]. */
void sti_jet_mul_f32(const sti_team *team, const sti_jet_table *table, int64_t n,
                     int a_rows, const float *a, int b_rows, const float *b, float *z);
/* The gradient of a sum over z that has the gradient dz [rows, n], with respect to a:
 * da [a_rows, n]. By b alike, since products commute. da must not overlap the rest. */
void sti_jet_mul_grad_f32(const sti_team *team, const sti_jet_table *table, int64_t n,
                          const float *dz, int b_rows, const float *b, int a_rows,
                          float *da);

#endif
