/* 8-bit products by blocks: rows of A as words of four steps (second-level cache),
 * panels of B (first level), register tiles; pieces are rows or columns of C. Panels
 * are packed once for all blocks of rows of a piece. */
#include "kernel/gemm/gemm_i8.h"

#include <string.h>

#include "base/cpu.h"
#include "kernel/gemm/gemm_i8_tile.h"

enum {
    BLOCK_K = 1536,         /* bytes of k a pass, 384 words */
    A_WORDS = 80 << 10,     /* of A copied by all threads together */
    LEAST_ROWS = 112,       /* but so many rows at least */
    IN_PLACE_COLS = 64,     /* that read rows of A once or twice, as they lie */
    PANEL_COLS = 32,        /* of B packed at a time, */
    KEEP_WORDS = 512 << 10, /* and kept where there are several blocks of rows */
    SERIAL_PRODUCTS = 1 << 20
};

typedef struct i8_plan {
    const sti_gemm_i8_shape *shape;
    const sti_gemm_i8_kernels *kernels;
    const uint8_t *a, *b;
    int32_t *c;
    const sti_dequantize *epilogue;
    bool by_columns; /* pieces are columns of C */
    int64_t pieces, part;
    int64_t block_rows, block_cols, b_cols; /* b_cols: of B packed side by side */
    int64_t words, a_ld; /* words a pass; between rows or steps of A */
    size_t a_words, b_words, worker_words;
    uint32_t *scratch;
} i8_plan;

static int64_t ceil_div(int64_t a, int64_t b)
{
    return (a + b - 1) / b;
}

static int64_t round_up(int64_t a, int64_t to)
{
    return ceil_div(a, to) * to;
}

