/* Blocked product of bfloat16 matrices: for every block of C and run of k, blocks of A
 * and B are packed as pairs and meet in register tiles, two by two. The matrix unit is
 * so fast that copying counts: B is packed once for all blocks of rows, A once for all
 * columns, unless k is long; then both are, a run at a time, for each block of C. Sums
 * wait in float32 scratch (second-level cache) until the last run. */
#include "kernel/gemm/gemm_bf16.h"

#include <assert.h>
#include <string.h>

#include "kernel/elementwise/elementwise.h"
#include "kernel/gemm/gemm_bf16_tile.h"

enum {
    K_A_BLOCK = 2 * STI_BF16_PAIRS,
    FETCH_A = 4 * K_A_BLOCK, /* k so far ahead is fetched */
    ONCE_COLS = 512          /* columns of B packed once, a piece of work */
};

typedef struct gemm_job {
    const sti_gemm_bf16_plan *plan;
    const sti_gemm_bf16_shape *shape;
    const sti_bf16 *a, *b;
    const sti_epilogue *epilogue;
    void *c;
    const sti_bf16_tile_kernels *tiles;
    const sti_bf16_kernels *loops;
    int64_t group; /* first column of the B that is packed once */
    uint32_t *once_b, *scratch;
} gemm_job;

/* One piece: where it stands and what it holds. Each run of k of A is
 * [rows / 16, rounded up][blocks of k][16][16] pairs. */
typedef struct gemm_piece {
    const gemm_job *job;
    int64_t m0, rows, n0, cols;
    uint32_t *a, *b;
    float *sums; /* [rows / 16, rounded up][columns / 16, rounded up][16][16] */
} gemm_piece;

enum {
    TILE_PAIRS = STI_BF16_ROWS * STI_BF16_PAIRS,
    TILE_FLOATS = STI_BF16_ROWS * STI_BF16_COLS,
    LINE_ELEMENTS = 64 / sizeof(sti_bf16),
    LINE_PAIRS = 64 / sizeof(uint32_t)
};

/* Pairs of 16 rows of A: tiles that lie one after the other as they are read. */
static int64_t tiles_a(int64_t k)
{
    return sti_bf16_blocks(sti_gemm_ceil_div(k, 2)) * TILE_PAIRS;
}

/* A block of k as pairs that lie side by side, the first `left` from src, then zeros.
 */
static void copy_k(const sti_bf16 *src, int64_t left, void *block)
{
    if (left >= K_A_BLOCK) {
        memcpy(block, src, K_A_BLOCK * sizeof *src);
        return;
    }
    memset(block, 0, K_A_BLOCK * sizeof *src);
    memcpy(block, src, (size_t)left * sizeof *src);
}

/* Copied pairs to the order that tiles want: many in a call, while they are in the
 * first cache. */
static void turn_copied(const gemm_job *j, int64_t pairs, void *x)
{
    if (j->tiles->turn)
        j->tiles->turn(2 * pairs, x, x);
}

/* 16 rows r.. of A, stored in columns. */
static void pack_columns_a(const gemm_piece *p, int64_t r, int64_t k0, int64_t k1,
                           uint32_t *dst)
{
    const sti_gemm_bf16_shape *s = p->job->shape;
    static const sti_bf16 zeros[STI_BF16_ROWS];
    const bool turned = p->job->tiles->turn != NULL;
    const sti_bf16 *src[K_A_BLOCK];
    for (int64_t k = k0; k < k1; k += K_A_BLOCK, dst += TILE_PAIRS) {
        for (int64_t i = 0; i < K_A_BLOCK; i++)
            src[i] = k + i < k1 ? p->job->a + (k + i) * s->lda + p->m0 + r : zeros;
        p->job->loops->transpose32(src, turned, 0,
                                   sti_gemm_min(p->rows - r, STI_BF16_ROWS),
                                   (sti_bf16 *)dst, K_A_BLOCK);
    }
}

