/* The tiles of a panel of columns: copying the rows of A that they read, and running
 * them. */
#include "kernel/gemm/gemm_loop_priv.h"

/* Where a copy holds the rows from r on. */
static float *copied_rows(const sti_block_piece *s, const sti_block_pass *pass,
                          int64_t r)
{
    const sti_block_plan *p = s->plan;
    if (p->a == STI_GEMM_A_QUADS)
        return s->a + r * sti_gemm_round_up(pass->ks, STI_GEMM_QUAD);
    return s->a + r * (s->job->a_k_major ? pass->ks : p->a_ld);
}

/* Behind each gathered row: whether the tile that it came with holds anything. */
static float *row_holds(const sti_block_piece *s, const sti_block_pass *pass, int64_t r)
{
    return copied_rows(s, pass, r) + s->plan->a_ld - 1;
}

static void load_rows(const sti_block_piece *s, const sti_block_pass *pass, int64_t r,
                      int64_t rows)
{
    const sti_block_job *job = s->job;
    const bool any = job->load_a(job, s->item, s->m0 + r, rows, pass->k0, pass->ks,
                                 copied_rows(s, pass, r), s->plan->a_ld);
    for (int64_t i = r; i < r + rows; i++)
        *row_holds(s, pass, i) = any;
}

/* Whether any row of a tile, which another panel may have cut elsewhere, holds any. */
static bool rows_hold(const sti_block_piece *s, const sti_block_pass *pass, int64_t r,
                      int64_t rows)
{
    bool any = false;
    for (int64_t i = r; i < r + rows; i++)
        any = any || *row_holds(s, pass, i) != 0;
    return any;
}

/* Copy the rows of the tile from row r on. */
static void copy_rows(const sti_block_piece *s, const sti_block_pass *pass, int64_t r,
                      int64_t rows)
{
    const sti_block_job *job = s->job;
    const sti_gemm_kernels *kernels = s->kernels;
    float *dst = copied_rows(s, pass, r);
    if (job->load_a)
        load_rows(s, pass, r, rows);
    else if (job->a_k_major)
        kernels->pack(sti_block_plain_rows(s, pass, r), job->lda, pass->ks, rows, rows,
                      dst);
    else
        kernels->pack_quads(sti_block_plain_rows(s, pass, r), job->lda, pass->ks, rows,
                            dst);
}

/* Steps that were fetched before are copied for all tiles at once: one takes but a part
 * of each line of A. */
static void copy_steps(const sti_block_piece *s, const sti_block_pass *pass, int most)
{
    for (int64_t r = 0, rows; r < s->rows; r += rows) {
        const int64_t left = s->rows - r, high = sti_gemm_next_rows(left, most);
        rows = sti_gemm_equal_tiles(left, most) * high;
        s->kernels->pack(sti_block_plain_rows(s, pass, r), s->job->lda, pass->ks, rows,
                         high, copied_rows(s, pass, r));
    }
}

/* The tile's A: copied ones in rows, or in steps as long as the tile is high. */
static void place_rows(const sti_block_piece *s, const sti_block_pass *pass, int64_t r,
                       sti_gemm_tile *t)
{
    const sti_block_plan *p = s->plan;
    const int64_t lda = s->job->lda;
    t->a_row = sti_block_copies_a(p) ? p->a_ld : lda;
    t->a_step = sti_block_copies_a(p) ? t->rows : lda;
    t->a = sti_block_copies_a(p) ? copied_rows(s, pass, r)
                                 : sti_block_plain_rows(s, pass, r);
    if (p->path == STI_GEMM_STREAM_B) {
        t->a_step = s->job->a_k_major ? lda : 1;
        t->a_row = s->job->a_k_major ? 1 : t->a_row;
    }
    if (p->a == STI_GEMM_A_QUADS)
        t->a_line = t->rows * sti_gemm_round_up(pass->ks, STI_GEMM_QUAD);
    else if (!s->job->a_k_major)
        t->a_line = t->rows * t->a_row;
    else
        t->a_line = sti_block_copies_a(p) ? t->rows * pass->ks : t->rows;
}

/* What all tiles of the panel share. */
static sti_gemm_tile panel_tile(const sti_block_piece *s, const sti_block_pass *pass,
                                const sti_block_panel *panel)
{
    static const int64_t zero_run[1] = {0};
    const sti_block_plan *p = s->plan;
    const sti_block_job *job = s->job;
    const bool part = panel->cols < (int64_t)panel->nv * STI_PANEL;
    sti_gemm_tile t = {
        .b = panel->b,
        .a_run = zero_run,
        .b_step = panel->b_step,
        .runs = 1,
        .run_k = pass->ks,
        .c_row = pass->ldc,
        .cols = panel->cols,
        .nv = panel->nv,
        .b_part = !sti_block_copies_b(p) && part,
        .load = pass->load,
    };
    if (pass->finish) {
        t.relu = job->relu;
        t.bias =
            job->bias ? job->bias + s->item * job->bias_item + s->n0 + panel->j0 : NULL;
    }
    return t;
}

