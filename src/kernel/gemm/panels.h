/* Products with a matrix that serves many times, packed once so that a pass over it is
 * one ascending stream of memory: y = x W for one row x (a step of text generation) at
 * the speed at which W can be read, and for a few rows at that of the register tiles.
 *
 * W [k, n] lies in panels of 64 columns, [panel][k][64], zero beyond n. The order of
 * every sum is that of gemm.h, so the bits are those of sti_gemm_f32 for any number of
 * rows, instruction set and thread count. */
#ifndef STI_KERNEL_PANELS_H
#define STI_KERNEL_PANELS_H

#include <stddef.h>
#include <stdint.h>

#include "base/team.h"

enum { STI_PANEL_COLUMNS = 64 };

typedef struct sti_panels {
    int64_t k, n;
    float *data; /* sti_panels_floats(k, n); 64-byte aligned is fastest */
} sti_panels;

static inline int64_t sti_panels_count(int64_t n)
{
    return (n + STI_PANEL_COLUMNS - 1) / STI_PANEL_COLUMNS;
}

static inline int64_t sti_panels_floats(int64_t k, int64_t n)
{
    return sti_panels_count(n) * STI_PANEL_COLUMNS * k;
}

/* Rows first .. first + rows of W from src [rows, n]. */
void sti_panels_pack_rows(const sti_panels *w, int64_t first, int64_t rows,
                          const float *src);
/* Columns first .. first + columns of W from src [columns, k]. first is a multiple of
 * 64; so is columns, unless the last ones are among them. */
void sti_panels_pack_columns(const sti_panels *w, int64_t first, int64_t columns,
                             const float *src);
/* Column j of W into y [k]: a row of a table of embeddings. */
void sti_panels_column(const sti_panels *w, int64_t j, float *y);

/* y [m, n] = x [m, k] W + bias [n] (or NULL); rows of x and y are ldx and ldy floats
 * apart. y overlaps nothing. k <= 2^23. 2 m n k flop, W is read once a 14 rows. */
void sti_panels_product_f32(const sti_team *team, const sti_panels *w, int64_t m,
                            const float *x, int64_t ldx, const float *bias, float *y,
                            int64_t ldy);

#endif