/* The same of A in rows, which may lie too far apart for a prefetcher. */
static void pack_rows_a(const gemm_piece *p, int64_t r, int64_t k0, int64_t k1,
                        uint32_t *dst)
{
    const int64_t lda = p->job->shape->lda,
                  rows = sti_gemm_min(p->rows - r, STI_BF16_ROWS);
    const sti_bf16 *src = p->job->a + (p->m0 + r) * lda + k0;
    uint32_t *block = dst;
    for (int64_t left = k1 - k0; left > 0; left -= K_A_BLOCK, src += K_A_BLOCK)
        for (int64_t i = 0; i < STI_BF16_ROWS; i++, block += STI_BF16_PAIRS) {
            if (i < rows)
                __builtin_prefetch(src + i * lda + FETCH_A);
            copy_k(src + i * lda, i < rows ? left : 0, block);
        }
    turn_copied(p->job, block - dst, dst);
}

/* Rows m0.., k0..k1 of A as pairs, padded with zeros to whole tiles. */
static void pack_a(const gemm_piece *p, int64_t k0, int64_t k1, uint32_t *dst)
{
    for (int64_t r = 0; r < p->rows; r += STI_BF16_ROWS, dst += tiles_a(k1 - k0)) {
        if (p->job->shape->trans_a)
            pack_columns_a(p, r, k0, k1, dst);
        else
            pack_rows_a(p, r, k0, k1, dst);
    }
}

/* Pairs in the order of dot products of up to 32 rows of B, out [ks / 2, rounded up to
 * an even number][16]. */
static void interleave_turned(const gemm_job *j, int64_t cols, const sti_bf16 *src,
                              int64_t ks, uint32_t *out)
{
    static const sti_bf16 zeros[STI_BF16_COLS];
    const int64_t ldb = j->shape->ldb, fours = ks / 4;
    for (int odd = 0; odd < 2; odd++)
        j->loops->interleave_rows(fours, cols, src + (2 + odd) * ldb, -2 * ldb, 4 * ldb,
                                  out + odd * STI_BF16_COLS, 2 * STI_BF16_COLS);
    src += 4 * fours * ldb;
    out += 2 * fours * STI_BF16_COLS;
    for (int64_t i = 4 * fours; i < sti_gemm_min(ks, 4 * fours + 2);
         i++, src += ldb, out += STI_BF16_COLS)
        j->loops->interleave(cols, i + 2 < ks ? src + 2 * ldb : zeros, src, out);
}

/* Pairs of one block of k, columns n0.. of B, out [16][16]. */
static void pack_block_b(const gemm_job *j, int64_t n0, int64_t cols, int64_t k0,
                         int64_t ks, uint32_t *out)
{
    const sti_gemm_bf16_shape *s = j->shape;
    const int64_t whole = ks / 2, ldb = s->ldb;
    if (cols < STI_BF16_COLS || whole < STI_BF16_PAIRS)
        memset(out, 0, STI_BF16_PAIRS * STI_BF16_COLS * sizeof *out);
    if (!s->trans_b) {
        const sti_bf16 *src = j->b + k0 * ldb + n0;
        if (j->tiles->turn) {
            interleave_turned(j, cols, src, ks, out);
            return;
        }
        j->loops->interleave_rows(whole, cols, src, ldb, 2 * ldb, out, STI_BF16_COLS);
        if (ks % 2)
            j->loops->interleave(cols, src + 2 * whole * ldb, NULL,
                                 out + whole * STI_BF16_COLS);
        return;
    }
    float rows[STI_BF16_COLS * STI_BF16_PAIRS] = {0}; /* pairs */
    for (int64_t c = 0; c < cols; c++)
        copy_k(j->b + (n0 + c) * ldb + k0, ks, rows + c * STI_BF16_PAIRS);
    turn_copied(j, STI_BF16_COLS * STI_BF16_PAIRS, rows);
    j->loops->transpose_f32(STI_BF16_COLS, STI_BF16_PAIRS, rows, (float *)(void *)out,
                            STI_BF16_COLS);
}

/* A line of each row of a block that is packed soon: rows lie too far apart for a
 * prefetcher. */
static void fetch_block_b(const gemm_job *j, int64_t n0, int64_t k0, int64_t ks)
{
    const sti_bf16 *src = j->b + k0 * j->shape->ldb + n0;
    for (int64_t i = 0; i < ks && !j->shape->trans_b; i++, src += j->shape->ldb)
        __builtin_prefetch(src);
}

