/* Blocked product: for every block of C and chunk of k, blocks of A (second-level
 * cache) and panels of B (first-level cache) meet in register tiles. Partial sums of
 * chunks wait on a stack that is a binary counter, which is the tree of gemm.h. */
#include "kernel/gemm_block.h"

#include <string.h>

enum { BLOCK_PACK_COLS = 128 }; /* columns of B packed at a time */

typedef struct block_plan {
    const sti_block_job *job;
    const sti_gemm_kernels *kernels;
    int64_t block_rows, block_cols, row_blocks, col_blocks;
    int64_t chunks;
    int levels; /* partial blocks of C held at once; 0: C itself */
    int64_t a_ld;
    size_t a_floats, b_floats, c_floats, worker_floats;
    float *scratch;
} block_plan;

/* One piece: where it stands and what it holds. */
typedef struct block_piece {
    const block_plan *plan;
    int64_t item, m0, rows, n0, cols;
    float *a, *b, *partial;
} block_piece;

static int64_t ceil_div(int64_t a, int64_t b)
{
    return (a + b - 1) / b;
}

static int64_t round_up(int64_t a, int64_t to)
{
    return ceil_div(a, to) * to;
}

/* Equal blocks of at most `most`, a multiple of `unit`. */
static int64_t block_length(int64_t length, int64_t most, int64_t unit)
{
    return length == 0 ? unit
                       : round_up(ceil_div(length, ceil_div(length, most)), unit);
}

static int stack_levels(int64_t chunks)
{
    int levels = 1;
    for (int64_t c = chunks; c > 1; c /= 2)
        levels++;
    return levels;
}

/* Large products with few blocks are cut further, so that a team has something to
 * share. */
static void plan_blocks(block_plan *p)
{
    const sti_block_job *job = p->job;
    int64_t rows = STI_BLOCK_ROWS;
    int64_t cols = p->chunks > 1 ? 128 : STI_BLOCK_COLS;
    for (;;) {
        p->block_rows = block_length(job->m, rows, 8);
        p->block_cols = block_length(job->n, cols, 32);
        p->row_blocks = ceil_div(job->m, p->block_rows);
        p->col_blocks = ceil_div(job->n, p->block_cols);
        const bool few = p->row_blocks * p->col_blocks < 4 && job->m * job->n > 0 &&
                         job->k > (1 << 20) / (job->m * job->n);
        if (few && p->block_cols > 128)
            cols = p->block_cols / 2;
        else if (few && p->block_rows > 168)
            rows = p->block_rows / 2;
        else
            return;
    }
}

static block_plan block_plan_make(const sti_block_job *job)
{
    block_plan p = {.job = job};
    p.chunks = job->k > 0 ? ceil_div(job->k, STI_GEMM_CHUNK) : 1;
    p.levels = p.chunks > 1 ? stack_levels(p.chunks) : job->store_c != NULL;
    plan_blocks(&p);
    const int64_t ks = job->k < STI_BLOCK_K ? job->k : STI_BLOCK_K;
    p.a_ld = job->a_steps ? round_up(p.block_rows, 16) + 16 : round_up(ks, 16) + 16;
    p.a_floats = (size_t)((job->a_steps ? ks : p.block_rows) * p.a_ld);
    p.b_floats = (size_t)(round_up(ks, 16) * BLOCK_PACK_COLS);
    p.c_floats = (size_t)(p.block_rows * p.block_cols);
    p.worker_floats = p.a_floats + p.b_floats + (size_t)p.levels * p.c_floats;
    p.worker_floats = (size_t)round_up((int64_t)p.worker_floats, 16);
    return p;
}

size_t sti_block_scratch_bytes(const sti_block_job *job, int threads)
{
    const block_plan p = block_plan_make(job);
    return 64 + (size_t)threads * p.worker_floats * sizeof(float);
}

/* What one pass over a range of k does to a block: where the sums live, whether they
 * start from what is there, and whether this is the last pass. */
