#include "kernel/gemm/gemm_byte.h"

#include "kernel/gemm/gemm_block.h"

/* Steps of k that are widened at a time, before they are turned into columns. */
enum { STEPS = 64, WIDEST = 4 * STI_PANEL };

/* W in steps of k: rows of the panels are pieces of its rows. */
static void load_steps(const sti_block_job *job, const sti_gemm_kernels *kernels,
                       int64_t item, int64_t n0, int64_t cols, int64_t k0, int64_t ks,
                       int64_t width, float *dst)
{
    const sti_byte_matrix *w = job->arg;
    (void)kernels, (void)item;
    for (int64_t j = 0; j < cols; j += width)
        for (int64_t i = 0; i < ks; i++, dst += width) {
            const int64_t count = cols - j < width ? cols - j : width;
            sti_byte_matrix_widen(w, k0 + i, n0 + j, count, dst);
            for (int64_t k = count; k < width; k++)
                dst[k] = 0;
        }
}

/* W in columns: a step of k is one of its columns. */
static void load_columns(const sti_block_job *job, const sti_gemm_kernels *kernels,
                         int64_t item, int64_t n0, int64_t cols, int64_t k0, int64_t ks,
                         int64_t width, float *dst)
{
    const sti_byte_matrix *w = job->arg;
    float wide[WIDEST * STEPS];
    (void)item;
    for (int64_t j = 0; j < cols; j += width, dst += width * ks) {
        const int64_t count = cols - j < width ? cols - j : width;
        for (int64_t i = 0; i < ks; i += STEPS) {
            const int64_t steps = ks - i < STEPS ? ks - i : STEPS;
            for (int64_t c = 0; c < count; c++)
                sti_byte_matrix_widen(w, n0 + j + c, k0 + i, steps, wide + c * STEPS);
            kernels->pack_transposed(wide, STEPS, steps, count, width, dst + i * width);
        }
    }
}

static sti_block_job job_of(const sti_gemm_byte_shape *s)
{
    const int64_t k = s->trans_b ? s->columns : s->rows;
    const int64_t n = s->trans_b ? s->rows : s->columns;
    return (sti_block_job){.items = 1,
                           .m = s->m,
                           .n = n,
                           .k = k,
                           .load_b = s->trans_b ? load_columns : load_steps,
                           .lda = k,
                           .ldc = n};
}

size_t sti_gemm_byte_scratch_bytes(const sti_gemm_byte_shape *shape, bool bias,
                                   int threads)
{
    static const float some_bias[1];
    sti_block_job job = job_of(shape);
    job.bias = bias ? some_bias : NULL;
    return sti_block_scratch_bytes(&job, threads);
}

void sti_gemm_byte_f32(const sti_team *team, const sti_gemm_byte_shape *shape,
                       const float *a, const sti_byte_matrix *w,
                       const sti_epilogue *epilogue, float *c_out, void *scratch)
{
    sti_block_job job = job_of(shape);
    job.arg = w;
    job.a = a;
    job.c = c_out;
    if (epilogue) {
        job.bias = epilogue->bias;
        job.relu = epilogue->relu;
    }
    sti_block_run(team, &job, scratch);
    if (epilogue && epilogue->relu_mask)
        sti_block_mask(team, c_out, shape->m * job.n, epilogue->relu_mask);
}