/* Columns n0.. of B, k0..k1, in panels [pairs][16] padded with zeros; a block of k of
 * all panels at a time. */
static void pack_b(const gemm_job *j, int64_t n0, int64_t cols, int64_t k0, int64_t k1,
                   uint32_t *dst)
{
    const int64_t blocks = sti_bf16_blocks(sti_gemm_ceil_div(k1 - k0, 2));
    for (int64_t i = 0; i < blocks; i++) {
        const int64_t k = k0 + i * K_A_BLOCK, ks = sti_gemm_min(k1 - k, K_A_BLOCK);
        for (int64_t c = 0; c < cols; c += STI_BF16_COLS) {
            if (c % LINE_ELEMENTS == 0)
                fetch_block_b(j, n0 + c, k + ks, sti_gemm_min(k1 - k - ks, K_A_BLOCK));
            pack_block_b(j, n0 + c, sti_gemm_min(cols - c, STI_BF16_COLS), k, ks,
                         dst + (c * blocks + i * STI_BF16_COLS) * STI_BF16_PAIRS);
        }
    }
}

/* A run of k. */
typedef struct k_run {
    int64_t k0, k1, blocks, index;
} k_run;

static k_run run_at(const gemm_job *j, int64_t index)
{
    k_run r = {.k0 = 2 * index * j->plan->run_pairs, .index = index};
    r.k1 = sti_gemm_min(j->shape->k, r.k0 + 2 * j->plan->run_pairs);
    r.blocks = sti_bf16_blocks(sti_gemm_ceil_div(r.k1 - r.k0, 2));
    return r;
}

/* Where the columns c.. of the group are packed. */
static uint32_t *once_b(const gemm_job *j, const k_run *r, int64_t c)
{
    return j->once_b + r->index * j->plan->run_pairs * j->plan->group_cols +
           c * r->blocks * STI_BF16_PAIRS;
}

static void pack_once_b(void *arg, int64_t piece, int worker)
{
    const gemm_job *j = arg;
    const k_run r = run_at(j, piece % j->plan->runs);
    const int64_t c = piece / j->plan->runs * ONCE_COLS;
    const int64_t end = sti_gemm_min(j->plan->group_cols, j->shape->n - j->group);
    (void)worker;
    pack_b(j, j->group + c, sti_gemm_min(end - c, ONCE_COLS), r.k0, r.k1,
           once_b(j, &r, c));
}

/* Where the tile with element [r, c] of the block is summed up: all of it in one page,
 * since rows of C would take one each. */
static int64_t sum_tile(const gemm_piece *p, int64_t r, int64_t c)
{
    const int64_t across = sti_gemm_ceil_div(p->cols, STI_BF16_COLS);
    return (r / STI_BF16_ROWS * across + c / STI_BF16_COLS) * TILE_FLOATS;
}

/* Tiles of one or two by one or two, the first in row `row` and column `col`. */
static void few_tiles(const gemm_piece *p, sti_bf16_tile *t, int64_t row, int64_t col)
{
    const gemm_job *j = p->job;
    const int rows = row + STI_BF16_ROWS < p->rows ? 2 : 1;
    const int cols = col + STI_BF16_COLS < p->cols ? 2 : 1;
    t->count = rows * cols;
    for (int i = 0; i < t->count; i++) {
        const int64_t r = row + (int64_t)(i / cols) * STI_BF16_ROWS;
        const int64_t c = col + (int64_t)(i % cols) * STI_BF16_COLS;
        t->a_tile[i] = r * t->blocks * STI_BF16_PAIRS;
        t->b_tile[i] = c * t->blocks * STI_BF16_PAIRS;
        t->c_tile[i] = sum_tile(p, r, c);
    }
    if (t->count == 4)
        j->tiles->square(t);
    else if (cols == 2)
        j->tiles->share_a(t);
    else
        j->tiles->share_b(t);
}

enum { SQUARE = 2 * STI_BF16_COLS };

