/* GEMM on the blocked product. */
#include "kernel/gemm/gemm.h"

#include "kernel/gemm/gemm_block.h"
#include "kernel/gemm/gemm_columns.h"

static sti_block_job gemm_job(const sti_gemm_shape *shape, int64_t count)
{
    return (sti_block_job){
        .items = count,
        .m = shape->m,
        .n = shape->n,
        .k = shape->k,
        .a_steps = shape->trans_a,
        .b_columns = shape->trans_b,
        .accumulate = shape->accumulate,
        .lda = shape->lda,
        .ldb = shape->ldb,
        .ldc = shape->ldc,
    };
}

/* So small that planning would be felt: one call of the tiles, which read A in place,
 * and B, where its rows do not push each other out of caches. A B in columns is turned
 * whole. */
static bool is_small(const sti_gemm_shape *s, int threads)
{
    const int64_t most = 256, most_cols = s->k <= 64 ? 1000 : most;
    const int64_t alone = s->trans_b ? most * most * most : 1 << 20;
    const int64_t work = threads > 1 ? STI_BLOCK_SHARED : alone;
    const bool near = s->trans_b ? s->m > STI_GEMM_FLOW
                                 : s->ldb <= (s->n > most ? most_cols : 2 * most);
    return s->m <= most && s->n > 0 && s->n <= most_cols && s->k <= most &&
           s->lda <= 2 * most && s->m * s->n * s->k <= work && near;
}

/* Floats between the steps of a B in columns that is turned for a small product. */
static int64_t turned_ld(const sti_gemm_shape *s)
{
    return (s->n + STI_PANEL - 1) / STI_PANEL * STI_PANEL;
}

/* Where C is read or a bias added, products may be cut in other ways: enough for all,
 * as the epilogue comes with the call. */
size_t sti_gemm_batched_scratch_bytes(const sti_gemm_shape *shape, int64_t count,
                                      int threads)
{
    sti_block_job job = gemm_job(shape, count);
    size_t most = 0;
    for (int accumulate = 0; accumulate < 2; accumulate++) {
        job.accumulate = accumulate;
        const size_t bytes = sti_block_scratch_bytes(&job, threads);
        most = bytes > most ? bytes : most;
    }
    if (count == 1 && shape->trans_b && is_small(shape, 1)) {
        const size_t floats = (size_t)(shape->k * turned_ld(shape));
        const size_t bytes = 64 + floats * sizeof(float);
        most = bytes > most ? bytes : most;
    }
    return most;
}

size_t sti_gemm_scratch_bytes(const sti_gemm_shape *shape, int threads)
{
    return sti_gemm_batched_scratch_bytes(shape, 1, threads);
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
        float *const turned = sti_block_align(scratch);
        t.b_step = turned_ld(s);
        kernels->pack_transposed(b, s->ldb, s->k, s->n, t.b_step, turned);
        t.b = turned;
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
    sti_float_mode_leave(mode);
}

void sti_gemm_f32(const sti_team *team, const sti_gemm_shape *shape, const float *a,
                  const float *b, const sti_epilogue *epilogue, float *c_out,
                  void *scratch)
{
    if (is_small(shape, team->threads) && !(epilogue && epilogue->relu_mask)) {
        small_product(shape, a, b, epilogue, c_out, scratch);
        return;
    }
    const sti_gemm_batch one = {.count = 1, .c_stride = shape->m * shape->n};
    sti_gemm_batched_f32(team, shape, &one, a, b, epilogue, c_out, scratch);
}

void sti_gemm_batched_f32(const sti_team *team, const sti_gemm_shape *shape,
                          const sti_gemm_batch *batch, const float *a, const float *b,
                          const sti_epilogue *epilogue, float *c_out, void *scratch)
{
    sti_block_job job = gemm_job(shape, batch->count);
    job.a = a;
    job.a_item = batch->a_stride;
    job.b = b;
    job.b_item = batch->b_stride;
    job.c = c_out;
    job.c_item = batch->c_stride;
    if (epilogue) {
        job.bias = epilogue->bias;
        job.relu = epilogue->relu;
    }
    sti_block_run(team, &job, scratch);
    if (epilogue && epilogue->relu_mask)
        sti_block_mask(team, c_out, batch->count * shape->m * shape->n,
                       epilogue->relu_mask);
}
