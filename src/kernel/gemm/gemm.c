/* GEMM on the blocked product, and small products past it. */
#include "kernel/gemm/gemm.h"

#include <assert.h>

#include "kernel/gemm/gemm_block.h"
#include "kernel/gemm/gemm_columns.h"

static sti_block_job gemm_job(const sti_gemm_shape *shape, const sti_gemm_batch *batch)
{
    return (sti_block_job){
        .items = batch->count,
        .m = shape->m,
        .n = shape->n,
        .k = shape->k,
        .a_k_major = shape->trans_a,
        .b_columns = shape->trans_b,
        .accumulate = shape->accumulate,
        .a_item = batch->a_stride,
        .lda = shape->lda,
        .b_item = batch->b_stride,
        .ldb = shape->ldb,
        .c_item = batch->c_stride,
        .ldc = shape->ldc,
    };
}

/* So small that planning would be felt: one call of the tiles, which read A in place,
 * and B, where its rows do not push each other out of caches. A B in columns is
 * transposed whole. */
static bool is_small(const sti_gemm_shape *s, int threads)
{
    const int64_t most = 256, most_cols = s->k <= 64 ? 1000 : most;
    const int64_t alone = s->trans_b ? most * most * most : 1 << 20;
    const int64_t work = threads > 1 ? STI_BLOCK_SHARED : alone;
    const bool near = s->trans_b ? s->m > STI_GEMM_STREAM_B_ROWS
                                 : s->ldb <= (s->n > most ? most_cols : 2 * most);
    return s->m <= most && s->n > 0 && s->n <= most_cols && s->k <= most &&
           s->lda <= 2 * most && s->m * s->n * s->k <= work && near;
}

/* Floats between the steps of a B in columns that is transposed for a small product. */
static int64_t transposed_ld(const sti_gemm_shape *s)
{
    return (s->n + STI_PANEL - 1) / STI_PANEL * STI_PANEL;
}

static size_t small_scratch_bytes(const sti_gemm_shape *s)
{
    const int64_t floats = s->trans_b ? s->k * transposed_ld(s) : 0;
    return 64 + (size_t)floats * sizeof(float);
}

/* Field by field: small products would feel it if all of a plan were cleared first. */
void sti_gemm_plan_f32(const sti_gemm_shape *shape, const sti_gemm_batch *batch,
                       bool bias, int threads, sti_gemm_plan *plan_out)
{
    static const float some_bias[1];
    sti_gemm_plan *const p = plan_out;
    p->shape = *shape;
    p->batch.count = 1;
    p->batch.a_stride = p->batch.b_stride = p->batch.c_stride = 0;
    if (batch)
        p->batch = *batch;
    p->bias = bias;
    if (p->batch.count == 1 && is_small(shape, threads)) {
        p->blocks.path = STI_GEMM_SMALL;
        p->blocks.threads = threads;
        p->scratch_bytes = small_scratch_bytes(shape);
        return;
    }
    sti_block_job job = gemm_job(shape, &p->batch);
    job.bias = bias ? some_bias : NULL;
    p->blocks = sti_block_plan_make(&job, threads);
    p->scratch_bytes = p->blocks.scratch_bytes;
}

static void small_product(const sti_gemm_shape *s, const float *a, const float *b,
                          const sti_epilogue *epilogue, float *c, void *scratch)
{
    static const int64_t zero[1] = {0};
    const sti_gemm_kernels *kernels = sti_gemm_kernels_now();
    sti_gemm_tile t;
    t.a = a;
    t.b = b;
    t.a_row = t.a_step = s->lda;
    t.b_step = s->ldb;
    if (s->trans_b) {
        float *const transposed = sti_block_align(scratch);
        t.b_step = transposed_ld(s);
        kernels->pack_transposed(b, s->ldb, s->k, s->n, t.b_step, transposed);
        t.b = transposed;
    }
    t.a_run = t.b_run = zero;
    t.runs = 1;
    t.run_k = s->k;
    t.c = c;
    t.c_row = s->ldc;
    t.load = s->accumulate;
    t.relu = epilogue && epilogue->relu;
    t.bias = epilogue ? epilogue->bias : NULL;
    const unsigned mode = sti_float_mode_enter();
    sti_gemm_columns(kernels, &t, s->m, s->n, s->trans_a);
    if (epilogue && epilogue->sine != 0)
        sti_block_sine(epilogue->sine, s->m, s->n, c, s->ldc);
    sti_float_mode_leave(mode);
}

static void blocked_product(const sti_team *team, const sti_gemm_plan *plan,
                            const float *a, const float *b,
                            const sti_epilogue *epilogue, float *c, void *scratch)
{
    sti_block_job job = gemm_job(&plan->shape, &plan->batch);
    job.a = a;
    job.b = b;
    job.c = c;
    if (epilogue) {
        job.bias = epilogue->bias;
        job.relu = epilogue->relu;
        job.sine = epilogue->sine;
    }
    assert(plan->bias || !job.bias);
    sti_block_plan_run(team, &plan->blocks, &job, scratch);
}

void sti_gemm_run_f32(const sti_team *team, const sti_gemm_plan *plan, const float *a,
                      const float *b, const sti_epilogue *epilogue, float *c_out,
                      void *scratch)
{
    const sti_gemm_shape *s = &plan->shape;
    if (plan->blocks.path == STI_GEMM_SMALL)
        small_product(s, a, b, epilogue, c_out, scratch);
    else
        blocked_product(team, plan, a, b, epilogue, c_out, scratch);
    if (epilogue && epilogue->relu_mask)
        sti_block_mask(team, c_out, plan->batch.count * s->m * s->n,
                       epilogue->relu_mask);
}

/* ---- without a plan at hand ---- */

size_t sti_gemm_batched_scratch_bytes(const sti_gemm_shape *shape, int64_t count,
                                      int threads)
{
    const sti_gemm_batch batch = {.count = count};
    sti_gemm_plan plan;
    size_t most = 0;
    for (int t = 1; t <= threads; t++)
        for (int bias = 0; bias < 2; bias++) {
            sti_gemm_plan_f32(shape, &batch, bias, t, &plan);
            most = plan.scratch_bytes > most ? plan.scratch_bytes : most;
        }
    return most;
}

size_t sti_gemm_scratch_bytes(const sti_gemm_shape *shape, int threads)
{
    return sti_gemm_batched_scratch_bytes(shape, 1, threads);
}

void sti_gemm_f32(const sti_team *team, const sti_gemm_shape *shape, const float *a,
                  const float *b, const sti_epilogue *epilogue, float *c_out,
                  void *scratch)
{
    sti_gemm_batched_f32(team, shape, NULL, a, b, epilogue, c_out, scratch);
}

void sti_gemm_batched_f32(const sti_team *team, const sti_gemm_shape *shape,
                          const sti_gemm_batch *batch, const float *a, const float *b,
                          const sti_epilogue *epilogue, float *c_out, void *scratch)
{
    sti_gemm_plan plan;
    sti_gemm_plan_f32(shape, batch, epilogue && epilogue->bias, team->threads, &plan);
    sti_gemm_run_f32(team, &plan, a, b, epilogue, c_out, scratch);
}
