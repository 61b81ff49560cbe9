/* What is done to outputs that are finished: their ReLU bits, or a sine of them. */
#include "kernel/elementwise/elementwise_priv.h"
#include "kernel/gemm/gemm_block.h"

enum { MASK_PIECE = 1 << 16 }; /* elements */

typedef struct mask_job {
    const float *y;
    uint8_t *mask;
    int64_t count;
    const sti_gemm_kernels *kernels;
} mask_job;

static void mask_piece(void *arg, int64_t piece, int worker)
{
    const mask_job *job = arg;
    const int64_t i = piece * MASK_PIECE;
    const int64_t left = job->count - i;
    (void)worker;
    job->kernels->mask(job->y + i, left < MASK_PIECE ? left : MASK_PIECE,
                       job->mask + i / 8);
}

void sti_block_mask(const sti_team *team, const float *y, int64_t count, uint8_t *mask)
{
    mask_job job = {
        .y = y, .mask = mask, .count = count, .kernels = sti_gemm_kernels_now()};
    sti_team_run(team, sti_gemm_ceil_div(count, MASK_PIECE), mask_piece, &job);
}

void sti_block_sine(float factor, int64_t rows, int64_t cols, float *c, int64_t ldc)
{
    const sti_elementwise_table *t = sti_elementwise_now();
    for (int64_t r = 0; r < rows; r++) {
        t->unary[STI_UNARY_SCALE](cols, factor, c + r * ldc, c + r * ldc);
        t->unary[STI_UNARY_SIN](cols, 0, c + r * ldc, c + r * ldc);
    }
}
