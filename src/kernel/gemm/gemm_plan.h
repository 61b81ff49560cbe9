/* The plan of a blocked product: how it is cut into pieces and blocks, what is copied,
 * and how much scratch that takes. It is made in one place, sti_block_plan_make of
 * gemm_plan.c, from the job's shape, the number of threads and the machine; the size
 * query reads its scratch_bytes and the loops of gemm_loop.c read the rest, so that the
 * two cannot differ. A plan is a plain value without pointers. It never changes a bit
 * of the result, only the time. Private to the kernel room. */
#ifndef STI_KERNEL_GEMM_PLAN_H
#define STI_KERNEL_GEMM_PLAN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The order of loops of a product. Each begins with what it is for. */
typedef enum sti_gemm_path {
    /* Products so small that planning would be felt: one call of the tiles on A and B
     * as they lie; a B in columns is transposed whole into scratch. */
    STI_GEMM_SMALL,
    /* Short k and few columns, so that copies would cost more than they save: BRGEMM
     * on A and B as they lie, some rows at a time. No scratch. */
    STI_GEMM_IN_PLACE,
    /* At most six rows, which make so little of an element of B that only the flow of
     * memory counts: B streams past them, whole rows of it at a time, uncopied. */
    STI_GEMM_STREAM_B,
    /* At most twelve columns, which would leave lanes of a vector idle: rows are the
     * lanes. A is read as it lies. */
    STI_GEMM_ROWS_AS_LANES,
    /* Short k and a C that is but written, and is most of what moves: tiles follow each
     * other along rows of C, over all panels of columns. */
    STI_GEMM_ALONG_ROWS,
    /* An A in steps of k, at least twice as high as C is wide, and a C that stays in
     * the second-level cache: passes over few steps, in which all of B's and a block of
     * A's are copied while the tiles before them fetch the lines of the next ones. */
    STI_GEMM_SHORT_PASSES,
    /* Everything else: for each panel of columns, tiles down the rows of a block. */
    STI_GEMM_BY_PANELS
} sti_gemm_path;

/* How A reaches the tiles. */
typedef enum sti_gemm_a {
    STI_GEMM_A_IN_PLACE, /* as it lies in memory */
    STI_GEMM_A_GATHERED, /* rows that the job's load_a fills, a tile's at a time */
    STI_GEMM_A_QUADS,    /* rows copied in quads of k, a tile's just before it runs */
    STI_GEMM_A_BY_TILE,  /* steps copied to the tile's height, just before it runs */
    STI_GEMM_A_BY_BLOCK  /* the same for all tiles of a block at once */
} sti_gemm_a;

/* How B reaches the tiles. */
typedef enum sti_gemm_b {
    STI_GEMM_B_IN_PLACE, /* as it lies in memory */
    STI_GEMM_B_BY_PANEL, /* packed, so few steps of a panel that the first-level cache
                          * holds them until the panel's last tile */
    STI_GEMM_B_BY_GROUP, /* packed, a group of panels just before its first tile */
    STI_GEMM_B_KEPT      /* packed by the first block of rows, kept for the others */
} sti_gemm_b;

enum {
    STI_GEMM_TILE_ROWS = 14,     /* the tiles that whole blocks are made of: rows, */
    STI_GEMM_TILE_COLS = 32,     /* columns */
    STI_GEMM_IN_PLACE_ROWS = 252 /* rows at a time of a product in place */
};

typedef struct sti_block_plan {
    sti_gemm_path path;
    sti_gemm_a a;
    sti_gemm_b b;
    bool wide; /* whole tiles have three panels, nine rows */
    int threads;
    /* The grid of pieces that an item is cut into; a thread takes whole pieces. */
    int64_t row_parts, col_parts, part_rows, part_cols;
    /* Steps of the loops within a piece, and columns of B that are packed together. */
    int64_t block_rows, block_cols, block_k, group_cols;
    int64_t chunks;       /* of 4096 k, whose sums join in a tree */
    int levels;           /* blocks of partial sums held at once; 0: sums wait in C */
    int64_t a_ld;         /* floats between gathered rows */
    size_t a_floats;      /* Scratch of a thread: copies of A, */
    size_t b_floats;      /* of B, */
    size_t c_floats;      /* a block of partial sums, `levels` times, */
    size_t worker_floats; /* all of them. */
    size_t scratch_bytes; /* of the call, whatever the scratch's alignment */
} sti_block_plan;

/* Whole numbers of a plan: parts of a length, rounded up; a multiple; the smaller. */
static inline int64_t sti_gemm_ceil_div(int64_t a, int64_t b)
{
    return (a + b - 1) / b;
}

static inline int64_t sti_gemm_round_up(int64_t a, int64_t to)
{
    return sti_gemm_ceil_div(a, to) * to;
}

static inline int64_t sti_gemm_min(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

#endif