static void run_tiles(const gemm_piece *p, const k_run *k, const uint32_t *a,
                      const uint32_t *b)
{
    static const int64_t zero_run[1] = {0};
    const gemm_job *j = p->job;
    sti_bf16_tile t = {
        .rows = STI_BF16_ROWS,
        .load = k->index > 0,
        .runs = 1,
        .blocks = k->blocks,
        .a = a,
        .b = b,
        .a_row = STI_BF16_PAIRS,
        .a_block = TILE_PAIRS,
        .b_row = STI_BF16_COLS,
        .a_run = zero_run,
        .a_turned = j->tiles->turn != NULL,
        .b_turned = j->tiles->turn != NULL,
        .b_odd = STI_BF16_COLS,
        .c = p->sums,
        .c_row = STI_BF16_COLS,
    };
    /* The next columns of B come from far away: each tile fetches a part. */
    const int64_t panels = SQUARE * k->blocks * STI_BF16_PAIRS;
    const int64_t part = sti_gemm_ceil_div(panels, sti_gemm_ceil_div(p->rows, SQUARE));
    for (int64_t col = 0; col < p->cols; col += SQUARE) {
        const uint32_t *next = b + (col + SQUARE) * k->blocks * STI_BF16_PAIRS;
        for (int64_t row = 0; row < p->rows; row += SQUARE, next += part) {
            for (int64_t i = 0; i < part; i += LINE_PAIRS)
                __builtin_prefetch(next + i, 0, 2);
            few_tiles(p, &t, row, col);
        }
    }
}

/* Up to 16 rows r.. of the block, from its tiles. */
static void gather_rows(const gemm_piece *p, int64_t r, int64_t rows, float *out,
                        int64_t ld)
{
    const float *sum = p->sums + sum_tile(p, r, 0);
    for (int64_t c = 0; c < p->cols; c += STI_BF16_COLS, sum += TILE_FLOATS) {
        const int64_t cols = sti_gemm_min(p->cols - c, STI_BF16_COLS);
        for (int64_t i = 0; i < rows; i++) {
            if (cols == STI_BF16_COLS)
                memcpy(out + i * ld + c, sum + i * STI_BF16_COLS,
                       STI_BF16_COLS * sizeof *out);
            else
                memcpy(out + i * ld + c, sum + i * STI_BF16_COLS,
                       (size_t)cols * sizeof *out);
        }
    }
}

/* One row of sums with bias and ReLU. */
static void finish_row(const sti_epilogue *e, int64_t cols, const float *bias,
                       float *sum)
{
    for (int64_t i = 0; i < cols; i++) {
        sum[i] += bias ? bias[i] : 0.0f;
        sum[i] = e->relu && sum[i] <= 0.0f ? 0.0f : sum[i];
    }
}

/* Sums to C. */
static void block_store(const gemm_piece *p)
{
    const gemm_job *j = p->job;
    const sti_gemm_bf16_shape *s = j->shape;
    const sti_epilogue *e = j->epilogue;
    const float *bias = e && e->bias ? e->bias + p->n0 : NULL;
    const bool there = !s->c_bf16 && !s->accumulate;
    float held[STI_BF16_ROWS * STI_GEMM_BF16_BLOCK_COLS];
    const int64_t ld = there ? s->ldc : STI_GEMM_BF16_BLOCK_COLS;
    for (int64_t r = 0; r < p->rows; r += STI_BF16_ROWS) {
        const int64_t rows = sti_gemm_min(p->rows - r, STI_BF16_ROWS);
        int64_t at = (p->m0 + r) * s->ldc + p->n0;
        float *sum = there ? (float *)j->c + at : held;
        gather_rows(p, r, rows, sum, ld);
        for (int64_t i = 0; i < rows; i++, sum += ld, at += s->ldc) {
            if (bias || (e && e->relu))
                finish_row(e, p->cols, bias, sum);
            if (s->accumulate)
                sti_add_f32(&sti_team_serial, p->cols, sum, (float *)j->c + at);
            else if (s->c_bf16)
                j->loops->from_f32(p->cols, sum, (sti_bf16 *)j->c + at);
        }
    }
}

