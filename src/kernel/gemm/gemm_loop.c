/* Blocked product: for every chunk of k, blocks of A that stay in the second-level
 * cache and panels of B that flow through it meet in register tiles. Columns of B are
 * packed once for all rows of a piece where there are several blocks of them. Partial
 * sums of chunks wait on a stack that is a binary counter, which is the tree of
 * gemm.h. */
#include <assert.h>
#include <string.h>

#include "kernel/gemm/brgemm.h"
#include "kernel/gemm/gemm_loop_priv.h"

static void pack_cols(const sti_block_piece *s, const sti_block_pass *pass, int64_t j,
                      int64_t cols, int64_t width, float *dst)
{
    const sti_block_job *job = s->job;
    const sti_gemm_kernels *kernels = s->kernels;
    if (job->load_b)
        job->load_b(job, kernels, s->item, s->n0 + j, cols, pass->k0, pass->ks, width,
                    dst);
    else if (job->b_columns)
        kernels->pack_transposed(sti_block_plain_cols(s, pass, j), job->ldb, pass->ks,
                                 cols, width, dst);
    else
        kernels->pack(sti_block_plain_cols(s, pass, j), job->ldb, pass->ks, cols, width,
                      dst);
}

/* Where the packed columns of a pass lie. */
typedef struct packed_cols {
    int64_t from, to; /* columns that s->b holds */
} packed_cols;

/* The panel's B, in place or packed; its group is packed just before its first panel.
 */
static void take_cols(sti_block_piece *s, const sti_block_pass *pass,
                      sti_block_panel *panel, packed_cols *held)
{
    const sti_block_plan *p = s->plan;
    const int64_t j = panel->j0;
    if (!sti_block_copies_b(p)) {
        panel->b = sti_block_plain_cols(s, pass, j);
        panel->b_step = s->job->ldb;
        return;
    }
    panel->b_step = (int64_t)panel->nv * STI_PANEL;
    if (j >= held->to) {
        held->from = p->b == STI_GEMM_B_KEPT ? 0 : j;
        held->to = j + sti_block_group_cols(s, j);
        pack_cols(s, pass, j, held->to - j, panel->b_step,
                  s->b + (j - held->from) * pass->ks);
        if (p->path != STI_GEMM_SHORT_PASSES)
            sti_block_fetch_group(s, pass, panel, held->to);
    }
    panel->b = s->b + (j - held->from) * pass->ks;
}

/* All columns of the block, a panel after the other. */
static void piece_pass(sti_block_piece *s, const sti_block_pass *pass)
{
    const sti_block_plan *p = s->plan;
    const bool copies_b = sti_block_copies_b(p);
    packed_cols held = {.to = pass->packed ? s->cols : 0};
    sti_block_panel panel = {.count = 1};
    for (int64_t j = 0; j < s->cols; j += panel.count * panel.cols) {
        panel.j0 = j;
        panel.copy_rows = sti_block_copies_a(p) && j == 0;
        panel.cols = sti_block_panel_cols(s, s->cols - j, &panel.nv);
        take_cols(s, pass, &panel, &held);
        if (p->path == STI_GEMM_ALONG_ROWS) {
            panel.count = sti_block_equal_panels(s, j, copies_b ? held.to : s->cols);
            sti_block_along_rows(s, pass, &panel);
            continue;
        }
        if (p->path != STI_GEMM_SHORT_PASSES && (!copies_b || pass->packed))
            sti_block_fetch_columns(s, pass, &panel);
        sti_block_panel_tiles(s, pass, &panel);
    }
}

/* Passes over k that the caches like. */
static int64_t pass_length(const sti_block_plan *p, int64_t k)
{
    const int64_t passes = k > 0 ? sti_gemm_ceil_div(k, p->block_k) : 1;
    return sti_gemm_round_up(sti_gemm_ceil_div(k, passes), 16);
}

/* One chain of a block of partial sums: k0 .. k1. */
static void piece_chain(sti_block_piece *s, sti_block_pass pass, bool last, int64_t k0,
                        int64_t k1)
{
    const int64_t length = pass_length(s->plan, k1 - k0);
    do {
        pass.k0 = k0;
        pass.ks = sti_gemm_min(k1 - k0, length);
        pass.finish = last && k0 + pass.ks == k1;
        piece_pass(s, &pass);
        pass.load = true;
        k0 += pass.ks;
    } while (k0 < k1);
}

