/* A sample is a piece of work. */
#include "kernel/interaction/interaction.h"

#include "kernel/lane/dispatch.h"

typedef struct interaction_job {
    const sti_interaction_kernels *kernels;
    int64_t vectors, width;
    const float *x, *dy;
    float *out;
} interaction_job;

static void pairs_piece(void *arg, int64_t sample, int worker)
{
    const interaction_job *job = arg;
    (void)worker;
    job->kernels->pairs(job->vectors, job->width,
                        job->x + sample * job->vectors * job->width,
                        job->out + sample * sti_interaction_pairs(job->vectors));
}

void sti_interaction_f32(const sti_team *team, int64_t samples, int64_t vectors,
                         int64_t width, const float *x, float *y)
{
    interaction_job job = {
        STI_KERNELS_NOW(sti_interaction_kernels), vectors, width, x, NULL, y};
    sti_team_run(team, samples, pairs_piece, &job);
}

static void grad_piece(void *arg, int64_t sample, int worker)
{
    const interaction_job *job = arg;
    const int64_t size = job->vectors * job->width;
    (void)worker;
    job->kernels->grad(job->vectors, job->width, job->x + sample * size,
                       job->dy + sample * sti_interaction_pairs(job->vectors),
                       job->out + sample * size);
}

void sti_interaction_grad_f32(const sti_team *team, int64_t samples, int64_t vectors,
                              int64_t width, const float *x, const float *dy, float *dx)
{
    interaction_job job = {
        STI_KERNELS_NOW(sti_interaction_kernels), vectors, width, x, dy, dx};
    sti_team_run(team, samples, grad_piece, &job);
}
