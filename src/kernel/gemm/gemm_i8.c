/* 8-bit products by blocks: rows of A as words of four steps (second-level cache),
 * panels of B (first level), register tiles; pieces are rows or columns of C. Panels
 * are packed once for all blocks of rows of a piece. */
#include "kernel/gemm/gemm_i8.h"

#include <assert.h>
#include <string.h>

#include "base/cpu.h"
#include "kernel/gemm/gemm_i8_tile.h"
#include "kernel/gemm/gemm_plan.h"

enum {
    IN_PLACE_COLS = 64 /* up to so many read rows of A once or twice, as they lie */
};

/* A plan and what it is run on. */
typedef struct i8_call {
    const sti_gemm_i8_plan *plan;
    const sti_gemm_i8_shape *shape;
    const sti_gemm_i8_kernels *kernels;
    const uint8_t *a, *b;
    int32_t *c;
    const sti_dequantize *epilogue;
    uint32_t *scratch;
} i8_call;

static const sti_gemm_i8_kernels *kernels_now(void)
{
#if defined(__x86_64__)
    if (sti_isa_now() == STI_ISA_AVX512 && __builtin_cpu_supports("avx512vnni"))
        return &sti_gemm_i8_kernels_avx512vnni;
    if (sti_isa_now() != STI_ISA_REF)
        return &sti_gemm_i8_kernels_avx2;
#endif
    return &sti_gemm_i8_kernels_ref;
}

/* A block of C: rows m0.., columns n0.., and the pass k0.. that is under way. */
typedef struct i8_block {
    const i8_call *call;
    const sti_gemm_i8_plan *plan;
    int64_t m0, rows, n0, cols, k0, ks;
    uint32_t *a, *b;
    const uint32_t *rows_at; /* A as the tiles read it: in a, or in place, */
    int64_t rows_ld;         /* in words */
    int32_t *offset;         /* [b_cols] of this pass's columns */
    bool packed;             /* B, by a block of rows before this one */
} i8_block;

/* What a panel is packed to, j columns into the block. */
static int64_t panel_at(const i8_block *s, int64_t j)
{
    return s->plan->keeps_b ? j : 0;
}

/* Rows of whole words that few columns read: a copy would take longer than they do. */
static bool reads_in_place(const i8_block *s)
{
    const sti_gemm_i8_shape *shape = s->call->shape;
    return !shape->trans_a && !shape->a_signed && shape->n <= IN_PLACE_COLS &&
           shape->lda % STI_I8_STEPS == 0 && s->ks % STI_I8_STEPS == 0 &&
           (uintptr_t)s->call->a % sizeof(uint32_t) == 0;
}

static void take_rows(i8_block *s)
{
    const i8_call *p = s->call;
    const sti_gemm_i8_shape *shape = p->shape;
    const int64_t a_ld = s->plan->a_ld;
    if (reads_in_place(s)) {
        s->rows_at =
            (const uint32_t *)(const void *)(p->a + s->m0 * shape->lda + s->k0);
        s->rows_ld = shape->lda / STI_I8_STEPS;
        return;
    }
    s->rows_at = s->a;
    s->rows_ld = a_ld;
    const uint8_t flip = shape->a_signed ? 128 : 0;
    if (shape->trans_a) {
        p->kernels->pack(p->a + s->k0 * shape->lda + s->m0, shape->lda, s->ks, s->rows,
                         a_ld, flip, s->a);
        return;
    }
    const int64_t words = sti_gemm_ceil_div(s->ks, STI_I8_STEPS);
    for (int64_t r = 0; r < s->rows; r++) {
        uint8_t *dst = (uint8_t *)(s->a + r * a_ld);
        s->a[r * a_ld + words - 1] = 0;
        memcpy(dst, p->a + (s->m0 + r) * shape->lda + s->k0, (size_t)s->ks);
        for (int64_t i = 0; flip && i < s->ks; i++)
            dst[i] ^= flip;
    }
}

