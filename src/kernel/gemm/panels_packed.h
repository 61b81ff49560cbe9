/* Products with a matrix that is kept in few bits, read as it lies: y = x W, bound by
 * the packed bytes where one row of x streams through W.
 *
 * W [k, n] lies in panels of 64 columns, as in panels.h, each cut along k into blocks
 * of
 * 32. A block has a scale d (f32, the value of an f16) a column, then
 *
 *     8 bits   [32][64] signed bytes q            W = d q         (GGUF's Q8_0)
 *     4 bits   [16][64] bytes, row i low and row i + 16 high, W = d (q - 8)    (Q4_0)
 *
 *     16 bits  no scale, [32][64] bfloat16        W = q
 *
 * with zeros beyond k and n. Scales are those of Q8_0 and Q4_0, so that a matrix which
 * came from such blocks has its values again. x stays float32: the
 * products of a block are a chain of fused multiply-adds, in ascending k with 8 bits,
 * as 0, 16, 1, 17 ... with 4; blocks are added as d * sum, fused, in ascending order,
 * and a last one that is not whole is added to their sum. With 16 bits all whole blocks
 * are one chain. So the bits are the same for
 * any number of rows, threads and instruction set. */
#ifndef STI_KERNEL_PANELS_PACKED_H
#define STI_KERNEL_PANELS_PACKED_H

#include <stddef.h>
#include <stdint.h>

#include "base/team.h"
#include "kernel/gemm/panels.h"

enum { STI_PACKED_BLOCK = 32 };

typedef struct sti_packed_panels {
    int64_t k, n;
    int bits;      /* 16, 8 or 4 */
    uint8_t *data; /* [sti_packed_panels_bytes], 64-byte aligned is fastest */
} sti_packed_panels;

static inline int64_t sti_packed_blocks(int64_t k)
{
    return (k + STI_PACKED_BLOCK - 1) / STI_PACKED_BLOCK;
}

/* Bytes of a block of a panel. */
static inline size_t sti_packed_block_bytes(int bits)
{
    return STI_PANEL_COLUMNS *
           ((bits < 16 ? sizeof(float) : 0) + (size_t)(STI_PACKED_BLOCK * bits / 8));
}

static inline size_t sti_packed_panels_bytes(int64_t k, int64_t n, int bits)
{
    return (size_t)(sti_panels_count(n) * sti_packed_blocks(k)) *
           sti_packed_block_bytes(bits);
}

/* Rows first .. first + rows of W from src [rows, n]. first is a multiple of 32; so is
 * rows, unless the last ones are among them. */
void sti_packed_pack_rows(const sti_packed_panels *w, int64_t first, int64_t rows,
                          const float *src);
/* Columns first .. first + columns of W from src [columns, k]; first is a multiple of
 * 64, so is columns, unless the last ones are among them. */
void sti_packed_pack_columns(const sti_packed_panels *w, int64_t first, int64_t columns,
                             const float *src);
/* Column j of W into y [k]. */
void sti_packed_column(const sti_packed_panels *w, int64_t j, float *y);

/* y [m, n] = x [m, k] W + bias [n] (or NULL); rows are ldx and ldy floats apart. W is
 * read once for four rows of x. */
void sti_packed_product_f32(const sti_team *team, const sti_packed_panels *w, int64_t m,
                            const float *x, int64_t ldx, const float *bias, float *y,
                            int64_t ldy);

/* ---- private to the kernel room ---- */

enum { STI_PACKED_ROWS = 4 };

/* y [rows][64] of rows of x, which have `blocks` whole blocks, with a panel. rows is 1
 * or STI_PACKED_ROWS. */
typedef struct sti_packed_kernels {
    void (*rows16)(int64_t blocks, int rows, const float *x, int64_t ldx,
                   const uint8_t *panel, float *y);
    void (*rows8)(int64_t blocks, int rows, const float *x, int64_t ldx,
                  const uint8_t *panel, float *y);
    void (*rows4)(int64_t blocks, int rows, const float *x, int64_t ldx,
                  const uint8_t *panel, float *y);
} sti_packed_kernels;

extern const sti_packed_kernels sti_packed_kernels_ref;
#if defined(__x86_64__)
extern const sti_packed_kernels sti_packed_kernels_avx2, sti_packed_kernels_avx512;
#endif

#endif