typedef struct block_pass {
    float *c;
    int64_t ldc;
    bool load, finish;
} block_pass;

static void panel_tiles(const block_piece *s, const block_pass *pass,
                        const float *panel, int64_t j0, int64_t cols, int nv,
                        int64_t ks)
{
    static const int64_t zero_run[1] = {0};
    const block_plan *p = s->plan;
    const sti_block_job *job = p->job;
    const int64_t width = (int64_t)nv * STI_PANEL;
    sti_gemm_tile t = {
        .b = panel,
        .a_row = p->a_ld,
        .a_run = zero_run,
        .a_step = p->a_ld,
        .b_step = width,
        .runs = 1,
        .run_k = ks,
        .c_row = pass->ldc,
        .cols = cols,
        .nv = nv,
        .load = pass->load,
    };
    if (pass->finish) {
        t.relu = job->relu;
        t.bias = job->bias ? job->bias + s->item * job->bias_item + s->n0 + j0 : NULL;
    }
    const int most = p->kernels->max_rows[nv];
    for (int64_t r = 0; r < s->rows; r += t.lines * t.rows) {
        const int64_t left = s->rows - r;
        t.rows = sti_gemm_next_rows(left, most);
        t.lines = sti_gemm_equal_tiles(left, most);
        t.a_line = job->a_steps ? t.rows : t.rows * p->a_ld;
        t.c_line = t.rows * pass->ldc;
        t.a = job->a_steps ? s->a + r : s->a + r * p->a_ld;
        t.c = pass->c + r * pass->ldc + j0;
        if (job->a_steps)
            p->kernels->tn(&t);
        else
            p->kernels->nn(&t);
    }
}

/* Several panels are packed at a time; the last may be narrower than they. */
static void piece_pass(const block_piece *s, const block_pass *pass, int64_t k0,
                       int64_t ks)
{
    const block_plan *p = s->plan;
    const sti_block_job *job = p->job;
    job->load_a(job, s->item, s->m0, s->rows, k0, ks, s->a, p->a_ld);
    for (int64_t j = 0, some; j < s->cols; j += some) {
        const int64_t left = s->cols - j;
        const int nv = sti_gemm_panels(p->kernels, s->rows, left);
        const int64_t width = (int64_t)nv * STI_PANEL;
        some = left < width ? left : left / width * width;
        some = some < BLOCK_PACK_COLS ? some : BLOCK_PACK_COLS;
        job->load_b(job, p->kernels, s->item, s->n0 + j, some, k0, ks, width, s->b);
        for (int64_t i = 0; i < some; i += width) {
            const int64_t cols = some - i < width ? some - i : width;
            panel_tiles(s, pass, s->b + i * ks, j + i, cols, nv, ks);
        }
    }
}

/* One chain: k0 .. k1 in passes that the caches like. */
static void piece_chain(const block_piece *s, block_pass pass, bool last, int64_t k0,
                        int64_t k1)
{
    const int64_t passes = k1 > k0 ? ceil_div(k1 - k0, STI_BLOCK_K) : 1;
    const int64_t length = round_up(ceil_div(k1 - k0, passes), 16);
    do {
        const int64_t ks = k1 - k0 < length ? k1 - k0 : length;
        pass.finish = last && k0 + ks == k1;
        piece_pass(s, &pass, k0, ks);
        pass.load = true;
        k0 += ks;
    } while (k0 < k1);
}

static void block_copy(float *dst, int64_t dst_ld, const float *src, int64_t src_ld,
                       int64_t rows, int64_t cols)
{
    for (int64_t r = 0; r < rows; r++)
        memcpy(dst + r * dst_ld, src + r * src_ld, (size_t)cols * sizeof *dst);
}

/* left += right, the two sides of a tree node. */
static void block_join(const block_piece *s, float *left, const float *right)
{
    for (int64_t r = 0; r < s->rows; r++)
        for (int64_t j = 0; j < s->cols; j++)
            left[r * s->plan->block_cols + j] += right[r * s->plan->block_cols + j];
}