/* One panel of B, j columns into the block. */
static void take_panel(const i8_block *s, int64_t j, int64_t cols, int64_t width)
{
    const i8_call *p = s->call;
    const sti_gemm_i8_shape *shape = p->shape;
    const int64_t n = s->n0 + j, words = sti_gemm_ceil_div(s->ks, STI_I8_STEPS);
    uint32_t *b = s->b + panel_at(s, j) * words;
    int32_t *offset = s->offset + panel_at(s, j);
    if (shape->trans_b)
        p->kernels->pack_transposed(p->b + n * shape->ldb + s->k0, shape->ldb, s->ks,
                                    cols, width, b);
    else
        p->kernels->pack(p->b + s->k0 * shape->ldb + n, shape->ldb, s->ks, cols, width,
                         0, b);
    if (shape->a_signed) {
        memset(offset, 0, (size_t)width * sizeof *offset);
        p->kernels->offsets(b, words, width, offset);
    }
}

static void panel_tiles(const i8_block *s, int64_t j, int64_t cols, int nv)
{
    static const int64_t zero_run[1] = {0};
    const i8_call *p = s->call;
    const int64_t n = s->n0 + j, words = sti_gemm_ceil_div(s->ks, STI_I8_STEPS);
    const sti_gemm_i8_shape *shape = p->shape;
    const int most = p->kernels->max_rows[nv];
    const float *a = (const float *)(const void *)s->rows_at;
    float *c = (float *)(void *)(p->c + s->m0 * shape->ldc + n);
    sti_gemm_tile t = {
        .b = (const float *)(const void *)(s->b + panel_at(s, j) * words),
        .a_row = s->rows_ld,
        .a_step = s->rows_ld,
        .b_step = (int64_t)nv * STI_PANEL,
        .a_run = zero_run,
        .runs = 1,
        .run_k = words,
        .c_row = shape->ldc,
        .cols = cols,
        .nv = nv,
        .load = s->k0 > 0 || shape->accumulate,
        .bias = shape->a_signed
                    ? (const float *)(const void *)(s->offset + panel_at(s, j))
                    : NULL,
    };
    for (int64_t r = 0; r < s->rows; r += t.lines * t.rows) {
        t.rows = sti_gemm_next_rows(s->rows - r, most);
        t.lines = sti_gemm_equal_tiles(s->rows - r, most);
        t.a_line = shape->trans_a ? t.rows : t.rows * s->rows_ld;
        t.c_line = t.rows * shape->ldc;
        t.a = shape->trans_a ? a + r : a + r * s->rows_ld;
        t.c = c + r * shape->ldc;
        t.c_next = r + t.lines * t.rows < s->rows ? t.c + t.lines * t.c_line : c + cols;
        if (shape->trans_a)
            p->kernels->tn(&t);
        else
            p->kernels->nn(&t);
    }
}

/* The block's sums at columns n.. become floats. */
static void panel_finish(const i8_block *s, int64_t n, int64_t cols)
{
    const i8_call *p = s->call;
    sti_dequantize e = *p->epilogue;
    e.scale += n;
    e.bias = e.bias ? e.bias + n : NULL;
    p->kernels->dequantize(&e, s->rows, cols, p->shape->ldc,
                           p->c + s->m0 * p->shape->ldc + n);
}

static void block_pass(i8_block *s)
{
    const i8_call *p = s->call;
    take_rows(s);
    for (int64_t j = 0, cols; j < s->cols; j += cols) {
        const int64_t left = s->cols - j;
        const int nv = left > STI_PANEL && p->kernels->max_rows[2] > 0 ? 2 : 1;
        const int64_t width = (int64_t)nv * STI_PANEL;
        cols = sti_gemm_min(left, width);
        if (!s->packed)
            take_panel(s, j, cols, width);
        panel_tiles(s, j, cols, nv);
        if (p->epilogue && s->k0 + s->ks == p->shape->k)
            panel_finish(s, s->n0 + j, cols);
    }
}

