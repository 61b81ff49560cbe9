/* Blocked product of bfloat16 matrices: for every block of C and run of k, blocks of A
 * and B (second-level cache) are packed as pairs and meet in register tiles, two by
 * two. Sums wait in float32 scratch until the last run. */
#include "kernel/gemm_bf16.h"

#include <string.h>

#include "kernel/elementwise.h"
#include "kernel/gemm_bf16_tile.h"

enum {
    BLOCK_ROWS = 512, /* A is packed for so many columns, B for so many rows at once; */
    BLOCK_COLS = 1024,
    LEAST_ROWS = 128, /* fewer, down to these, where threads would have nothing to do */
    LEAST_COLS = 64,
    RUN_BLOCKS = 8, /* 256 k: 16 KiB of B for two tiles, and as much of A passes by */
    K_A_BLOCK = 2 * STI_BF16_PAIRS
};

typedef struct gemm_job {
    const sti_gemm_bf16_shape *shape;
    const sti_bf16 *a, *b;
    const sti_epilogue *epilogue;
    void *c;
    const sti_bf16_tile_kernels *tiles;
    const sti_bf16_kernels *loops;
    int64_t block_rows, block_cols, row_blocks, col_blocks, run_pairs;
    int64_t c_ld; /* not a multiple of 4 KiB */
    int64_t a_pairs, b_pairs, c_floats, worker_pairs;
    uint32_t *scratch;
} gemm_job;

static int64_t ceil_div(int64_t a, int64_t b)
{
    return (a + b - 1) / b;
}