/* How high tiles are: as high as A is packed. Steps that all tiles share are packed
 * here. */
static int panel_rows(sti_block_piece *s, const sti_block_pass *pass,
                      const sti_block_panel *panel)
{
    const sti_block_plan *p = s->plan;
    int most = p->path == STI_GEMM_STREAM_B
                   ? STI_GEMM_STREAM_B_ROWS
                   : sti_gemm_most_rows(s->kernels, panel->nv, panel->cols);
    if (p->a == STI_GEMM_A_QUADS)
        most =
            (int)sti_gemm_min(most, STI_GEMM_TILE_ROWS); /* even those of one panel */
    if (panel->copy_rows && p->a == STI_GEMM_A_BY_BLOCK)
        copy_steps(s, pass, most);
    if (panel->copy_rows)
        s->a_most = most;
    else if (sti_block_copies_a(p) && p->a != STI_GEMM_A_GATHERED)
        most = s->a_most;
    return most;
}

static void run_tiles(const sti_block_piece *s, const sti_gemm_tile *t)
{
    const sti_block_plan *p = s->plan;
    if (p->path == STI_GEMM_STREAM_B && s->job->b_columns)
        s->kernels->stream_b_columns(t);
    else if (p->path == STI_GEMM_STREAM_B)
        s->kernels->stream_b(t);
    else if (p->a == STI_GEMM_A_QUADS)
        s->kernels->quads(t);
    else if (s->job->a_k_major)
        s->kernels->tn(t);
    else
        s->kernels->nn(t);
}

/* (Tiles are over before they could fetch anything.) */
void sti_block_along_rows(sti_block_piece *s, const sti_block_pass *pass,
                          const sti_block_panel *panel)
{
    const sti_block_plan *p = s->plan;
    sti_gemm_tile t = panel_tile(s, pass, panel);
    const int most = panel_rows(s, pass, panel);
    for (int64_t r = 0; r < s->rows; r += t.rows) {
        t.rows = sti_gemm_next_rows(s->rows - r, most);
        place_rows(s, pass, r, &t);
        t.lines = panel->count;
        t.a_line = 0;
        t.b_line = panel->cols * (sti_block_copies_b(p) ? pass->ks : 1);
        t.c_line = panel->cols;
        t.c = pass->c + r * pass->ldc + panel->j0;
        if (panel->copy_rows && p->a == STI_GEMM_A_QUADS)
            copy_rows(s, pass, r, t.rows);
        run_tiles(s, &t);
    }
}

/* Lines of sixteen rows, which are the lanes; the last rows go the usual way. */
static int64_t lanes_tiles(const sti_block_piece *s, const sti_block_pass *pass,
                           const sti_block_panel *panel, sti_gemm_tile *t)
{
    t->rows = STI_GEMM_LANES_ROWS;
    t->lines = s->rows / STI_GEMM_LANES_ROWS;
    if (t->lines == 0)
        return 0;
    place_rows(s, pass, 0, t);
    t->c = pass->c + panel->j0;
    s->job->a_k_major ? s->kernels->rows_as_lanes_k_major(t)
                      : s->kernels->rows_as_lanes(t);
    return t->lines * STI_GEMM_LANES_ROWS;
}

/* One line of tiles from row r on, which reads its rows of A after copying them. */
static void line_tiles(sti_block_piece *s, const sti_block_pass *pass,
                       const sti_block_panel *panel, int64_t r, int most,
                       sti_gemm_tile *t)
{
    const bool gathered = s->plan->a == STI_GEMM_A_GATHERED;
    const bool copies = sti_block_copies_rows(s, panel), alone = gathered || copies;
    t->rows = sti_gemm_next_rows(s->rows - r, most);
    t->lines = alone ? 1 : sti_gemm_equal_tiles(s->rows - r, most);
    if (copies)
        sti_block_fetch_rows(s, pass, r + t->rows, most, t);
    else
        sti_block_fetch_share(s, t);
    place_rows(s, pass, r, t);
    t->c_line = t->rows * pass->ldc;
    t->c = pass->c + r * pass->ldc + panel->j0;
    t->c_next = r + t->lines * t->rows < s->rows ? t->c + t->lines * t->c_line
                                                 : pass->c + panel->j0 + panel->cols;
    if (panel->copy_rows && alone)
        copy_rows(s, pass, r, t->rows);
    if (gathered &&
        s->plan->path != STI_GEMM_STREAM_B) /* which takes a step at least */
        t->run_k = rows_hold(s, pass, r, t->rows) ? pass->ks : 0;
    run_tiles(s, t);
}

void sti_block_panel_tiles(sti_block_piece *s, const sti_block_pass *pass,
                           const sti_block_panel *panel)
{
    sti_gemm_tile t = panel_tile(s, pass, panel);
    const int most = panel_rows(s, pass, panel);
    int64_t r = 0;
    if (s->plan->path == STI_GEMM_ROWS_AS_LANES)
        r = lanes_tiles(s, pass, panel, &t);
    for (; r < s->rows; r += t.lines * t.rows)
        line_tiles(s, pass, panel, r, most, &t);
}