static void block_copy(float *dst, int64_t dst_ld, const float *src, int64_t src_ld,
                       int64_t rows, int64_t cols)
{
    for (int64_t r = 0; r < rows; r++)
        memcpy(dst + r * dst_ld, src + r * src_ld, (size_t)cols * sizeof *dst);
}

/* left += right, the two sides of a tree node. */
static void block_join(const sti_block_piece *s, float *left, const float *right)
{
    for (int64_t r = 0; r < s->rows; r++)
        for (int64_t j = 0; j < s->cols; j++)
            left[r * s->plan->block_cols + j] += right[r * s->plan->block_cols + j];
}

static void block_finish(const sti_block_piece *s, float *block)
{
    const sti_block_job *job = s->job;
    const float *bias = job->bias;
    for (int64_t r = 0; r < s->rows; r++)
        for (int64_t j = 0; j < s->cols; j++) {
            float *v = block + r * s->plan->block_cols + j;
            if (bias)
                *v += bias[s->item * job->bias_item + s->n0 + j];
            if (job->relu)
                *v = 0.0F > *v ? 0.0F : *v;
        }
}

/* More than 4096 k: a stack of partial blocks, joined whenever two have equal weight.
 */
static void piece_chunks(sti_block_piece *s, float *c)
{
    const sti_block_plan *p = s->plan;
    const sti_block_job *job = s->job;
    const int64_t ld = p->block_cols;
    int top = 0; /* blocks on the stack */
    for (int64_t chunk = 0; chunk < p->chunks; chunk++) {
        float *block = s->partial + (size_t)top * p->c_floats;
        const int64_t k0 = chunk * STI_GEMM_CHUNK;
        const int64_t k1 = job->k - k0 < STI_GEMM_CHUNK ? job->k : k0 + STI_GEMM_CHUNK;
        const bool load = chunk == 0 && job->accumulate;
        if (load)
            block_copy(block, ld, c, job->ldc, s->rows, s->cols);
        piece_chain(s, (sti_block_pass){.c = block, .ldc = ld, .load = load}, false, k0,
                    k1);
        top++;
        for (int64_t count = chunk + 1; count % 2 == 0; count /= 2, top--)
            block_join(s, s->partial + (size_t)(top - 2) * p->c_floats,
                       s->partial + (size_t)(top - 1) * p->c_floats);
    }
    for (; top > 1; top--)
        block_join(s, s->partial + (size_t)(top - 2) * p->c_floats,
                   s->partial + (size_t)(top - 1) * p->c_floats);
    block_finish(s, s->partial);
    if (job->store_c)
        return;
    block_copy(c, job->ldc, s->partial, ld, s->rows, s->cols);
    if (job->sine != 0)
        sti_block_sine(job->sine, s->rows, s->cols, c, job->ldc);
}

/* One block of C through all of k, summed up in scratch. */
static void piece_block(sti_block_piece *s)
{
    const sti_block_plan *p = s->plan;
    const sti_block_job *job = s->job;
    float *c =
        job->store_c ? NULL : job->c + s->item * job->c_item + s->m0 * job->ldc + s->n0;
    if (p->chunks > 1)
        piece_chunks(s, c);
    else
        piece_chain(s, (sti_block_pass){.c = s->partial, .ldc = p->block_cols}, true, 0,
                    job->k);
    if (job->store_c)
        job->store_c(job, s->item, s->m0, s->rows, s->n0, s->cols, s->partial,
                     p->block_cols);
}

/* The columns n0 .. of rows m0 .. m1, summed up where they are: passes over k, and in
 * each all blocks of rows. */
static void piece_columns(sti_block_piece *s, int64_t m0, int64_t m1)
{
    const sti_block_plan *p = s->plan;
    const sti_block_job *job = s->job;
    const int64_t length = pass_length(p, job->k);
    sti_block_pass pass = {.ldc = job->ldc, .load = job->accumulate};
    do {
        pass.ks = sti_gemm_min(job->k - pass.k0, length);
        pass.finish = pass.k0 + pass.ks == job->k;
        pass.packed = false;
        for (s->m0 = m0; s->m0 < m1; s->m0 += p->block_rows) {
            s->rows = sti_gemm_min(p->block_rows, m1 - s->m0);
            pass.c = job->c + s->item * job->c_item + s->m0 * job->ldc + s->n0;
            sti_block_fetch_copied(s, &pass, m0, m1);
            piece_pass(s, &pass);
            pass.packed = p->b == STI_GEMM_B_KEPT;
            if (pass.finish && job->sine != 0)
                sti_block_sine(job->sine, s->rows, s->cols, pass.c, job->ldc);
        }
        pass.load = true;
        pass.k0 += pass.ks;
    } while (pass.k0 < job->k);
}