static int64_t min_of(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

/* Equal blocks of at most `most`, a multiple of 16. */
static int64_t block_length(int64_t length, int64_t most)
{
    return ceil_div(ceil_div(length, ceil_div(length, most)), 16) * 16;
}

/* Blocks of C, at least two for each of several threads. */
static void cut_blocks(gemm_job *j, int64_t m, int64_t n, int threads)
{
    int64_t rows = BLOCK_ROWS, cols = BLOCK_COLS;
    for (;;) {
        j->block_rows = block_length(m, rows);
        j->block_cols = block_length(n, cols);
        j->row_blocks = ceil_div(m, j->block_rows);
        j->col_blocks = ceil_div(n, j->block_cols);
        const bool enough =
            threads == 1 || j->row_blocks * j->col_blocks >= 2 * (int64_t)threads;
        if (enough || (rows <= LEAST_ROWS && cols <= LEAST_COLS))
            return;
        if (cols > LEAST_COLS && (cols >= 2 * rows || rows <= LEAST_ROWS))
            cols /= 2;
        else
            rows /= 2;
    }
}

static gemm_job gemm_make(const sti_gemm_bf16_shape *s, int threads)
{
    gemm_job j = {.shape = s};
    const int64_t blocks = sti_bf16_blocks(ceil_div(s->k, 2));
    cut_blocks(&j, s->m > 0 ? s->m : 1, s->n > 0 ? s->n : 1, threads);
    j.run_pairs = min_of(blocks, RUN_BLOCKS) * STI_BF16_PAIRS;
    j.a_pairs = j.block_rows * j.run_pairs;
    j.b_pairs = j.run_pairs * j.block_cols;
    j.c_ld = j.block_cols + STI_BF16_COLS;
    j.c_floats = j.block_rows * j.c_ld;
    j.worker_pairs = j.a_pairs + j.b_pairs + j.c_floats;
    return j;
}

size_t sti_gemm_bf16_scratch_bytes(const sti_gemm_bf16_shape *shape, int threads)
{
    int64_t most = 0; /* over all teams up to that size */
    for (int t = 1; t <= threads; t++) {
        const int64_t pairs = t * gemm_make(shape, t).worker_pairs;
        most = pairs > most ? pairs : most;
    }
    return 64 + (size_t)most * sizeof(uint32_t);
}

/* One piece: where it stands and what it holds. */
typedef struct gemm_piece {
    const gemm_job *job;
    int64_t m0, rows, n0, cols;
    uint32_t *a, *b; /* a [rows / 16, rounded up][blocks of k][16][16] pairs */
    float *sums;     /* [block_rows][c_ld] */
} gemm_piece;

enum { TILE_PAIRS = STI_BF16_ROWS * STI_BF16_PAIRS };

/* Pairs of 16 rows of A: tiles that lie one after the other as they are read. */
static int64_t tiles_a(int64_t k)
{
    return sti_bf16_blocks(ceil_div(k, 2)) * TILE_PAIRS;
}

/* 16 rows r.. of A, stored in columns. */
static void pack_columns_a(const gemm_piece *p, int64_t r, int64_t k0, int64_t k1,
                           uint32_t *dst)
{
    const sti_gemm_bf16_shape *s = p->job->shape;
    const sti_bf16 *src[K_A_BLOCK];
    for (int64_t k = k0; k < k1; k += K_A_BLOCK, dst += TILE_PAIRS) {
        for (int64_t i = 0; i < K_A_BLOCK; i++)
            src[i] = k + i < k1 ? p->job->a + (k + i) * s->lda + p->m0 + r : NULL;
        p->job->loops->transpose32(src, min_of(p->rows - r, STI_BF16_ROWS),
                                   (sti_bf16 *)dst, K_A_BLOCK);
    }
}

/* The same of A in rows. */
static void pack_rows_a(const gemm_piece *p, int64_t r, int64_t k0, int64_t k1,
                        uint32_t *dst)
{
    const sti_gemm_bf16_shape *s = p->job->shape;
    for (int64_t i = 0; i < STI_BF16_ROWS; i++, dst += STI_BF16_PAIRS) {
        const sti_bf16 *src = p->job->a + (p->m0 + r + i) * s->lda + k0;
        int64_t left = r + i < p->rows ? k1 - k0 : 0;
        uint32_t *block = dst;
        for (; left >= K_A_BLOCK; left -= K_A_BLOCK, block += TILE_PAIRS) {
            memcpy(block, src, K_A_BLOCK * sizeof *src);
            src += K_A_BLOCK;
        }
        for (; block < dst + tiles_a(k1 - k0); block += TILE_PAIRS, left = 0) {
            memset(block, 0, K_A_BLOCK * sizeof *src);
            if (left > 0)
                memcpy(block, src, (size_t)left * sizeof *src);
        }
    }
}

/* Rows m0.., k0..k1 of A as pairs, padded with zeros to whole tiles. */
static void pack_a(const gemm_piece *p, int64_t k0, int64_t k1)
{
    uint32_t *dst = p->a;
    for (int64_t r = 0; r < p->rows; r += STI_BF16_ROWS, dst += tiles_a(k1 - k0)) {
        if (p->job->shape->trans_a)
            pack_columns_a(p, r, k0, k1, dst);
        else
            pack_rows_a(p, r, k0, k1, dst);
    }
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
        j->loops->interleave_rows(whole, cols, src, ldb, 2 * ldb, out, STI_BF16_COLS);
        if (ks % 2)
            j->loops->interleave(cols, src + 2 * whole * ldb, NULL,
                                 out + whole * STI_BF16_COLS);
        return;
    }
    float rows[STI_BF16_COLS * STI_BF16_PAIRS] = {0}; /* pairs */
    for (int64_t c = 0; c < cols; c++)
        memcpy(rows + c * STI_BF16_PAIRS, j->b + (n0 + c) * ldb + k0,
               (size_t)ks * sizeof *j->b);
    j->loops->transpose_f32(STI_BF16_COLS, STI_BF16_PAIRS, rows, (float *)(void *)out,
                            STI_BF16_COLS);
}

/* The columns of B, k0..k1, in panels [pairs][16] padded with zeros; a block of k of
 * all panels at a time. */
