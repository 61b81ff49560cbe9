/* Blocked product of bfloat16 matrices: for every block of C and run of k, blocks of A
 * and B are packed as pairs and meet in register tiles, two by two. The matrix unit is
 * so fast that copying counts: B is packed once for all blocks of rows, A once for all
 * columns, unless k is long; then both are, a run at a time, for each block of C. Sums
 * wait in float32 scratch (second-level cache) until the last run. */
#include "kernel/gemm/gemm_bf16.h"

#include <string.h>

#include "kernel/elementwise/elementwise.h"
#include "kernel/gemm/gemm_bf16_tile.h"

enum {
    BLOCK_ROWS = 512, /* of C at a time: 1 MiB */
    BLOCK_COLS = 512,
    LEAST_ROWS = 128, /* fewer, down to these, where threads would have nothing to do */
    LEAST_COLS = 64,
    RUN_BLOCKS = 8, /* 256 k: 16 KiB of B for two tiles, and as much of A passes by */
    K_A_BLOCK = 2 * STI_BF16_PAIRS,
    FETCH_A = 4 * K_A_BLOCK,  /* so far ahead */
    ONCE_PAIRS = 2048,        /* up to so many pairs of k A and B are packed once: */
    ONCE_A_PAIRS = 512 << 10, /* so much of A by a thread, */
    ONCE_B_PAIRS = 1 << 20,   /* so much of B at a time by all, */
    ONCE_COLS = 512           /* these a piece of work */
};

typedef struct gemm_job {
    const sti_gemm_bf16_shape *shape;
    const sti_bf16 *a, *b;
    const sti_epilogue *epilogue;
    void *c;
    const sti_bf16_tile_kernels *tiles;
    const sti_bf16_kernels *loops;
    bool once;
    int64_t group,
        group_cols; /* first column of B and number of those packed at once */
    int64_t block_rows, row_blocks; /* of a piece */
    int64_t part_cols, col_parts;
    int64_t block_cols, run_pairs, runs;
    int64_t a_pairs, b_pairs, c_floats, worker_pairs, once_pairs;
    uint32_t *once_b, *scratch;
} gemm_job;

static int64_t ceil_div(int64_t a, int64_t b)
{
    return (a + b - 1) / b;
}

