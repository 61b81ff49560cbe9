/* What the loops of the blocked product share: where a piece stands, and the parts of
 * it that are files of their own: gemm_width.c cuts columns into panels,
 * gemm_prefetch.c chooses what tiles fetch ahead, gemm_panel.c copies rows and runs
 * tiles, gemm_loop.c walks over blocks and passes. Private to the blocked product. */
#ifndef STI_KERNEL_GEMM_LOOP_PRIV_H
#define STI_KERNEL_GEMM_LOOP_PRIV_H

#include "kernel/gemm/gemm_block.h"

/* What will be copied once the tiles under way are done, and is fetched meanwhile. */
typedef struct sti_block_fetch {
    const float *at;
    int64_t ld, rows, cols;
} sti_block_fetch;

enum { STI_BLOCK_FETCHES = 2 };

/* One piece: where it stands and what it holds. */
typedef struct sti_block_piece {
    const sti_block_plan *plan;
    const sti_block_job *job;
    const sti_gemm_kernels *kernels;
    int64_t item, m0, rows, n0, cols;
    float *a, *b, *partial;
    int a_most; /* rows of a tile by which a is packed */
    sti_block_fetch fetch[STI_BLOCK_FETCHES];
    int64_t fetch_tiles; /* tiles that are left to fetch it */
} sti_block_piece;

/* What one pass over a range of k does to a block: where the sums live, whether they
 * start from what is there, and whether this is the last pass. */
typedef struct sti_block_pass {
    float *c;
    int64_t ldc;
    bool load, finish;
    bool packed; /* all columns, by a block of rows before this */
    int64_t k0, ks;
} sti_block_pass;

/* Columns of B as the tiles read them. */
typedef struct sti_block_panel {
    const float *b;
    int64_t b_step, j0, cols;
    int nv;
    int64_t count;  /* panels side by side, where tiles go along rows of C */
    bool copy_rows; /* of A, for the tiles of this panel and those after it */
} sti_block_panel;

static inline bool sti_block_copies_a(const sti_block_plan *p)
{
    return p->a != STI_GEMM_A_IN_PLACE;
}

static inline bool sti_block_copies_b(const sti_block_plan *p)
{
    return p->b != STI_GEMM_B_IN_PLACE;
}

/* Rows r.. of the block in A itself. */
static inline const float *sti_block_plain_rows(const sti_block_piece *s,
                                                const sti_block_pass *pass, int64_t r)
{
    const sti_block_job *job = s->job;
    const float *item = job->a + s->item * job->a_item;
    return job->a_k_major ? item + pass->k0 * job->lda + s->m0 + r
                          : item + (s->m0 + r) * job->lda + pass->k0;
}

/* Columns from j on in B itself. */
static inline const float *sti_block_plain_cols(const sti_block_piece *s,
                                                const sti_block_pass *pass, int64_t j)
{
    const sti_block_job *job = s->job;
    const float *item = job->b + s->item * job->b_item;
    return job->b_columns ? item + (s->n0 + j) * job->ldb + pass->k0
                          : item + pass->k0 * job->ldb + s->n0 + j;
}

/* Whether tiles copy their rows of A, each its own just before it runs. */
static inline bool sti_block_copies_rows(const sti_block_piece *s,
                                         const sti_block_panel *panel)
{
    const sti_gemm_a a = s->plan->a;
    return panel->copy_rows && (a == STI_GEMM_A_QUADS || a == STI_GEMM_A_BY_TILE);
}

/* ---- gemm_width.c ---- */

/* The columns of a panel that begins so far before the end; *nv_out: how many vectors'
 * panels it takes side by side. */
int64_t sti_block_panel_cols(const sti_block_piece *s, int64_t left, int *nv_out);

/* Columns from j on that are packed together: panels of one width. */
int64_t sti_block_group_cols(const sti_block_piece *s, int64_t j);

/* How many panels from column j on to `end` are as wide as the first one. */
int64_t sti_block_equal_panels(const sti_block_piece *s, int64_t j, int64_t end);

/* ---- gemm_prefetch.c: each sets what the tiles after it fetch ahead ---- */

/* The columns of B after a panel: as they lie, or packed by an earlier block of rows.
 */
void sti_block_fetch_columns(sti_block_piece *s, const sti_block_pass *pass,
                             const sti_block_panel *panel);

/* What is packed after the group of columns that begins with a panel and ends before
 * `end`: the next group, or the first of the next pass. */
void sti_block_fetch_group(sti_block_piece *s, const sti_block_pass *pass,
                           const sti_block_panel *panel, int64_t end);

/* Short passes: what the next block of rows copies of A, or the next pass of A and B.
 * The piece has rows m0 .. m1. */
void sti_block_fetch_copied(sti_block_piece *s, const sti_block_pass *pass, int64_t m0,
                            int64_t m1);

/* The share of a line of tiles in that; t->lines may become less. */
void sti_block_fetch_share(sti_block_piece *s, sti_gemm_tile *t);

/* A tile that copied its rows fetches those of the next one, which begins with r. */
void sti_block_fetch_rows(const sti_block_piece *s, const sti_block_pass *pass,
                          int64_t r, int most, sti_gemm_tile *t);

/* ---- gemm_panel.c ---- */

/* All tiles of a panel, down the rows of the block. */
void sti_block_panel_tiles(sti_block_piece *s, const sti_block_pass *pass,
                           const sti_block_panel *panel);

/* All tiles of panel->count panels, along the rows of C. */
void sti_block_along_rows(sti_block_piece *s, const sti_block_pass *pass,
                          const sti_block_panel *panel);

#endif