static void pack_b(const gemm_piece *p, int64_t k0, int64_t k1)
{
    const int64_t blocks = sti_bf16_blocks(ceil_div(k1 - k0, 2));
    for (int64_t i = 0; i < blocks; i++)
        for (int64_t c = 0; c < p->cols; c += STI_BF16_COLS)
            pack_block_b(p->job, p->n0 + c, min_of(p->cols - c, STI_BF16_COLS),
                         k0 + i * K_A_BLOCK, min_of(k1 - k0 - i * K_A_BLOCK, K_A_BLOCK),
                         p->b + (c * blocks + i * STI_BF16_COLS) * STI_BF16_PAIRS);
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
        t->c_tile[i] = r * j->c_ld + c;
    }
    if (t->count == 4)
        j->tiles->square(t);
    else if (cols == 2)
        j->tiles->share_a(t);
    else
        j->tiles->share_b(t);
}

static void run_k(const gemm_piece *p, int64_t k0, int64_t k1)
{
    static const int64_t zero_run[1] = {0};
    sti_bf16_tile t = {
        .rows = STI_BF16_ROWS,
        .load = k0 > 0,
        .runs = 1,
        .blocks = sti_bf16_blocks(ceil_div(k1 - k0, 2)),
        .a = p->a,
        .b = p->b,
        .a_row = STI_BF16_PAIRS,
        .a_block = TILE_PAIRS,
        .b_row = STI_BF16_COLS,
        .a_run = zero_run,
        .c = p->sums,
        .c_row = p->job->c_ld,
    };
    pack_a(p, k0, k1);
    pack_b(p, k0, k1);
    for (int64_t col = 0; col < p->cols; col += 2 * STI_BF16_COLS)
        for (int64_t row = 0; row < p->rows; row += 2 * STI_BF16_ROWS)
            few_tiles(p, &t, row, col);
}

/* Sums to C. */
static void piece_store(const gemm_piece *p)
{
    const gemm_job *j = p->job;
    const sti_gemm_bf16_shape *s = j->shape;
    const sti_epilogue *e = j->epilogue;
    for (int64_t r = 0; r < p->rows; r++) {
        float *sum = p->sums + r * j->c_ld;
        const int64_t at = (p->m0 + r) * s->ldc + p->n0;
        for (int64_t i = 0; e && i < p->cols; i++) {
            sum[i] += e->bias ? e->bias[p->n0 + i] : 0.0f;
            sum[i] = e->relu && sum[i] <= 0.0f ? 0.0f : sum[i];
        }
        if (s->accumulate)
            sti_add_f32(&sti_team_serial, p->cols, sum, (float *)j->c + at);
        else if (s->c_bf16)
            j->loops->from_f32(p->cols, sum, (sti_bf16 *)j->c + at);
        else
            memcpy((float *)j->c + at, sum, (size_t)p->cols * sizeof *sum);
    }
}

static void gemm_piece_run(void *arg, int64_t piece, int worker)
{
    const gemm_job *j = arg;
    const sti_gemm_bf16_shape *s = j->shape;
    gemm_piece p = {.job = j};
    p.m0 = piece / j->col_blocks * j->block_rows;
    p.n0 = piece % j->col_blocks * j->block_cols;
    p.rows = min_of(j->block_rows, s->m - p.m0);
    p.cols = min_of(j->block_cols, s->n - p.n0);
    p.a = j->scratch + worker * j->worker_pairs;
    p.b = p.a + j->a_pairs;
    p.sums = (float *)(void *)(p.b + j->b_pairs);
    if (s->k == 0)
        memset(p.sums, 0, (size_t)j->c_floats * sizeof *p.sums);
    j->tiles->begin(STI_BF16_ROWS);
    for (int64_t k = 0; k < s->k; k += 2 * j->run_pairs)
        run_k(&p, k, min_of(k + 2 * j->run_pairs, s->k));
    j->tiles->end();
    piece_store(&p);
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
    j.loops = STI_BF16_KERNELS_NOW(sti_bf16_kernels);
    j.scratch = (uint32_t *)(((uintptr_t)scratch + 63) & ~(uintptr_t)63);
    sti_team_run(team, j.row_blocks * j.col_blocks, gemm_piece_run, &j);
    if (epilogue && epilogue->relu_mask && s->c_bf16)
        j.loops->mask(s->m * s->n, c_out, epilogue->relu_mask);
    else if (epilogue && epilogue->relu_mask)
        j.loops->mask_f32(s->m * s->n, c_out, epilogue->relu_mask);
}