static int64_t min_of(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

static int64_t max_of(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

/* Equal blocks of at most `most`, a multiple of 16. */
static int64_t block_length(int64_t length, int64_t most)
{
    return ceil_div(ceil_div(length, ceil_div(length, most)), 16) * 16;
}

/* Pieces, at least two for each of several threads. */
static void cut_pieces(gemm_job *j, int64_t m, int threads)
{
    int64_t rows = BLOCK_ROWS, cols = j->once ? j->group_cols : BLOCK_COLS;
    if (j->once)
        rows = min_of(rows, max_of(ONCE_A_PAIRS / (j->runs * j->run_pairs), 16));
    for (;;) {
        j->block_rows = block_length(m, rows);
        j->part_cols = block_length(j->group_cols, cols);
        j->row_blocks = ceil_div(m, j->block_rows);
        j->col_parts = ceil_div(j->group_cols, j->part_cols);
        const bool enough =
            threads == 1 || j->row_blocks * j->col_parts >= 2 * (int64_t)threads;
        if (enough || (rows <= LEAST_ROWS && cols <= LEAST_COLS))
            return;
        if (rows > LEAST_ROWS && (j->once || 2 * rows > cols))
            rows /= 2;
        else if (cols > LEAST_COLS)
            cols /= 2;
        else
            rows /= 2;
    }
}

static gemm_job gemm_make(const sti_gemm_bf16_shape *s, int threads)
{
    gemm_job j = {.shape = s};
    const int64_t blocks = max_of(sti_bf16_blocks(ceil_div(s->k, 2)), 1);
    const int64_t n = max_of(s->n, 1);
    j.run_pairs = min_of(blocks, RUN_BLOCKS) * STI_BF16_PAIRS;
    j.runs = ceil_div(blocks, RUN_BLOCKS);
    const int64_t k_pairs = j.runs * j.run_pairs;
    j.once = k_pairs <= ONCE_PAIRS;
    j.group_cols = block_length(n, j.once ? ONCE_B_PAIRS / k_pairs : n);
    cut_pieces(&j, max_of(s->m, 1), threads);
    j.block_cols = min_of(j.part_cols, BLOCK_COLS);
    j.a_pairs = j.block_rows * (j.once ? k_pairs : j.run_pairs);
    j.b_pairs = j.once ? 0 : j.run_pairs * j.block_cols;
    j.once_pairs = j.once ? k_pairs * j.group_cols : 0;
    j.c_floats = j.block_rows * j.block_cols;
    j.worker_pairs = j.a_pairs + j.b_pairs + j.c_floats;
    return j;
}

size_t sti_gemm_bf16_scratch_bytes(const sti_gemm_bf16_shape *shape, int threads)
{
    int64_t most = 0; /* over all teams up to that size */
    for (int t = 1; t <= threads; t++) {
        const gemm_job j = gemm_make(shape, t);
        most = max_of(most, j.once_pairs + t * j.worker_pairs);
    }
    return 64 + (size_t)most * sizeof(uint32_t);
}

/* One piece: where it stands and what it holds. Of A, each run of k is
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
    return sti_bf16_blocks(ceil_div(k, 2)) * TILE_PAIRS;
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
        p->job->loops->transpose32(src, turned, 0, min_of(p->rows - r, STI_BF16_ROWS),
                                   (sti_bf16 *)dst, K_A_BLOCK);
    }
}

/* The same of A in rows, which may lie too far apart for a prefetcher. */
static void pack_rows_a(const gemm_piece *p, int64_t r, int64_t k0, int64_t k1,
                        uint32_t *dst)
{
    const int64_t lda = p->job->shape->lda, rows = min_of(p->rows - r, STI_BF16_ROWS);
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
    for (int64_t i = 4 * fours; i < min_of(ks, 4 * fours + 2);
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
    const int64_t blocks = sti_bf16_blocks(ceil_div(k1 - k0, 2));
    for (int64_t i = 0; i < blocks; i++) {
        const int64_t k = k0 + i * K_A_BLOCK, ks = min_of(k1 - k, K_A_BLOCK);
        for (int64_t c = 0; c < cols; c += STI_BF16_COLS) {
            if (c % LINE_ELEMENTS == 0)
                fetch_block_b(j, n0 + c, k + ks, min_of(k1 - k - ks, K_A_BLOCK));
            pack_block_b(j, n0 + c, min_of(cols - c, STI_BF16_COLS), k, ks,
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
    k_run r = {.k0 = 2 * index * j->run_pairs, .index = index};
    r.k1 = min_of(j->shape->k, r.k0 + 2 * j->run_pairs);
    r.blocks = sti_bf16_blocks(ceil_div(r.k1 - r.k0, 2));
    return r;
}

/* Where the columns c.. of the group are packed. */
static uint32_t *once_b(const gemm_job *j, const k_run *r, int64_t c)
{
    return j->once_b + r->index * j->run_pairs * j->group_cols +
           c * r->blocks * STI_BF16_PAIRS;
}

static void pack_once_b(void *arg, int64_t piece, int worker)
{
    const gemm_job *j = arg;
    const k_run r = run_at(j, piece % j->runs);
    const int64_t c = piece / j->runs * ONCE_COLS;
    const int64_t end = min_of(j->group_cols, j->shape->n - j->group);
    (void)worker;
    pack_b(j, j->group + c, min_of(end - c, ONCE_COLS), r.k0, r.k1, once_b(j, &r, c));
}

/* Where the tile with element [r, c] of the block is summed up: all of it in one page,
 * since rows of C would take one each. */
static int64_t sum_tile(const gemm_piece *p, int64_t r, int64_t c)
{
    const int64_t across = ceil_div(p->cols, STI_BF16_COLS);
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
    const int64_t part = ceil_div(panels, ceil_div(p->rows, SQUARE));
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
        const int64_t cols = min_of(p->cols - c, STI_BF16_COLS);
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
    float held[STI_BF16_ROWS * BLOCK_COLS];
    const int64_t ld = there ? s->ldc : BLOCK_COLS;
    for (int64_t r = 0; r < p->rows; r += STI_BF16_ROWS) {
        const int64_t rows = min_of(p->rows - r, STI_BF16_ROWS);
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
    for (int64_t i = 0; i < j->runs; i++) {
        const k_run r = run_at(j, i);
        if (j->once) {
            run_tiles(p, &r, p->a + i * j->block_rows * j->run_pairs,
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
    const int64_t group_end = min_of(j->group + j->group_cols, s->n);
    const int64_t first = j->group + piece % j->col_parts * j->part_cols;
    const int64_t end = min_of(first + j->part_cols, group_end);
    if (first >= end) /* of the last group, which may be narrower */
        return;
    p.m0 = piece / j->col_parts * j->block_rows;
    p.rows = min_of(j->block_rows, s->m - p.m0);
    p.a = j->scratch + worker * j->worker_pairs;
    p.b = p.a + j->a_pairs;
    p.sums = (float *)(void *)(p.b + j->b_pairs);
    for (int64_t i = 0; j->once && i < j->runs; i++) {
        const k_run r = run_at(j, i);
        pack_a(&p, r.k0, r.k1, p.a + i * j->block_rows * j->run_pairs);
    }
    j->tiles->begin(STI_BF16_ROWS);
    for (p.n0 = first; p.n0 < end; p.n0 += j->block_cols) {
        p.cols = min_of(j->block_cols, end - p.n0);
        block_run(&p);
    }
    j->tiles->end();
}

void sti_gemm_bf16(const sti_team *team, const sti_gemm_bf16_shape *s,
                   const sti_bf16 *a, const sti_bf16 *b, const sti_epilogue *epilogue,
                   void *c_out, void *scratch)
{
    gemm_job j = gemm_make(s, team->threads);
    if (s->m == 0 || s->n == 0)
        return;
    j.a = a;
    j.b = b;
    j.epilogue = epilogue;
    j.c = c_out;
    j.tiles = sti_bf16_tiles_now();
    j.loops = sti_bf16_kernels_now();
    j.once_b = (uint32_t *)(((uintptr_t)scratch + 63) & ~(uintptr_t)63);
    j.scratch = j.once_b + j.once_pairs;
    for (; j.group < s->n; j.group += j.group_cols) {
        const int64_t cols = min_of(j.group_cols, s->n - j.group);
        if (j.once)
            sti_team_run(team, j.runs * ceil_div(cols, ONCE_COLS), pack_once_b, &j);
        sti_team_run(team, j.row_blocks * j.col_parts, gemm_piece_run, &j);
    }
    if (epilogue && epilogue->relu_mask && s->c_bf16)
        j.loops->mask(s->m * s->n, c_out, epilogue->relu_mask);
    else if (epilogue && epilogue->relu_mask)
        j.loops->mask_f32(s->m * s->n, c_out, epilogue->relu_mask);
}
