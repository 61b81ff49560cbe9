/* BRGEMM on the register tiles: the three ways to name blocks become offsets, which the
 * tiles walk as runs of k. Offsets made here wait on the stack, so a long batch takes
 * several passes over C, which keep its bits. */
#include "kernel/brgemm.h"

#include <stddef.h>

#include "kernel/gemm_tile.h"

enum { BATCH = 64 }; /* blocks a pass */

/* One pass: at most BATCH blocks. */
typedef struct brgemm_pass {
    const sti_brgemm *g;
    const sti_gemm_kernels *kernels;
    const float *a, *b;
    const int64_t *a_run, *b_run;
    int64_t runs;
    bool load, finish;
} brgemm_pass;

/* The columns of C in t, in the fewest tiles: some of a height and the others one
 * lower. */
static void column_tiles(const brgemm_pass *p, sti_gemm_tile *t)
{
    const sti_brgemm *g = p->g;
    const int64_t a_row = g->trans_a ? 1 : g->lda;
    const int most = sti_gemm_most_rows(p->kernels, t->nv, t->cols);
    void (*tile)(const sti_gemm_tile *) = g->trans_a ? p->kernels->tn : p->kernels->nn;
    const int64_t tiles = g->m > most ? (g->m + most - 1) / most : 1;
    const int64_t rows = tiles > 1 ? g->m / tiles : g->m, higher = g->m - tiles * rows;
    float *c = t->c;
    t->a = p->a;
    for (int low = higher == 0; low < 2; low++) {
        t->rows = (int)(low ? rows : rows + 1);
        t->lines = low ? tiles - higher : higher;
        t->a_line = t->rows * a_row;
        t->c_line = t->rows * g->ldc;
        tile(t);
        t->a += t->lines * t->a_line;
        t->c += t->lines * t->c_line;
    }
    t->c = c;
}

/* What all tiles of a pass share. Field by field: an initialiser is compiled to clear
 * the whole first, in one instruction that takes as long as stores of a small C. */
static inline __attribute__((always_inline)) sti_gemm_tile
pass_tile(const brgemm_pass *p, float *c)
{
    const sti_brgemm *g = p->g;
    sti_gemm_tile t;
    t.b = p->b;
    t.a_row = t.a_step = g->lda;
    t.b_step = g->ldb;
    t.a_run = p->a_run;
    t.b_run = p->b_run;
    t.runs = p->runs;
    t.run_k = g->k;
    t.c = c;
    t.c_row = g->ldc;
    t.b_line = 0;
    t.c_next = t.next = NULL;
    t.next_row = t.next_cols = t.next_rows = 0;
    t.load = p->load;
    t.relu = p->finish && g->relu;
    t.bias = p->finish ? g->bias : NULL;
    return t;
}

/* Columns to choose panels for: half a panel goes beside two or three others, or after
 * all. */
static int64_t beside(const sti_gemm_kernels *kernels, int64_t cols)
{
    const bool few = cols > 2 * STI_PANEL && cols <= 4 * STI_PANEL;
    return few ? cols : sti_gemm_whole_cols(kernels, cols);
}

static void pass_run(const brgemm_pass *p, float *c)
{
    const sti_brgemm *g = p->g;
    sti_gemm_tile t = pass_tile(p, c);
    for (int64_t left = g->m > 0 ? g->n : 0; left > 0; left -= t.cols) {
        t.nv = sti_gemm_wide_panels(p->kernels, beside(p->kernels, left));
        t.cols = (int64_t)t.nv * STI_PANEL;
        t.b_part = left < t.cols;
        if (t.b_part)
            t.cols = left;
        column_tiles(p, &t);
        t.b += t.cols;
        t.c += t.cols;
        if (t.bias)
            t.bias += t.cols;
    }
}

static brgemm_pass pass_make(const sti_brgemm *g, int64_t br, int64_t i,
                             const int64_t *a_run, const int64_t *b_run)
{
    const int64_t left = br - i;
    return (brgemm_pass){
        .g = g,
        .kernels = sti_gemm_kernels_now(),
        .a_run = a_run,
        .b_run = b_run,
        .runs = left < BATCH ? left : BATCH,
        .load = g->accumulate || i > 0,
        .finish = left <= BATCH,
    };
}

/* Floats from p to q, which may lie in different arrays. */
static int64_t floats_between(const float *p, const float *q)
{
    return (int64_t)((uintptr_t)q - (uintptr_t)p) / (int64_t)sizeof(float);
}

void sti_brgemm_address_f32(const sti_brgemm *g, int64_t br, const float *const *a,
                            const float *const *b, float *c)
{
    int64_t a_run[BATCH], b_run[BATCH], i = 0;
    do {
        brgemm_pass p = pass_make(g, br, i, a_run, b_run);
        if (p.runs > 0) {
            p.a = a[i];
            p.b = b[i];
        }
        for (int64_t r = 0; r < p.runs; r++) {
            a_run[r] = floats_between(p.a, a[i + r]);
            b_run[r] = floats_between(p.b, b[i + r]);
        }
        pass_run(&p, c);
        i += BATCH;
    } while (i < br);
}

void sti_brgemm_offset_f32(const sti_brgemm *g, int64_t br, const float *a,
                           const float *b, const int64_t *a_offset,
                           const int64_t *b_offset, float *c)
{
    const brgemm_pass p = {
        .g = g,
        .kernels = sti_gemm_kernels_now(),
        .a = a,
        .b = b,
        .a_run = a_offset,
        .b_run = b_offset,
        .runs = br,
        .load = g->accumulate,
        .finish = true,
    };
    pass_run(&p, c);
}

void sti_brgemm_stride_f32(const sti_brgemm *g, int64_t br, const float *a,
                           const float *b, int64_t a_stride, int64_t b_stride, float *c)
{
    int64_t a_run[BATCH], b_run[BATCH], i = 0;
    for (int64_t r = 0; r < BATCH && r < br; r++) {
        a_run[r] = r * a_stride;
        b_run[r] = r * b_stride;
    }
    do {
        brgemm_pass p = pass_make(g, br, i, a_run, b_run);
        p.a = a + i * a_stride;
        p.b = b + i * b_stride;
        pass_run(&p, c);
        i += BATCH;
    } while (i < br);
}