/* Products whose copies of A and B would cost more than they save. */
static void piece_in_place(const sti_block_piece *s, int64_t m1, int64_t n1)
{
    static const int64_t zero[1] = {0};
    const sti_block_job *job = s->job;
    sti_brgemm g = {
        .n = n1 - s->n0,
        .k = job->k,
        .lda = job->lda,
        .ldb = job->ldb,
        .ldc = job->ldc,
        .trans_a = job->a_k_major,
        .accumulate = job->accumulate,
        .relu = job->relu,
        .bias = job->bias ? job->bias + s->item * job->bias_item + s->n0 : NULL,
    };
    const float *a = job->a + s->item * job->a_item;
    const float *b = job->b + s->item * job->b_item + s->n0;
    float *c = job->c + s->item * job->c_item + s->n0;
    for (int64_t m0 = s->m0; m0 < m1; m0 += g.m) {
        g.m = sti_gemm_min(STI_GEMM_IN_PLACE_ROWS, m1 - m0);
        sti_brgemm_offset_f32(&g, 1, a + m0 * (job->a_k_major ? 1 : job->lda), b, zero,
                              zero, c + m0 * job->ldc);
        if (job->sine != 0)
            sti_block_sine(job->sine, g.m, g.n, c + m0 * job->ldc, job->ldc);
    }
}

/* The call: a plan, what it is run on, and where its scratch begins. */
typedef struct block_call {
    const sti_block_plan *plan;
    const sti_block_job *job;
    const sti_gemm_kernels *kernels;
    float *scratch;
} block_call;

/* All blocks of columns of a piece, rows m0 .. m1. */
static void piece_blocks(sti_block_piece *s, int64_t m0, int64_t m1, int64_t n1)
{
    const sti_block_plan *p = s->plan;
    for (; s->n0 < n1; s->n0 += p->block_cols) {
        s->cols = sti_gemm_min(p->block_cols, n1 - s->n0);
        if (p->levels == 0) {
            piece_columns(s, m0, m1);
            continue;
        }
        for (s->m0 = m0; s->m0 < m1; s->m0 += p->block_rows) {
            s->rows = sti_gemm_min(p->block_rows, m1 - s->m0);
            piece_block(s);
        }
    }
}

static void piece_run(void *arg, int64_t piece, int worker)
{
    const block_call *call = arg;
    const sti_block_plan *p = call->plan;
    const sti_block_job *job = call->job;
    sti_block_piece s = {.plan = p, .job = job, .kernels = call->kernels};
    s.n0 = piece % p->col_parts * p->part_cols;
    piece /= p->col_parts;
    s.m0 = piece % p->row_parts * p->part_rows;
    s.item = piece / p->row_parts;
    const int64_t n1 = sti_gemm_min(job->n, s.n0 + p->part_cols);
    const int64_t m1 = sti_gemm_min(job->m, s.m0 + p->part_rows);
    if (p->path == STI_GEMM_IN_PLACE) {
        piece_in_place(&s, m1, n1);
        return;
    }
    s.a = call->scratch + (size_t)worker * p->worker_floats;
    s.b = s.a + p->a_floats;
    s.partial = s.b + p->b_floats;
    piece_blocks(&s, s.m0, m1, n1);
}

void sti_block_plan_run(const sti_team *team, const sti_block_plan *plan,
                        const sti_block_job *job, void *scratch)
{
    if (job->m == 0 || job->n == 0)
        return;
    assert(team->threads <= plan->threads);
    block_call call = {.plan = plan,
                       .job = job,
                       .kernels = sti_gemm_kernels_now(),
                       .scratch = sti_block_align(scratch)};
    sti_team_run(team, job->items * plan->row_parts * plan->col_parts, piece_run,
                 &call);
}

void sti_block_run(const sti_team *team, const sti_block_job *job, void *scratch)
{
    const sti_block_plan plan = sti_block_plan_make(job, team->threads);
    sti_block_plan_run(team, &plan, job, scratch);
}
