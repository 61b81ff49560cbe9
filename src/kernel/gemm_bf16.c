/* Blocked product of bfloat16 matrices: for every block of C and run of k, a block of A
 * (second-level cache) and panels of B (first-level cache) are packed as pairs and meet
 * in register tiles. Sums wait in float32 scratch until the last run. */
#include "kernel/gemm_bf16.h"

#include <string.h>

#include "kernel/gemm_bf16_tile.h"

enum {
    BLOCK_ROWS = 384, /* 4 groups of 6 tiles */
    BLOCK_COLS = 256,
    RUN_BLOCKS = 12, /* 384 k: 24 KiB of B for 32 columns, 288 KiB of A */
    GROUP_ROWS = STI_BF16_TILES * STI_BF16_ROWS
};

typedef struct gemm_job {
    const sti_gemm_bf16_shape *shape;
    const sti_bf16 *a, *b;
    const sti_epilogue *epilogue;
    void *c;
    const sti_bf16_tile_kernels *tiles;
    const sti_bf16_kernels *loops;
    int64_t block_rows, block_cols, row_blocks, col_blocks, run_pairs;
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

static gemm_job gemm_make(const sti_gemm_bf16_shape *s)
{
    gemm_job j = {.shape = s};
    const int64_t m = s->m > 0 ? s->m : 1, n = s->n > 0 ? s->n : 1;
    const int64_t blocks = sti_bf16_blocks(ceil_div(s->k, 2));
    j.block_rows = block_length(m, BLOCK_ROWS);
    j.block_cols = block_length(n, BLOCK_COLS);
    if (ceil_div(m, j.block_rows) * ceil_div(n, j.block_cols) < 4)
        j.block_cols = block_length(n, BLOCK_COLS / 4);
    j.row_blocks = ceil_div(m, j.block_rows);
    j.col_blocks = ceil_div(n, j.block_cols);
    j.run_pairs = min_of(blocks, RUN_BLOCKS) * STI_BF16_PAIRS;
    j.a_pairs = j.block_rows * (j.run_pairs + STI_BF16_PAIRS);
    j.b_pairs = j.run_pairs * STI_BF16_COLS;
    j.c_floats = j.block_rows * j.block_cols;
    j.worker_pairs = j.a_pairs + j.b_pairs + j.c_floats;
    return j;
}

size_t sti_gemm_bf16_scratch_bytes(const sti_gemm_bf16_shape *shape, int threads)
{
    const gemm_job j = gemm_make(shape);
    return 64 + (size_t)(threads * j.worker_pairs) * sizeof(uint32_t);
}

/* One piece: where it stands and what it holds. */
typedef struct gemm_piece {
    const gemm_job *job;
    int64_t m0, rows, n0, cols;
    uint32_t *a, *b; /* a [rows, rounded up to 16][a_ld] pairs */
    int64_t a_ld;
    float *sums; /* [block_rows][block_cols] */
} gemm_piece;

static uint32_t pair_of(sti_bf16 even, sti_bf16 odd)
{
    return (uint32_t)even | (uint32_t)odd << 16;
}

/* Rows m0.., k0..k1 of A as pairs, padded with zeros to whole tiles. */
static void pack_a(const gemm_piece *p, int64_t k0, int64_t k1)
{
    const sti_gemm_bf16_shape *s = p->job->shape;
    const int64_t whole = (k1 - k0) / 2, step = s->trans_a ? s->lda : 1;
    const int64_t pairs = sti_bf16_blocks(ceil_div(k1 - k0, 2)) * STI_BF16_PAIRS;
    for (int64_t r = 0; r < ceil_div(p->rows, 16) * 16; r++) {
        uint32_t *dst = p->a + r * p->a_ld;
        int64_t i = 0;
        if (r < p->rows) {
            const sti_bf16 *src = s->trans_a ? p->job->a + k0 * s->lda + p->m0 + r
                                             : p->job->a + (p->m0 + r) * s->lda + k0;
            if (step == 1)
                memcpy(dst, src, (size_t)whole * sizeof *dst);
            else
                for (int64_t k = 0; k < whole; k++)
                    dst[k] = pair_of(src[2 * k * step], src[(2 * k + 1) * step]);
            i = whole;
            if ((k1 - k0) % 2)
                dst[i++] = src[2 * whole * step];
        }
        memset(dst + i, 0, (size_t)(pairs - i) * sizeof *dst);
    }
}

/* A panel [pairs][16] of B, columns n0.., padded with zeros. */
static void pack_b(const gemm_piece *p, int64_t n0, int64_t cols, int64_t k0,
                   int64_t k1)
{
    const sti_gemm_bf16_shape *s = p->job->shape;
    const int64_t pairs = ceil_div(k1 - k0, 2), whole = (k1 - k0) / 2;
    const int64_t padded = sti_bf16_blocks(pairs) * STI_BF16_PAIRS;
    const int64_t clear = cols < STI_BF16_COLS ? 0 : pairs;
    memset(p->b + clear * STI_BF16_COLS, 0,
           (size_t)((padded - clear) * STI_BF16_COLS) * sizeof *p->b);
    if (!s->trans_b) {
        const sti_bf16 *src = p->job->b + k0 * s->ldb + n0;
        p->job->loops->interleave_rows(whole, cols, src, s->ldb, 2 * s->ldb, p->b,
                                       STI_BF16_COLS);
        if (pairs > whole)
            p->job->loops->interleave(cols, src + 2 * whole * s->ldb, NULL,
                                      p->b + whole * STI_BF16_COLS);
        return;
    }
    for (int64_t j = 0; j < cols; j++) {
        const sti_bf16 *src = p->job->b + (n0 + j) * s->ldb + k0;
        for (int64_t i = 0; i < whole; i++)
            p->b[i * STI_BF16_COLS + j] = pair_of(src[2 * i], src[2 * i + 1]);
        if (pairs > whole)
            p->b[whole * STI_BF16_COLS + j] = src[2 * whole];
    }
}

static void run_k(const gemm_piece *p, int64_t k0, int64_t k1)
{
    static const int64_t zero_run[1] = {0};
    const gemm_job *j = p->job;
    const int64_t row_tiles = ceil_div(p->rows, STI_BF16_ROWS);
    pack_a(p, k0, k1);
    for (int64_t col = 0; col < p->cols; col += STI_BF16_COLS) {
        pack_b(p, p->n0 + col, min_of(p->cols - col, STI_BF16_COLS), k0, k1);
        sti_bf16_tile t = {
            .rows = STI_BF16_ROWS,
            .load = k0 > 0,
            .runs = 1,
            .blocks = sti_bf16_blocks(ceil_div(k1 - k0, 2)),
            .a = p->a,
            .b = p->b,
            .a_row = p->a_ld,
            .b_row = STI_BF16_COLS,
            .a_run = zero_run,
            .c = p->sums + col,
            .c_row = j->block_cols,
        };
        for (int64_t first = 0; first < row_tiles; first += STI_BF16_TILES) {
            t.count = (int)min_of(row_tiles - first, STI_BF16_TILES);
            for (int i = 0; i < t.count; i++) {
                t.a_tile[i] = (first + i) * STI_BF16_ROWS * p->a_ld;
                t.c_tile[i] = (first + i) * STI_BF16_ROWS * j->block_cols;
            }
            j->tiles->share_b(&t);
        }
    }
}

/* Sums to C. */
static void piece_store(const gemm_piece *p)
{
    const gemm_job *j = p->job;
    const sti_gemm_bf16_shape *s = j->shape;
    const sti_epilogue *e = j->epilogue;
    for (int64_t r = 0; r < p->rows; r++) {
        float *sum = p->sums + r * j->block_cols;
        const int64_t at = (p->m0 + r) * s->ldc + p->n0;
        for (int64_t i = 0; e && i < p->cols; i++) {
            sum[i] += e->bias ? e->bias[p->n0 + i] : 0.0f;
            sum[i] = e->relu && sum[i] <= 0.0f ? 0.0f : sum[i];
        }
        if (s->c_bf16)
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
    p.a_ld = j->run_pairs + STI_BF16_PAIRS; /* not a multiple of 4 KiB */
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
    gemm_job j = gemm_make(s);
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