static int64_t smaller(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

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

static i8_plan plan_make(const sti_gemm_i8_shape *s, int threads)
{
    i8_plan p = {.shape = s, .pieces = 1, .by_columns = s->n > s->m};
    const int64_t length = p.by_columns ? s->n : s->m;
    const int64_t unit = p.by_columns ? 32 : 14;
    p.part = round_up(length > 0 ? length : 1, unit);
    if (threads > 1 && s->m > 0 && s->n > 0 && s->k > SERIAL_PRODUCTS / (s->m * s->n)) {
        p.part = round_up(ceil_div(length, threads), unit);
        p.pieces = ceil_div(length, p.part);
    }
    const int64_t steps = s->k > 0 ? smaller(s->k, BLOCK_K) : 1;
    const int64_t words = ceil_div(steps, STI_I8_STEPS);
    int64_t rows = A_WORDS / (words + 16) / threads / 14 * 14;
    rows = rows < LEAST_ROWS ? LEAST_ROWS : rows;
    p.words = words;
    p.block_rows = smaller(rows, round_up(p.by_columns ? s->m : p.part, 14));
    p.a_ld = s->trans_a ? round_up(p.block_rows, 16) + 16 : round_up(words, 16) + 16;
    const int64_t cols = round_up(p.by_columns ? p.part : s->n, PANEL_COLS);
    const bool keep = p.block_rows < (p.by_columns ? s->m : p.part);
    p.block_cols =
        keep ? smaller(cols, KEEP_WORDS / words / PANEL_COLS * PANEL_COLS) : cols;
    p.a_words = (size_t)((s->trans_a ? words : p.block_rows) * p.a_ld);
    p.b_cols = keep ? p.block_cols : PANEL_COLS;
    p.b_words = (size_t)(words * p.b_cols);
    p.worker_words = (size_t)round_up((int64_t)(p.a_words + p.b_words) + p.b_cols, 16);
    return p;
}

size_t sti_gemm_i8_scratch_bytes(const sti_gemm_i8_shape *shape, int threads)
{
    size_t most = 0; /* over all teams up to that size */
    for (int t = 1; t <= threads; t++) {
        const size_t words = (size_t)t * plan_make(shape, t).worker_words;
        most = words > most ? words : most;
    }
    return 64 + most * sizeof(uint32_t);
}

/* A block of C: rows m0.., columns n0.., and the pass k0.. that is under way. */
typedef struct i8_block {
    const i8_plan *plan;
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
    return s->plan->b_cols > PANEL_COLS ? j : 0;
}

/* Rows of whole words that few columns read: a copy would take longer than they do. */
static bool reads_in_place(const i8_block *s)
{
    const sti_gemm_i8_shape *shape = s->plan->shape;
    return !shape->trans_a && !shape->a_signed && shape->n <= IN_PLACE_COLS &&
           shape->lda % STI_I8_STEPS == 0 && s->ks % STI_I8_STEPS == 0 &&
           (uintptr_t)s->plan->a % sizeof(uint32_t) == 0;
}

static void take_rows(i8_block *s)
{
    const i8_plan *p = s->plan;
    const sti_gemm_i8_shape *shape = p->shape;
    if (reads_in_place(s)) {
        s->rows_at =
            (const uint32_t *)(const void *)(p->a + s->m0 * shape->lda + s->k0);
        s->rows_ld = shape->lda / STI_I8_STEPS;
        return;
    }
    s->rows_at = s->a;
    s->rows_ld = p->a_ld;
    const uint8_t flip = shape->a_signed ? 128 : 0;
    if (shape->trans_a) {
        p->kernels->pack(p->a + s->k0 * shape->lda + s->m0, shape->lda, s->ks, s->rows,
                         p->a_ld, flip, s->a);
        return;
    }
    const int64_t words = ceil_div(s->ks, STI_I8_STEPS);
    for (int64_t r = 0; r < s->rows; r++) {
        uint8_t *dst = (uint8_t *)(s->a + r * p->a_ld);
        s->a[r * p->a_ld + words - 1] = 0;
        memcpy(dst, p->a + (s->m0 + r) * shape->lda + s->k0, (size_t)s->ks);
        for (int64_t i = 0; flip && i < s->ks; i++)
            dst[i] ^= flip;
    }
}

/* One panel of B, j columns into the block. */
static void take_panel(const i8_block *s, int64_t j, int64_t cols, int64_t width)
{
    const i8_plan *p = s->plan;
    const sti_gemm_i8_shape *shape = p->shape;
    const int64_t n = s->n0 + j, words = ceil_div(s->ks, STI_I8_STEPS);
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
    const i8_plan *p = s->plan;
    const int64_t n = s->n0 + j, words = ceil_div(s->ks, STI_I8_STEPS);
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
    const i8_plan *p = s->plan;
    sti_dequantize e = *p->epilogue;
    e.scale += n;
    e.bias = e.bias ? e.bias + n : NULL;
    p->kernels->dequantize(&e, s->rows, cols, p->shape->ldc,
                           p->c + s->m0 * p->shape->ldc + n);
}

static void block_pass(i8_block *s)
{
    const i8_plan *p = s->plan;
    take_rows(s);
    for (int64_t j = 0, cols; j < s->cols; j += cols) {
        const int64_t left = s->cols - j;
        const int nv = left > STI_PANEL && p->kernels->max_rows[2] > 0 ? 2 : 1;
        const int64_t width = (int64_t)nv * STI_PANEL;
        cols = smaller(left, width);
        if (!s->packed)
            take_panel(s, j, cols, width);
        panel_tiles(s, j, cols, nv);
        if (p->epilogue && s->k0 + s->ks == p->shape->k)
            panel_finish(s, s->n0 + j, cols);
    }
}

static void piece_run(void *arg, int64_t piece, int worker)
{
    const i8_plan *p = arg;
    const sti_gemm_i8_shape *shape = p->shape;
    const int64_t first = piece * p->part;
    const int64_t m0 = p->by_columns ? 0 : first;
    const int64_t m1 = p->by_columns ? shape->m : smaller(shape->m, first + p->part);
    const int64_t n0 = p->by_columns ? first : 0;
    const int64_t n1 = p->by_columns ? smaller(shape->n, first + p->part) : shape->n;
    i8_block s = {.plan = p};
    s.a = p->scratch + (size_t)worker * p->worker_words;
    s.b = s.a + p->a_words;
    s.offset = (int32_t *)(void *)(s.b + p->b_words);
    for (s.n0 = n0; s.n0 < n1; s.n0 += p->block_cols) {
        s.cols = smaller(p->block_cols, n1 - s.n0);
        for (s.k0 = 0; s.k0 < shape->k; s.k0 += BLOCK_K) {
            s.ks = smaller(BLOCK_K, shape->k - s.k0);
            s.packed = false;
            for (s.m0 = m0; s.m0 < m1; s.m0 += p->block_rows) {
                s.rows = smaller(p->block_rows, m1 - s.m0);
                block_pass(&s);
                s.packed = p->b_cols > PANEL_COLS;
            }
        }
    }
}

/* k = 0: nothing is added. */
static void empty_sums(const i8_plan *p)
{
    const sti_gemm_i8_shape *s = p->shape;
    for (int64_t r = 0; r < s->m; r++)
        if (!s->accumulate)
            memset(p->c + r * s->ldc, 0, (size_t)s->n * sizeof *p->c);
    if (p->epilogue)
        p->kernels->dequantize(p->epilogue, s->m, s->n, s->ldc, p->c);
}

static void run(const sti_team *team, const sti_gemm_i8_shape *shape, const void *a,
                const int8_t *b, const sti_dequantize *epilogue, int32_t *c,
                void *scratch)
{
    if (shape->m == 0 || shape->n == 0)
        return;
    i8_plan p = plan_make(shape, team->threads);
    p.kernels = kernels_now();
    p.a = a;
    p.b = (const uint8_t *)b;
    p.c = c;
    p.epilogue = epilogue;
    p.scratch = (uint32_t *)(((uintptr_t)scratch + 63) & ~(uintptr_t)63);
    if (shape->k == 0)
        empty_sums(&p);
    else
        sti_team_run(team, p.pieces, piece_run, &p);
}

void sti_gemm_i8(const sti_team *team, const sti_gemm_i8_shape *shape, const void *a,
                 const int8_t *b, int32_t *c_out, void *scratch)
{
    run(team, shape, a, b, NULL, c_out, scratch);
}

void sti_gemm_i8_dequantize(const sti_team *team, const sti_gemm_i8_shape *shape,
                            const void *a, const int8_t *b,
                            const sti_dequantize *epilogue, float *y_out, void *scratch)
{
    run(team, shape, a, b, epilogue, (int32_t *)(void *)y_out, scratch);
}
