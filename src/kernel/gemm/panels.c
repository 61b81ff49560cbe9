#include "kernel/gemm/panels.h"

#include <assert.h>
#include <stdatomic.h>
#include <string.h>

#include "kernel/gemm/brgemm.h"
#include "kernel/gemm/gemm.h"
#include "kernel/gemm/gemm_tile.h"
#include "kernel/gemm/panels_row.h"
#include "kernel/lane/dispatch.h"

enum {
    COLUMNS = STI_PANEL_COLUMNS,
    ROWS = 14,  /* of x at a time: with 32 columns the largest register tile */
    LEVELS = 12 /* of the tree over chunks */
};

/* ---- packing ---- */

static float *panel_of(const sti_panels *w, int64_t p)
{
    return w->data + p * w->k * COLUMNS;
}

static int64_t columns_of(const sti_panels *w, int64_t p)
{
    return w->n - p * COLUMNS < COLUMNS ? w->n - p * COLUMNS : COLUMNS;
}

void sti_panels_pack_rows(const sti_panels *w, int64_t first, int64_t rows,
                          const float *src)
{
    const sti_gemm_kernels *kernels = sti_gemm_kernels_now();
    for (int64_t p = 0; p < sti_panels_count(w->n); p++)
        kernels->pack(src + p * COLUMNS, w->n, rows, columns_of(w, p), COLUMNS,
                      panel_of(w, p) + first * COLUMNS);
}

void sti_panels_pack_columns(const sti_panels *w, int64_t first, int64_t columns,
                             const float *src)
{
    assert(first % COLUMNS == 0);
    sti_gemm_kernels_now()->pack_transposed(src, w->k, w->k, columns, COLUMNS,
                                            panel_of(w, first / COLUMNS));
}

void sti_panels_column(const sti_panels *w, int64_t j, float *y)
{
    const float *from = panel_of(w, j / COLUMNS) + j % COLUMNS;
    for (int64_t i = 0; i < w->k; i++)
        y[i] = from[i * COLUMNS];
}

/* ---- product ---- */

typedef struct panels_job {
    const sti_panels *w;
    const sti_panels_kernels *kernels;
    int64_t m, ldx, ldy;
    const float *x, *bias;
    float *y;
    _Atomic int64_t next; /* panel that nobody has taken */
} panels_job;

/* One chunk of k: sums [rows][COLUMNS] of rows of x with a panel. */
static void chunk_sums(const panels_job *job, const float *panel, int64_t row,
                       int64_t rows, int64_t k0, float *sums)
{
    const int64_t left = job->w->k - k0;
    const int64_t k = left < STI_GEMM_CHUNK ? left : STI_GEMM_CHUNK;
    const float *x = job->x + row * job->ldx + k0;
    if (rows == 1) {
        job->kernels->row(k, x, panel + k0 * COLUMNS, sums);
        return;
    }
    const sti_brgemm g = {.m = rows,
                          .n = COLUMNS,
                          .k = k,
                          .lda = job->ldx,
                          .ldb = COLUMNS,
                          .ldc = COLUMNS};
    sti_brgemm_stride_f32(&g, 1, x, panel + k0 * COLUMNS, 0, 0, sums);
}

static void add_sums(const float *from, int64_t count, float *to)
{
    for (int64_t i = 0; i < count; i++)
        to[i] += from[i];
}

/* Sums of equal numbers of chunks are joined as soon as both are there, what is left at
 * the end from the right: the tree of gemm.h. */
static const float *all_sums(const panels_job *job, const float *panel, int64_t row,
                             int64_t rows, float sums[LEVELS][ROWS * COLUMNS])
{
    const int64_t k = job->w->k > 0 ? job->w->k : 1; /* no steps: a chunk, too */
    const int64_t chunks = (k + STI_GEMM_CHUNK - 1) / STI_GEMM_CHUNK;
    const int64_t count = rows * COLUMNS;
    int top = 0; /* sums waiting */
    for (int64_t c = 0; c < chunks; c++) {
        chunk_sums(job, panel, row, rows, c * STI_GEMM_CHUNK, sums[top++]);
        for (int64_t done = c + 1; done % 2 == 0; done /= 2, top--)
            add_sums(sums[top - 1], count, sums[top - 2]);
    }
    for (; top > 1; top--)
        add_sums(sums[top - 1], count, sums[top - 2]);
    return sums[0];
}

static void run_panel(const panels_job *job, int64_t panel)
{
    const int64_t columns = columns_of(job->w, panel), first = panel * COLUMNS;
    float sums[LEVELS][ROWS * COLUMNS];
    for (int64_t row = 0, rows; row < job->m; row += rows) {
        rows = job->m - row < ROWS ? job->m - row : ROWS;
        const float *sum = all_sums(job, panel_of(job->w, panel), row, rows, sums);
        for (int64_t r = 0; r < rows; r++, sum += COLUMNS) {
            float *y = job->y + (row + r) * job->ldy + first;
            for (int64_t j = 0; j < columns; j++)
                y[j] = job->bias ? sum[j] + job->bias[first + j] : sum[j];
        }
    }
}

/* Panels are taken one by one, by whoever is free: a thread that has to share its core
 * or its memory with others holds nobody up. Who takes which never shows in the bits.
 */
static void take_panels(void *arg, int64_t piece, int worker)
{
    panels_job *job = arg;
    const int64_t count = sti_panels_count(job->w->n);
    (void)piece, (void)worker;
    for (;;) {
        const int64_t panel =
            atomic_fetch_add_explicit(&job->next, 1, memory_order_relaxed);
        if (panel >= count)
            return;
        run_panel(job, panel);
    }
}

void sti_panels_product_f32(const sti_team *team, const sti_panels *w, int64_t m,
                            const float *x, int64_t ldx, const float *bias, float *y,
                            int64_t ldy)
{
    panels_job job = {.w = w,
                      .kernels = STI_KERNELS_NOW(sti_panels_kernels),
                      .m = m,
                      .ldx = ldx,
                      .ldy = ldy,
                      .x = x,
                      .bias = bias,
                      .y = y};
    assert(w->k <= (int64_t)STI_GEMM_CHUNK << (LEVELS - 1));
    sti_team_run(team, team->threads, take_panels, &job);
}
