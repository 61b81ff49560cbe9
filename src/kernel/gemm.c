/* GEMM on the blocked product. */
#include "kernel/gemm.h"

#include "kernel/gemm_block.h"
#include "kernel/gemm_columns.h"

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

/* Where C is read or a bias added, products may be cut in other ways: enough for both,
 * as the epilogue comes with the call. */
size_t sti_gemm_batched_scratch_bytes(const sti_gemm_shape *shape, int64_t count,
                                      int threads)
{
    sti_block_job job = gemm_job(shape, count);
    job.accumulate = false;
    const size_t plain = sti_block_scratch_bytes(&job, threads);
    job.accumulate = true;
    const size_t other = sti_block_scratch_bytes(&job, threads);
    return plain > other ? plain : other;
}

size_t sti_gemm_scratch_bytes(const sti_gemm_shape *shape, int threads)
{
    return sti_gemm_batched_scratch_bytes(shape, 1, threads);
}

/* So small that planning would be felt: one call of the tiles, which read A and B in
 * place, where rows of B do not push each other out of caches. */
static bool is_small(const sti_gemm_shape *s, int threads)
{
    const int64_t most = 256, most_cols = s->k <= 64 ? 1000 : most;
    const int64_t work = threads > 1 ? STI_BLOCK_SHARED : 1 << 20;
    return s->m <= most && s->n <= most_cols && s->k <= most && s->lda <= 2 * most &&
           s->ldb <= (s->n > most ? most_cols : 2 * most) &&
           s->m * s->n * s->k <= work && !s->trans_b;
}

static void small_product(const sti_gemm_shape *s, const float *a, const float *b,
                          const sti_epilogue *epilogue, float *c)
{
    static const int64_t zero[1] = {0};
    sti_gemm_tile t;
    t.a = a;
    t.b = b;
    t.a_row = t.a_step = s->lda;
    t.b_step = s->ldb;
    t.a_run = t.b_run = zero;
    t.runs = 1;
    t.run_k = s->k;
    t.c = c;
    t.c_row = s->ldc;
    t.load = s->accumulate;
    t.relu = epilogue && epilogue->relu;
    t.bias = epilogue ? epilogue->bias : NULL;
    const unsigned mode = sti_float_mode_enter();
    sti_gemm_columns(sti_gemm_kernels_now(), &t, s->m, s->n, s->trans_a);
    sti_float_mode_leave(mode);
}

void sti_gemm_f32(const sti_team *team, const sti_gemm_shape *shape, const float *a,
                  const float *b, const sti_epilogue *epilogue, float *c_out,
                  void *scratch)
{
    if (is_small(shape, team->threads) && !(epilogue && epilogue->relu_mask)) {
        small_product(shape, a, b, epilogue, c_out);
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
