/* What is fetched ahead: tiles have a few loads to spare, so each brings a share of
 * what is copied or read next towards the core. None of it changes a result. */
#include "kernel/gemm/gemm_loop_priv.h"

void sti_block_fetch_share(sti_block_piece *s, sti_gemm_tile *t)
{
    sti_block_fetch *f = s->fetch[0].rows > 0 ? &s->fetch[0] : &s->fetch[1];
    int64_t portions = 0;
    const int64_t width = (int64_t)t->nv * STI_PANEL;
    for (int i = 0; i < STI_BLOCK_FETCHES; i++)
        portions += s->fetch[i].rows * sti_gemm_ceil_div(s->fetch[i].cols, width);
    t->next_rows = 0;
    if (portions == 0)
        return;
    const int64_t tiles = s->fetch_tiles > t->lines ? s->fetch_tiles : t->lines;
    const int64_t share = sti_gemm_ceil_div(portions, tiles);
    t->next = f->at;
    t->next_row = f->ld;
    t->next_cols = f->cols;
    t->next_rows = sti_gemm_ceil_div(share, sti_gemm_ceil_div(f->cols, width));
    const int64_t enough = sti_gemm_ceil_div(f->rows, t->next_rows);
    t->lines = t->lines < enough ? t->lines : enough;
    const int64_t rows = t->lines * t->next_rows;
    f->at += rows * f->ld;
    f->rows -= rows < f->rows ? rows : f->rows;
    s->fetch_tiles = tiles - t->lines;
}

void sti_block_fetch_rows(const sti_block_piece *s, const sti_block_pass *pass,
                          int64_t r, int most, sti_gemm_tile *t)
{
    const sti_block_job *job = s->job;
    const int64_t rows = r < s->rows ? sti_gemm_next_rows(s->rows - r, most) : 0;
    t->next = r < s->rows ? sti_block_plain_rows(s, pass, r) : NULL;
    t->next_row = job->lda;
    t->next_rows = job->a_k_major && rows > 0 ? pass->ks : rows;
    t->next_cols = job->a_k_major ? rows : pass->ks;
}

void sti_block_fetch_columns(sti_block_piece *s, const sti_block_pass *pass,
                             const sti_block_panel *panel)
{
    const sti_block_plan *p = s->plan;
    const int64_t next = panel->j0 + panel->cols;
    sti_block_fetch *f = &s->fetch[0];
    *f = (sti_block_fetch){.ld = panel->b_step, .cols = panel->cols};
    if (sti_block_copies_b(p) && next < s->cols)
        f->at = panel->b + panel->cols * pass->ks;
    else if (!sti_block_copies_b(p) && next < s->cols)
        f->at = panel->b + panel->cols;
    else if (!sti_block_copies_b(p) && pass->k0 + pass->ks < s->job->k)
        f->at = sti_block_plain_cols(s, pass, 0) + pass->ks * s->job->ldb;
    f->rows = f->at ? pass->ks : 0;
    s->fetch_tiles = sti_gemm_ceil_div(s->rows, s->kernels->max_rows[panel->nv]);
}

/* The tiles of the columns from a panel on to `end`, without those that fetch rows. */
static int64_t group_tiles(const sti_block_piece *s, const sti_block_panel *panel,
                           int64_t end)
{
    const int64_t panels = sti_gemm_ceil_div(end - panel->j0, panel->b_step);
    return (panels - sti_block_copies_rows(s, panel)) *
           sti_gemm_ceil_div(s->rows, s->kernels->max_rows[panel->nv]);
}

void sti_block_fetch_group(sti_block_piece *s, const sti_block_pass *pass,
                           const sti_block_panel *panel, int64_t end)
{
    const bool kept = s->plan->b == STI_GEMM_B_KEPT;
    const sti_block_job *job = s->job;
    sti_block_pass next = *pass;
    int64_t j = end;
    s->fetch[0].rows = 0;
    if (j == s->cols) {
        j = 0;
        next.k0 += pass->ks;
        next.ks = sti_gemm_min(job->k - next.k0, pass->ks);
    }
    if (job->load_b || next.ks <= 0 || (next.k0 > pass->k0 && kept))
        return;
    const int64_t cols = sti_block_group_cols(s, j);
    s->fetch[0] = (sti_block_fetch){.at = sti_block_plain_cols(s, &next, j),
                                    .ld = job->ldb,
                                    .rows = job->b_columns ? cols : next.ks,
                                    .cols = job->b_columns ? next.ks : cols};
    s->fetch_tiles = group_tiles(s, panel, end);
}

void sti_block_fetch_copied(sti_block_piece *s, const sti_block_pass *pass, int64_t m0,
                            int64_t m1)
{
    const sti_block_plan *p = s->plan;
    const sti_block_job *job = s->job;
    s->fetch[0].rows = s->fetch[1].rows = 0;
    int64_t next = s->m0 + p->block_rows, k0 = pass->k0;
    if (next >= m1) {
        next = m0;
        k0 += pass->ks;
    }
    if (p->path != STI_GEMM_SHORT_PASSES || k0 == job->k)
        return;
    const int64_t ks = sti_gemm_min(job->k - k0, pass->ks);
    s->fetch[0] =
        (sti_block_fetch){.at = job->a + s->item * job->a_item + k0 * job->lda + next,
                          .ld = job->lda,
                          .rows = ks,
                          .cols = sti_gemm_min(p->block_rows, m1 - next)};
    if (k0 > pass->k0)
        s->fetch[1] = (sti_block_fetch){.at = job->b + s->item * job->b_item +
                                              k0 * job->ldb + s->n0,
                                        .ld = job->ldb,
                                        .rows = ks,
                                        .cols = s->cols};
    s->fetch_tiles = sti_gemm_ceil_div(s->rows, STI_GEMM_TILE_ROWS) *
                     sti_gemm_ceil_div(s->cols, STI_GEMM_TILE_COLS);
}
