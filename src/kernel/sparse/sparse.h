/* Loops over sparse matrices in compressed rows: triangular solves and products.
 *
 * Every unknown of a triangular system is one chain of fused multiply-adds that begins
 * with its right-hand side and takes the columns as substitution does (ascending
 * forward, descending backward), then one division: s = b_i; s = fma(-a_ij, x_j, s) for
 * each j; x_i = s / a_ii. The lanes of a vector are different rows, or different
 * right-hand sides, and never meet, so all forms have the same bits on every
 * instruction set. A row of a product is one chain likewise, begun at 0, columns
 * ascending.
 *
 * Right-hand sides come in blocks, rows of STI_SPARSE_F64_BLOCK doubles or
 * STI_SPARSE_F32_BLOCK floats. The loops trust their indices. */
#ifndef STI_KERNEL_SPARSE_H
#define STI_KERNEL_SPARSE_H

#include <stdbool.h>
#include <stdint.h>

enum {
    STI_SPARSE_LANES = 8, /* rows of a group */
    STI_SPARSE_F64_BLOCK = 8,
    STI_SPARSE_F32_BLOCK = 16
};

/* A triangle in an order of rows in which each reads only rows before it. Values are
 * negated. A row's entries follow each other in the order of substitution; those of a
 * group of eight rows of one length are interleaved: entry k of row r is at
 * start[first] + 8 k + r, and start[first + r] is start[first] + r * length. Values and
 * diagonal are doubles or floats, as the loop says. */
typedef struct sti_sparse_triangle {
    const int32_t *start;  /* [n + 1] */
    const int32_t *column; /* of this order */
    const void *value;     /* negated */
    const void *diagonal;  /* [n]; NULL: all are 1 */
    const int32_t *place;  /* [n] of the row in b and x */
} sti_sparse_triangle;

/* The triangle of a matrix as it lies: rows ascend and their entries are taken from the
 * left (lower), or all the other way round (upper). count[i] entries of row i are of
 * the triangle, diagonal left out. */
typedef struct sti_sparse_natural {
    int64_t n;
    const int64_t *start;
    const int32_t *column, *count;
    const void *value;
    bool upper, unit; /* unit: the diagonal is 1, whatever is stored */
} sti_sparse_natural;

/* Columns of a triangle that have the same rows below their diagonal block: `width`
 * unknowns from `first` on (downwards for an upper triangle, as below), which `count`
 * rows further on read. Values are negated: first the corner, [width, width] by
 * columns, then tiles of eight rows, [width, 8] each, whose lanes beyond the last row
 * are zeros, then the rows that are in no tile, [rows, width]. A tile is read from its
 * begin to its end, as it is written. */
typedef struct sti_sparse_panel {
    int32_t first, width, count;
    int64_t row;   /* of the first of its rows in `row` */
    int64_t value; /* of its corner */
} sti_sparse_panel;

static inline int64_t sti_sparse_up_to_lanes(int64_t count)
{
    return (count + STI_SPARSE_LANES - 1) / STI_SPARSE_LANES * STI_SPARSE_LANES;
}

/* Rows in tiles: none of one column, nor one or two rows that are left over, nor any
 * that are left over of a narrow panel, whose few sums take less than a tile's lanes.
 */
static inline int32_t sti_sparse_panel_tiled(const sti_sparse_panel *p)
{
    const int32_t left = p->count % STI_SPARSE_LANES;
    if (p->width == 1)
        return 0;
    return left < 3 || p->width < 12 ? p->count - left : p->count;
}

/* Values from the corner to the first tile, which begins at a multiple of eight where
 * the corner does. One column has no corner. */
static inline int64_t sti_sparse_panel_corner(const sti_sparse_panel *p)
{
    const int64_t corner = p->width == 1 ? 0 : (int64_t)p->width * p->width;
    return sti_sparse_panel_tiled(p) > 0 ? sti_sparse_up_to_lanes(corner) : corner;
}

/* All values. */
static inline int64_t sti_sparse_panel_values(const sti_sparse_panel *p)
{
    const int32_t tiled = sti_sparse_panel_tiled(p);
    const int64_t rows = sti_sparse_up_to_lanes(tiled) + p->count - tiled;
    return sti_sparse_panel_corner(p) + p->width * rows;
}

typedef struct sti_sparse_kernels {
    /* Rows [first, end) of a triangle. x_own is x in the triangle's order, x_out at the
     * places of b; both are written. */
    void (*rows)(const sti_sparse_triangle *t, int64_t first, int64_t end,
                 const void *b, void *x_own, void *x_out);
    /* The same for groups of eight: end - first is a multiple of 8. */
    void (*groups)(const sti_sparse_triangle *t, int64_t first, int64_t end,
                   const void *b, void *x_own, void *x_out);
    /* The same for a block of right-hand sides: b and x_out are [n, ld], x_own [n,
     * block]; interleaved: rows are groups of eight. */
    void (*block)(const sti_sparse_triangle *t, int64_t first, int64_t end,
                  bool interleaved, const void *b, int64_t ld, void *x_own,
                  void *x_out);
    /* The whole of a natural triangle, b and x [n]; they may be the same. */
    void (*natural)(const sti_sparse_natural *t, const void *b, void *x);
    /* The same of a block, b and x [n, ld]. */
    void (*natural_block)(const sti_sparse_natural *t, const void *b, int64_t ld,
                          void *x);
    /* The transposed triangle solved by columns: x, which holds b, becomes the answer.
     * `t` says of which triangle the rows are; their columns are taken in the order of
     * its transpose. ld: columns of x, 1 to the block. */
    void (*push)(const sti_sparse_natural *t, void *x, int64_t ld);
    /* Panels one after the other on x, which holds b in the order of substitution.
     * diagonal NULL: all are 1. */
    void (*panels)(int64_t count, const sti_sparse_panel *panel, const int32_t *row,
                   const void *value, const void *diagonal, void *x);
    /* y = A x of rows [first, end). */
    void (*product)(const int64_t *start, const int32_t *column, const void *value,
                    int64_t first, int64_t end, const void *x, void *y);
} sti_sparse_kernels;

/* The loops of doubles and those of floats, for the instruction set in use. */
const sti_sparse_kernels *sti_sparse_f64(void);
const sti_sparse_kernels *sti_sparse_f32(void);

#endif
