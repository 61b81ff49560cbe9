/* One table of serial loops an instruction set; jet.c cuts work into pieces and finds
 * the values at coefficient 0. */
#ifndef STI_KERNEL_JET_PRIV_H
#define STI_KERNEL_JET_PRIV_H

#include "kernel/jet/jet.h"

enum { STI_JET_BLOCK = 64 }; /* values a call of a loop, at most */

/* A block of up to STI_JET_BLOCK values. f0: f of coefficient 0; g0: the second
 * function that a recurrence runs with (the cosine of a sine, the sigmoid of a
 * softplus). */
typedef struct sti_jet_block {
    const sti_jet_table *table;
    int x_rows;
    int64_t n, stride; /* values here; from one row to the next, of x and y */
    float factor;
    const float *x, *u0, *f0,
        *g0; /* x: rows from 1 are read; u0 [n] in place of row 0 */
    float *y;
} sti_jet_block;

typedef void sti_jet_loop(const sti_jet_block *block);

/* The product's block; of its gradient a is dz, of all rows, and z is da [a_rows]. */
typedef struct sti_jet_product {
    const sti_jet_table *table;
    int a_rows, b_rows;
    int64_t n, stride;
    const float *a, *b;
    float *z;
} sti_jet_product;

typedef struct sti_jet_kernels {
    sti_jet_loop *unary[STI_JET_KINDS];
    void (*mul)(const sti_jet_product *product);
    void (*mul_grad)(const sti_jet_product *product);
} sti_jet_kernels;

extern const sti_jet_kernels sti_jet_kernels_ref, sti_jet_kernels_avx2,
    sti_jet_kernels_avx512;

#endif
