/* The planner of 8-bit products: the only place where their blocks, copies and scratch
 * are decided. */
#include "kernel/gemm/gemm_i8.h"
#include "kernel/gemm/gemm_i8_tile.h"
#include "kernel/gemm/gemm_plan.h"

/* The block sizes: words of four steps, rows, columns, multiply-adds. */
enum {
    A_WORDS = 80 << 10,     /* of A copied by all threads together */
    LEAST_ROWS = 112,       /* but so many rows at least */
    ROWS_UNIT = 14,         /* rows of the largest tile */
    PANEL_COLS = 32,        /* of B packed at a time, */
    KEEP_WORDS = 512 << 10, /* and kept where there are several blocks of rows */
    SERIAL_PRODUCTS = 1 << 20
};

/* Pieces: a part of the longer side of C for each thread. */
static void cut_pieces(sti_gemm_i8_plan *p)
{
    const sti_gemm_i8_shape *s = &p->shape;
    const int64_t length = p->by_columns ? s->n : s->m;
    const int64_t unit = p->by_columns ? PANEL_COLS : ROWS_UNIT;
    p->pieces = 1;
    p->part = sti_gemm_round_up(length > 0 ? length : 1, unit);
    if (p->threads > 1 && s->m > 0 && s->n > 0 &&
        s->k > SERIAL_PRODUCTS / (s->m * s->n)) {
        p->part = sti_gemm_round_up(sti_gemm_ceil_div(length, p->threads), unit);
        p->pieces = sti_gemm_ceil_div(length, p->part);
    }
}

/* Rows of a block, and whether packed columns of B serve several of them. */
static void cut_blocks(sti_gemm_i8_plan *p)
{
    const sti_gemm_i8_shape *s = &p->shape;
    const int64_t piece_rows = p->by_columns ? s->m : p->part;
    const int64_t cols = sti_gemm_round_up(p->by_columns ? p->part : s->n, PANEL_COLS);
    const int64_t rows = A_WORDS / (p->words + 16) / p->threads / ROWS_UNIT * ROWS_UNIT;
    p->block_rows = sti_gemm_min(rows < LEAST_ROWS ? LEAST_ROWS : rows,
                                 sti_gemm_round_up(piece_rows, ROWS_UNIT));
    const bool several = p->block_rows < piece_rows;
    p->block_cols = cols;
    if (several)
        p->block_cols =
            sti_gemm_min(cols, KEEP_WORDS / p->words / PANEL_COLS * PANEL_COLS);
    p->b_cols = several ? p->block_cols : PANEL_COLS;
    p->keeps_b = p->b_cols > PANEL_COLS;
}

void sti_gemm_plan_i8(const sti_gemm_i8_shape *shape, int threads,
                      sti_gemm_i8_plan *plan_out)
{
    sti_gemm_i8_plan p = {
        .shape = *shape, .threads = threads, .by_columns = shape->n > shape->m};
    const int64_t steps =
        shape->k > 0 ? sti_gemm_min(shape->k, STI_GEMM_I8_BLOCK_K) : 1;
    p.words = sti_gemm_ceil_div(steps, STI_I8_STEPS);
    cut_pieces(&p);
    cut_blocks(&p);
    const int64_t line = shape->trans_a ? p.block_rows : p.words;
    p.a_ld = sti_gemm_round_up(line, 16) + 16;
    p.a_words = (size_t)((shape->trans_a ? p.words : p.block_rows) * p.a_ld);
    p.b_words = (size_t)(p.words * p.b_cols);
    p.worker_words =
        (size_t)sti_gemm_round_up((int64_t)(p.a_words + p.b_words) + p.b_cols, 16);
    p.scratch_bytes = 64 + (size_t)threads * p.worker_words * sizeof(uint32_t);
    *plan_out = p;
}

size_t sti_gemm_i8_scratch_bytes(const sti_gemm_i8_shape *shape, int threads)
{
    sti_gemm_i8_plan plan;
    size_t most = 0;
    for (int t = 1; t <= threads; t++) {
        sti_gemm_plan_i8(shape, t, &plan);
        most = plan.scratch_bytes > most ? plan.scratch_bytes : most;
    }
    return most;
}