static void block_finish(const block_piece *s, float *block)
{
    const sti_block_job *job = s->plan->job;
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

/* More than 4096 k: a stack of partial blocks,
 * joined whenever two have equal weight. */
static void piece_chunks(const block_piece *s, float *c)
{
    const block_plan *p = s->plan;
    const sti_block_job *job = p->job;
    const int64_t ld = p->block_cols;
    int top = 0; /* blocks on the stack */
    for (int64_t chunk = 0; chunk < p->chunks; chunk++) {
        float *block = s->partial + (size_t)top * p->c_floats;
        const int64_t k0 = chunk * STI_GEMM_CHUNK;
        const int64_t k1 = job->k - k0 < STI_GEMM_CHUNK ? job->k : k0 + STI_GEMM_CHUNK;
        const bool load = chunk == 0 && job->accumulate;
        if (load)
            block_copy(block, ld, c, job->ldc, s->rows, s->cols);
        piece_chain(s, (block_pass){.c = block, .ldc = ld, .load = load}, false, k0,
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
    if (!job->store_c)
        block_copy(c, job->ldc, s->partial, ld, s->rows, s->cols);
}

static void piece_run(void *arg, int64_t piece, int worker)
{
    const block_plan *p = arg;
    const sti_block_job *job = p->job;
    block_piece s = {.plan = p};
    s.n0 = piece % p->col_blocks * p->block_cols;
    piece /= p->col_blocks;
    s.m0 = piece % p->row_blocks * p->block_rows;
    s.item = piece / p->row_blocks;
    s.rows = job->m - s.m0 < p->block_rows ? job->m - s.m0 : p->block_rows;
    s.cols = job->n - s.n0 < p->block_cols ? job->n - s.n0 : p->block_cols;
    s.a = p->scratch + (size_t)worker * p->worker_floats;
    s.b = s.a + p->a_floats;
    s.partial = s.b + p->b_floats;
    float *c =
        job->store_c ? NULL : job->c + s.item * job->c_item + s.m0 * job->ldc + s.n0;
    if (p->chunks > 1)
        piece_chunks(&s, c);
    else if (job->store_c)
        piece_chain(&s, (block_pass){.c = s.partial, .ldc = p->block_cols}, true, 0,
                    job->k);
    else
        piece_chain(&s, (block_pass){.c = c, .ldc = job->ldc, .load = job->accumulate},
                    true, 0, job->k);
    if (job->store_c)
        job->store_c(job, s.item, s.m0, s.rows, s.n0, s.cols, s.partial, p->block_cols);
}

void sti_block_run(const sti_team *team, const sti_block_job *job, void *scratch)
{
    if (job->m == 0 || job->n == 0)
        return;
    block_plan p = block_plan_make(job);
    p.kernels = sti_gemm_kernels_now();
    p.scratch = sti_block_align(scratch);
    sti_team_run(team, job->items * p.row_blocks * p.col_blocks, piece_run, &p);
}

/* ReLU bits */

enum { MASK_PIECE = 1 << 16 }; /* elements */

typedef struct mask_job {
    const float *y;
    uint8_t *mask;
    int64_t count;
    const sti_gemm_kernels *kernels;
} mask_job;

static void mask_piece(void *arg, int64_t piece, int worker)
{
    const mask_job *job = arg;
    const int64_t i = piece * MASK_PIECE;
    const int64_t left = job->count - i;
    (void)worker;
    job->kernels->mask(job->y + i, left < MASK_PIECE ? left : MASK_PIECE,
                       job->mask + i / 8);
}

void sti_block_mask(const sti_team *team, const float *y, int64_t count, uint8_t *mask)
{
    mask_job job = {
        .y = y, .mask = mask, .count = count, .kernels = sti_gemm_kernels_now()};
    sti_team_run(team, ceil_div(count, MASK_PIECE), mask_piece, &job);
}
