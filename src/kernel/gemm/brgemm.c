/* BRGEMM on the register tiles: the three ways to name blocks become offsets, which the
 * tiles walk as runs of k. Offsets made here wait on the stack, so a long batch takes
 * several passes over C, which keep its bits. */
#include "kernel/gemm/brgemm.h"

#include <stddef.h>

#include "kernel/gemm/gemm_columns.h"

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

/* What all tiles of a pass share. Field by field: an initialiser is compiled to clear
 * the whole first, in one instruction that takes as long as stores of a small C. */
static void pass_run(const brgemm_pass *p, float *c)
{
    const sti_brgemm *g = p->g;
    sti_gemm_tile t;
    t.a = p->a;
    t.b = p->b;
    t.a_row = t.a_step = g->lda;
    t.b_step = g->ldb;
    t.a_run = p->a_run;
    t.b_run = p->b_run;
    t.runs = p->runs;
    t.run_k = g->k;
    t.c = c;
    t.c_row = g->ldc;
    t.load = p->load;
    t.relu = p->finish && g->relu;
    t.bias = p->finish ? g->bias : NULL;
    sti_gemm_columns(p->kernels, &t, g->m, g->n, g->trans_a);
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