/* A block of C. */
static void block_run(const gemm_piece *p)
{
    const gemm_job *j = p->job;
    for (int64_t i = 0; i < j->plan->runs; i++) {
        const k_run r = run_at(j, i);
        if (j->plan->once) {
            run_tiles(p, &r, p->a + i * j->plan->block_rows * j->plan->run_pairs,
                      once_b(j, &r, p->n0 - j->group));
            continue;
        }
        pack_a(p, r.k0, r.k1, p->a);
        pack_b(j, p->n0, p->cols, r.k0, r.k1, p->b);
        run_tiles(p, &r, p->a, p->b);
    }
    block_store(p);
}

static void gemm_piece_run(void *arg, int64_t piece, int worker)
{
    const gemm_job *j = arg;
    const sti_gemm_bf16_shape *s = j->shape;
    gemm_piece p = {.job = j};
    const int64_t group_end = sti_gemm_min(j->group + j->plan->group_cols, s->n);
    const int64_t first = j->group + piece % j->plan->col_parts * j->plan->part_cols;
    const int64_t end = sti_gemm_min(first + j->plan->part_cols, group_end);
    if (first >= end) /* of the last group, which may be narrower */
        return;
    p.m0 = piece / j->plan->col_parts * j->plan->block_rows;
    p.rows = sti_gemm_min(j->plan->block_rows, s->m - p.m0);
    p.a = j->scratch + worker * j->plan->worker_pairs;
    p.b = p.a + j->plan->a_pairs;
    p.sums = (float *)(void *)(p.b + j->plan->b_pairs);
    for (int64_t i = 0; j->plan->once && i < j->plan->runs; i++) {
        const k_run r = run_at(j, i);
        pack_a(&p, r.k0, r.k1, p.a + i * j->plan->block_rows * j->plan->run_pairs);
    }
    j->tiles->begin(STI_BF16_ROWS);
    for (p.n0 = first; p.n0 < end; p.n0 += j->plan->block_cols) {
        p.cols = sti_gemm_min(j->plan->block_cols, end - p.n0);
        block_run(&p);
    }
    j->tiles->end();
}

static void write_mask(const gemm_job *j)
{
    const sti_gemm_bf16_shape *s = j->shape;
    if (!j->epilogue || !j->epilogue->relu_mask)
        return;
    if (s->c_bf16)
        j->loops->mask(s->m * s->n, j->c, j->epilogue->relu_mask);
    else
        j->loops->mask_f32(s->m * s->n, j->c, j->epilogue->relu_mask);
}

void sti_gemm_run_bf16(const sti_team *team, const sti_gemm_bf16_plan *plan,
                       const sti_bf16 *a, const sti_bf16 *b,
                       const sti_epilogue *epilogue, void *c_out, void *scratch)
{
    const sti_gemm_bf16_shape *s = &plan->shape;
    gemm_job j = {.plan = plan,
                  .shape = s,
                  .a = a,
                  .b = b,
                  .epilogue = epilogue,
                  .c = c_out,
                  .tiles = sti_bf16_tiles_now(),
                  .loops = sti_bf16_kernels_now()};
    if (s->m == 0 || s->n == 0)
        return;
    assert(team->threads <= plan->threads);
    j.once_b = (uint32_t *)(((uintptr_t)scratch + 63) & ~(uintptr_t)63);
    j.scratch = j.once_b + plan->once_pairs;
    for (; j.group < s->n; j.group += plan->group_cols) {
        const int64_t cols = sti_gemm_min(plan->group_cols, s->n - j.group);
        if (plan->once)
            sti_team_run(team, plan->runs * sti_gemm_ceil_div(cols, ONCE_COLS),
                         pack_once_b, &j);
        sti_team_run(team, plan->row_blocks * plan->col_parts, gemm_piece_run, &j);
    }
    write_mask(&j);
}

void sti_gemm_bf16(const sti_team *team, const sti_gemm_bf16_shape *shape,
                   const sti_bf16 *a, const sti_bf16 *b, const sti_epilogue *epilogue,
                   void *c_out, void *scratch)
{
    sti_gemm_bf16_plan plan;
    sti_gemm_plan_bf16(shape, team->threads, &plan);
    sti_gemm_run_bf16(team, &plan, a, b, epilogue, c_out, scratch);
}
