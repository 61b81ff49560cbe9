/* The planner of bfloat16 products: the only place where their blocks, copies and
 * scratch are decided. */
#include "kernel/gemm/gemm_bf16.h"
#include "kernel/gemm/gemm_bf16_tile.h"

/* The block sizes: rows and columns of C, blocks of 32 k, pairs of k. */
enum {
    BLOCK_ROWS = 512, /* of C at a time, with as many columns: 1 MiB */
    LEAST_ROWS = 128, /* fewer, down to these, where threads would have nothing to do */
    LEAST_COLS = 64,
    RUN_BLOCKS = 8, /* 256 k: 16 KiB of B for two tiles, and as much of A passes by */
    ONCE_PAIRS = 2048,        /* up to so many pairs of k A and B are packed once: */
    ONCE_A_PAIRS = 512 << 10, /* so much of A by a thread, */
    ONCE_B_PAIRS = 1 << 20    /* so much of B at a time by all */
};

static int64_t larger(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

/* Equal blocks of at most `most`, a multiple of 16. */
static int64_t block_length(int64_t length, int64_t most)
{
    const int64_t blocks = sti_gemm_ceil_div(length, most);
    return sti_gemm_round_up(sti_gemm_ceil_div(length, blocks), 16);
}

/* Pieces, at least two for each of several threads. */
static void cut_pieces(int64_t m, sti_gemm_bf16_plan *p)
{
    int64_t rows = BLOCK_ROWS,
            cols = p->once ? p->group_cols : STI_GEMM_BF16_BLOCK_COLS;
    if (p->once)
        rows = sti_gemm_min(rows, larger(ONCE_A_PAIRS / (p->runs * p->run_pairs), 16));
    for (;;) {
        p->block_rows = block_length(m, rows);
        p->part_cols = block_length(p->group_cols, cols);
        p->row_blocks = sti_gemm_ceil_div(m, p->block_rows);
        p->col_parts = sti_gemm_ceil_div(p->group_cols, p->part_cols);
        const bool enough =
            p->threads == 1 || p->row_blocks * p->col_parts >= 2 * (int64_t)p->threads;
        if (enough || (rows <= LEAST_ROWS && cols <= LEAST_COLS))
            return;
        if (rows > LEAST_ROWS && (p->once || 2 * rows > cols))
            rows /= 2;
        else if (cols > LEAST_COLS)
            cols /= 2;
        else
            rows /= 2;
    }
}

static void plan_scratch(sti_gemm_bf16_plan *p)
{
    const int64_t k_pairs = p->runs * p->run_pairs;
    p->a_pairs = p->block_rows * (p->once ? k_pairs : p->run_pairs);
    p->b_pairs = p->once ? 0 : p->run_pairs * p->block_cols;
    p->once_pairs = p->once ? k_pairs * p->group_cols : 0;
    p->c_floats = p->block_rows * p->block_cols;
    p->worker_pairs = p->a_pairs + p->b_pairs + p->c_floats;
    const int64_t pairs = p->once_pairs + p->threads * p->worker_pairs;
    p->scratch_bytes = 64 + (size_t)pairs * sizeof(uint32_t);
}

void sti_gemm_plan_bf16(const sti_gemm_bf16_shape *shape, int threads,
                        sti_gemm_bf16_plan *plan_out)
{
    sti_gemm_bf16_plan p = {.shape = *shape, .threads = threads};
    const int64_t k_pairs = sti_gemm_ceil_div(shape->k, 2);
    const int64_t blocks = larger(sti_bf16_blocks(k_pairs), 1);
    const int64_t n = larger(shape->n, 1);
    p.run_pairs = sti_gemm_min(blocks, RUN_BLOCKS) * STI_BF16_PAIRS;
    p.runs = sti_gemm_ceil_div(blocks, RUN_BLOCKS);
    p.once = p.runs * p.run_pairs <= ONCE_PAIRS;
    p.group_cols = block_length(n, p.once ? ONCE_B_PAIRS / (p.runs * p.run_pairs) : n);
    cut_pieces(larger(shape->m, 1), &p);
    p.block_cols = sti_gemm_min(p.part_cols, STI_GEMM_BF16_BLOCK_COLS);
    plan_scratch(&p);
    *plan_out = p;
}

size_t sti_gemm_bf16_scratch_bytes(const sti_gemm_bf16_shape *shape, int threads)
{
    sti_gemm_bf16_plan plan;
    size_t most = 0;
    for (int t = 1; t <= threads; t++) {
        sti_gemm_plan_bf16(shape, t, &plan);
        most = plan.scratch_bytes > most ? plan.scratch_bytes : most;
    }
    return most;
}
