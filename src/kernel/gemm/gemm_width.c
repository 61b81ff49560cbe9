/* Columns of a block cut into panels: as wide as the tiles that suit its rows. */
#include "kernel/gemm/gemm_loop_priv.h"

/* Panels side by side for so many columns. */
static int panels_wide(const sti_block_piece *s, int64_t cols)
{
    const sti_block_plan *p = s->plan;
    const sti_gemm_kernels *kernels = s->kernels;
    if (p->wide)
        return sti_gemm_many_panels(kernels, cols);
    if (!sti_block_copies_b(p))
        return sti_block_copies_a(p) ? sti_gemm_many_panels(kernels, cols)
                                     : sti_gemm_wide_panels(kernels, cols);
    /* Not by s->rows: what one block has packed the next, lower one may use. */
    const int64_t rows = sti_gemm_min(s->job->m, p->block_rows);
    if (s->job->load_b)
        return sti_gemm_panels(kernels, rows, cols);
    const int nv = sti_gemm_whole_panels(kernels, rows, cols);
    /* Tiles are as high as A is packed. */
    const bool packed_a = sti_block_copies_a(p) && p->a != STI_GEMM_A_GATHERED;
    return nv == 3 && packed_a ? 2 : nv;
}

int64_t sti_block_panel_cols(const sti_block_piece *s, int64_t left, int *nv)
{
    if (s->plan->path == STI_GEMM_STREAM_B) {
        *nv = 1;
        return left;
    }
    *nv = panels_wide(s, sti_gemm_whole_cols(s->kernels, left));
    return sti_gemm_min(left, (int64_t)*nv * STI_PANEL);
}

int64_t sti_block_group_cols(const sti_block_piece *s, int64_t j)
{
    int nv, next;
    int64_t cols = sti_block_panel_cols(s, s->cols - j, &nv);
    while (j + cols < s->cols &&
           cols + (int64_t)nv * STI_PANEL <= s->plan->group_cols) {
        const int64_t more = sti_block_panel_cols(s, s->cols - j - cols, &next);
        if (next != nv)
            break;
        cols += more;
    }
    return cols;
}

int64_t sti_block_equal_panels(const sti_block_piece *s, int64_t j, int64_t end)
{
    int nv;
    const int64_t cols = sti_block_panel_cols(s, s->cols - j, &nv);
    int64_t count = 1;
    while (j + count * cols < end &&
           sti_block_panel_cols(s, s->cols - j - count * cols, &nv) == cols)
        count++;
    return count;
}
