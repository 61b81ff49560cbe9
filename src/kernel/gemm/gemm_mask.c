/* ReLU bits of a finished product. */
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