static void piece_run(void *arg, int64_t piece, int worker)
{
    const i8_call *call = arg;
    const sti_gemm_i8_plan *p = call->plan;
    const sti_gemm_i8_shape *shape = call->shape;
    const int64_t first = piece * p->part;
    const int64_t m0 = p->by_columns ? 0 : first;
    const int64_t m1 =
        p->by_columns ? shape->m : sti_gemm_min(shape->m, first + p->part);
    const int64_t n0 = p->by_columns ? first : 0;
    const int64_t n1 =
        p->by_columns ? sti_gemm_min(shape->n, first + p->part) : shape->n;
    i8_block s = {.call = call, .plan = p};
    s.a = call->scratch + (size_t)worker * p->worker_words;
    s.b = s.a + p->a_words;
    s.offset = (int32_t *)(void *)(s.b + p->b_words);
    for (s.n0 = n0; s.n0 < n1; s.n0 += p->block_cols) {
        s.cols = sti_gemm_min(p->block_cols, n1 - s.n0);
        for (s.k0 = 0; s.k0 < shape->k; s.k0 += STI_GEMM_I8_BLOCK_K) {
            s.ks = sti_gemm_min(STI_GEMM_I8_BLOCK_K, shape->k - s.k0);
            s.packed = false;
            for (s.m0 = m0; s.m0 < m1; s.m0 += p->block_rows) {
                s.rows = sti_gemm_min(p->block_rows, m1 - s.m0);
                block_pass(&s);
                s.packed = p->keeps_b;
            }
        }
    }
}

/* k = 0: nothing is added. */
static void empty_sums(const i8_call *p)
{
    const sti_gemm_i8_shape *s = p->shape;
    for (int64_t r = 0; r < s->m; r++)
        if (!s->accumulate)
            memset(p->c + r * s->ldc, 0, (size_t)s->n * sizeof *p->c);
    if (p->epilogue)
        p->kernels->dequantize(p->epilogue, s->m, s->n, s->ldc, p->c);
}

static void run(const sti_team *team, const sti_gemm_i8_plan *plan, const void *a,
                const int8_t *b, const sti_dequantize *epilogue, int32_t *c,
                void *scratch)
{
    i8_call call = {.plan = plan,
                    .shape = &plan->shape,
                    .kernels = kernels_now(),
                    .a = a,
                    .b = (const uint8_t *)b,
                    .c = c,
                    .epilogue = epilogue};
    if (plan->shape.m == 0 || plan->shape.n == 0)
        return;
    assert(team->threads <= plan->threads);
    call.scratch = (uint32_t *)(((uintptr_t)scratch + 63) & ~(uintptr_t)63);
    if (plan->shape.k == 0)
        empty_sums(&call);
    else
        sti_team_run(team, plan->pieces, piece_run, &call);
}

void sti_gemm_run_i8(const sti_team *team, const sti_gemm_i8_plan *plan, const void *a,
                     const int8_t *b, int32_t *c_out, void *scratch)
{
    run(team, plan, a, b, NULL, c_out, scratch);
}

void sti_gemm_run_i8_dequantize(const sti_team *team, const sti_gemm_i8_plan *plan,
                                const void *a, const int8_t *b,
                                const sti_dequantize *epilogue, float *y_out,
                                void *scratch)
{
    run(team, plan, a, b, epilogue, (int32_t *)(void *)y_out, scratch);
}

void sti_gemm_i8(const sti_team *team, const sti_gemm_i8_shape *shape, const void *a,
                 const int8_t *b, int32_t *c_out, void *scratch)
{
    sti_gemm_i8_plan plan;
    sti_gemm_plan_i8(shape, team->threads, &plan);
    sti_gemm_run_i8(team, &plan, a, b, c_out, scratch);
}

void sti_gemm_i8_dequantize(const sti_team *team, const sti_gemm_i8_shape *shape,
                            const void *a, const int8_t *b,
                            const sti_dequantize *epilogue, float *y_out, void *scratch)
{
    sti_gemm_i8_plan plan;
    sti_gemm_plan_i8(shape, team->threads, &plan);
    sti_gemm_run_i8_dequantize(team, &plan, a, b, epilogue, y_out, scratch);
}
