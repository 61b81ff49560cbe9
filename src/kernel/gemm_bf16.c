/* Blocked product of bfloat16 matrices: for every block of C and run of k, a block of A
 * (second-level cache) and panels of B (first-level cache) are packed as pairs and meet
 * in register tiles. Sums wait in float32: in C itself where it is float32 and one
 * chain is all there is, else in scratch, one block a level of the tree. */
#include "kernel/gemm_bf16.h"

#include <string.h>

#include "kernel/gemm_bf16_tile.h"

enum {
    BLOCK_ROWS = 336, /* 24 tiles of 14 */
    BLOCK_COLS = 256,
    RUN_PAIRS = 256 /* a panel of 32 columns: 32 KiB */
};

typedef struct gemm_job {
    const sti_gemm_bf16_shape *shape;
    const sti_bf16 *a, *b;
    const sti_epilogue *epilogue;
    void *c;
    const sti_bf16_tile_kernels *tiles;
    const sti_bf16_kernels *loops;
    int64_t block_rows, block_cols, row_blocks, col_blocks, chunks;
    int levels; /* blocks of sums; 0: C holds them */
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

/* Equal blocks of at most `most`, a multiple of `unit`. */
static int64_t block_length(int64_t length, int64_t most, int64_t unit)
{
    return length == 0
               ? unit
               : ceil_div(ceil_div(length, ceil_div(length, most)), unit) * unit;
}

static gemm_job gemm_make(const sti_gemm_bf16_shape *s)
{
    gemm_job j = {.shape = s};
    const int64_t run = min_of(RUN_PAIRS, ceil_div(s->k, 2));
    j.block_rows = block_length(s->m, BLOCK_ROWS, 2);
    j.block_cols = block_length(s->n, BLOCK_COLS, 2 * STI_BF16_PANEL);
    if (ceil_div(s->m, j.block_rows) * ceil_div(s->n, j.block_cols) < 4)
        j.block_cols = block_length(s->n, BLOCK_COLS / 4, 2 * STI_BF16_PANEL);
    j.row_blocks = ceil_div(s->m, j.block_rows);
    j.col_blocks = ceil_div(s->n, j.block_cols);
    j.chunks = s->k > 0 ? ceil_div(s->k, STI_GEMM_CHUNK) : 1;
    if (j.chunks > 1)
        for (int64_t c = 2 * j.chunks - 1; c > 0; c /= 2)
            j.levels++;
    else if (s->c_bf16 && s->k > 2 * RUN_PAIRS)
        j.levels = 1;
    j.a_pairs = j.block_rows * (run + 16);
    j.b_pairs = run * 2 * STI_BF16_PANEL;
    j.c_floats = j.block_rows * j.block_cols;
    j.worker_pairs = ceil_div(j.a_pairs + j.b_pairs + j.levels * j.c_floats, 16) * 16;
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
    uint32_t *a, *b; /* a [rows][a_ld] pairs */
    int64_t a_ld;
    float *sums;
} gemm_piece;

/* Rows m0.., k0..k1 of A as pairs. */
static void pack_a(const gemm_piece *p, int64_t k0, int64_t k1)
{
    const sti_gemm_bf16_shape *s = p->job->shape;
    const int64_t whole = (k1 - k0) / 2;
    for (int64_t r = 0; r < p->rows; r++) {
        uint32_t *dst = p->a + r * p->a_ld;
        const sti_bf16 *src = p->job->a;
        if (!s->trans_a) {
            src += (p->m0 + r) * s->lda + k0;
            memcpy(dst, src, (size_t)whole * sizeof *dst);
            if ((k1 - k0) % 2)
                dst[whole] = src[2 * whole];
            continue;
        }
        src += k0 * s->lda + p->m0 + r;
        for (int64_t i = 0; i < whole; i++, src += 2 * s->lda)
            dst[i] = (uint32_t)src[0] | (uint32_t)src[s->lda] << 16;
        if ((k1 - k0) % 2)
            dst[whole] = src[0];
    }
}

/* A panel [pairs][width] of B, columns n0.. */
static void pack_b(const gemm_piece *p, int64_t n0, int64_t cols, int64_t width,
                   int64_t k0, int64_t k1)
{
    const sti_gemm_bf16_shape *s = p->job->shape;
    const int64_t pairs = ceil_div(k1 - k0, 2), whole = (k1 - k0) / 2;
    if (cols < width)
        memset(p->b, 0, (size_t)(pairs * width) * sizeof *p->b);
    if (!s->trans_b) {
        const sti_bf16 *src = p->job->b + k0 * s->ldb + n0;
        p->job->loops->interleave_rows(whole, cols, src, s->ldb, 2 * s->ldb, p->b,
                                       width);
        if (pairs > whole)
            p->job->loops->interleave(cols, src + 2 * whole * s->ldb, NULL,
                                      p->b + whole * width);
        return;
    }
    for (int64_t j = 0; j < cols; j++) {
        const sti_bf16 *src = p->job->b + (n0 + j) * s->ldb + k0;
        for (int64_t i = 0; i < whole; i++)
            p->b[i * width + j] = (uint32_t)src[2 * i] | (uint32_t)src[2 * i + 1] << 16;
        if (pairs > whole)
            p->b[whole * width + j] = src[2 * whole];
    }
}

/* k0..k1 of the piece into c (float, or sti_bf16 on the last run of a one-run sum). */
static void piece_run_k(const gemm_piece *p, int64_t k0, int64_t k1, void *c,
                        int64_t ldc, bool load, bool finish)
{
    static const int64_t zero_run[1] = {0};
    const gemm_job *j = p->job;
    const sti_gemm_bf16_shape *s = j->shape;
    const bool c_bf16 = finish && s->c_bf16 && c == j->c;
    pack_a(p, k0, k1);
    for (int64_t col = 0, cols; col < p->cols; col += cols) {
        const int nv = sti_bf16_panels(p->cols - col);
        cols = min_of(p->cols - col, (int64_t)nv * STI_BF16_PANEL);
        pack_b(p, p->n0 + col, cols, (int64_t)nv * STI_BF16_PANEL, k0, k1);
        const int64_t at = c == j->c ? p->m0 * ldc + p->n0 + col : col;
        sti_bf16_tile t = {
            .b = p->b,
            .a_row = p->a_ld,
            .a_step = 1,
            .a_run = zero_run,
            .runs = 1,
            .run_k = ceil_div(k1 - k0, 2),
            .c_row = ldc,
            .cols = cols,
            .nv = nv,
            .lines = 1,
            .load = load,
            .c_bf16 = c_bf16,
        };
        if (finish && j->epilogue) {
            t.relu = j->epilogue->relu;
            t.bias = j->epilogue->bias ? j->epilogue->bias + p->n0 + col : NULL;
        }
        for (int64_t r = 0; r < p->rows; r += t.rows) {
            t.rows = sti_bf16_next_rows(p->rows - r, nv);
            t.a = p->a + r * p->a_ld;
            t.c = (char *)c + (at + r * ldc) * (c_bf16 ? 2 : 4);
            j->tiles->rows(&t);
        }
    }
}

/* One chain, k0..k1, in runs that the caches like. */
static void piece_chain(const gemm_piece *p, int64_t k0, int64_t k1, void *c,
                        int64_t ldc, bool finish)
{
    bool load = false;
    do {
        const int64_t end = min_of(k1, k0 + 2 * RUN_PAIRS);
        piece_run_k(p, k0, end, c, ldc, load, finish && end == k1);
        load = true;
        k0 = end;
    } while (k0 < k1);
}

static void join(float *left, const float *right, int64_t n)
{
    for (int64_t i = 0; i < n; i++)
        left[i] += right[i];
}

/* Sums in scratch to C. */
static void piece_store(const gemm_piece *p, bool epilogue)
{
    const gemm_job *j = p->job;
    const sti_gemm_bf16_shape *s = j->shape;
    const sti_epilogue *e = epilogue ? j->epilogue : NULL;
    for (int64_t r = 0; r < p->rows; r++) {
        float *sum = p->sums + r * j->block_cols;
        const int64_t at = (p->m0 + r) * s->ldc + p->n0;
        for (int64_t i = 0; e && i < p->cols; i++) {
            sum[i] += e->bias ? e->bias[p->n0 + i] : 0.0f;
            sum[i] = e->relu && 0.0f > sum[i] ? 0.0f : sum[i];
        }
        if (s->c_bf16)
            j->loops->from_f32(p->cols, sum, (sti_bf16 *)j->c + at);
        else
            memcpy((float *)j->c + at, sum, (size_t)p->cols * sizeof *sum);
    }
}

static void piece_chunks(const gemm_piece *p)
{
    const gemm_job *j = p->job;
    int top = 0;
    for (int64_t chunk = 0; chunk < j->chunks; chunk++) {
        const int64_t k0 = chunk * STI_GEMM_CHUNK;
        piece_chain(p, k0, min_of(k0 + STI_GEMM_CHUNK, j->shape->k),
                    p->sums + top++ * j->c_floats, j->block_cols, false);
        for (int64_t count = chunk + 1; count % 2 == 0; count /= 2, top--)
            join(p->sums + (top - 2) * j->c_floats, p->sums + (top - 1) * j->c_floats,
                 j->c_floats);
    }
    for (; top > 1; top--)
        join(p->sums + (top - 2) * j->c_floats, p->sums + (top - 1) * j->c_floats,
             j->c_floats);
    piece_store(p, true);
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
    p.a_ld = min_of(RUN_PAIRS, ceil_div(s->k, 2)) + 16;
    p.a = j->scratch + worker * j->worker_pairs;
    p.b = p.a + j->a_pairs;
    p.sums = (float *)(void *)(p.b + j->b_pairs);
    if (j->chunks > 1) {
        piece_chunks(&p);
    } else if (j->levels == 1) {
        piece_chain(&p, 0, s->k, p.sums, j->block_cols, true);
        piece_store(&p, false);
    } else {
        piece_chain(&p, 0, s->k, j->c, s->ldc, true);
    }
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
