/* Optimisers: factors, pieces of work, dispatch. */
#include "kernel/optimizer/optimizer.h"

#include <math.h>
#include <stddef.h>

#include "kernel/lane/dispatch.h"
#include "kernel/optimizer/optimizer_segment.h"

/* Elements a piece; any number gives the same bits. */
enum { PIECE = 16384 };

static const sti_optimizer_kernels *kernels_now(void)
{
    return STI_KERNELS_NOW(sti_optimizer_kernels);
}

typedef struct update_job {
    const sti_optimizer_kernels *kernels;
    sti_sgd_factors sgd;
    sti_adam_factors adam;
    sti_rmsprop_factors rmsprop;
    int64_t n;
    float *p;
    const float *g;
    float *m, *v;
} update_job;

static int64_t piece_count(const update_job *job, int64_t piece)
{
    int64_t left = job->n - piece * PIECE;
    return left < PIECE ? left : PIECE;
}

static void sgd_piece(void *arg, int64_t piece, int worker)
{
    (void)worker;
    const update_job *job = arg;
    const int64_t at = piece * PIECE, n = piece_count(job, piece);
    if (job->sgd.momentum > 0.0f)
        job->kernels->sgd_momentum(&job->sgd, n, job->p + at, job->g + at, job->m + at);
    else
        job->kernels->sgd(&job->sgd, n, job->p + at, job->g + at);
}

/* 1 - lr decay as PyTorch makes it: in float64 from what the caller gave. */
static float keep_factor(bool decoupled, float lr, float decay)
{
    return decoupled ? (float)(1.0 - (double)lr * (double)decay) : 1.0f;
}

void sti_sgd_f32(const sti_team *team, const sti_sgd *args, int64_t n, float *p,
                 const float *g, float *m)
{
    update_job job = {.kernels = kernels_now(), .n = n, .p = p, .g = g, .m = m};
    job.sgd = (sti_sgd_factors){
        .lr = args->lr,
        .momentum = args->momentum,
        .gradient_scale = args->gradient_scale,
        .keep = keep_factor(args->decoupled, args->lr, args->decay),
        .decay = args->decoupled ? 0.0f : args->decay,
        .nesterov = args->nesterov,
    };
    sti_team_run(team, (n + PIECE - 1) / PIECE, sgd_piece, &job);
}

static void adam_piece(void *arg, int64_t piece, int worker)
{
    (void)worker;
    const update_job *job = arg;
    const int64_t at = piece * PIECE;
    job->kernels->adam(&job->adam, piece_count(job, piece), job->p + at, job->g + at,
                       job->m + at, job->v + at);
}

void sti_adam_f32(const sti_team *team, const sti_adam *args, int64_t n, float *p,
                  const float *g, float *m, float *v)
{
    update_job job = {.kernels = kernels_now(), .n = n, .p = p, .g = g, .m = m, .v = v};
    job.adam = (sti_adam_factors){
        .gradient_scale = args->gradient_scale,
        .keep = keep_factor(args->decoupled, args->lr, args->decay),
        .decay = args->decoupled ? 0.0f : args->decay,
        .beta1 = (float)args->beta1,
        .rest1 = (float)(1.0 - args->beta1),
        .beta2 = (float)args->beta2,
        .rest2 = (float)(1.0 - args->beta2),
        .step = (float)((double)args->lr / args->correction1),
        .root2 = (float)sqrt(args->correction2),
        .epsilon = args->epsilon,
    };
    sti_team_run(team, (n + PIECE - 1) / PIECE, adam_piece, &job);
}

static void rmsprop_piece(void *arg, int64_t piece, int worker)
{
    (void)worker;
    const update_job *job = arg;
    const int64_t at = piece * PIECE;
    job->kernels->rmsprop(&job->rmsprop, piece_count(job, piece), job->p + at,
                          job->g + at, job->v + at);
}

void sti_rmsprop_f32(const sti_team *team, const sti_rmsprop *args, int64_t n, float *p,
                     const float *g, float *v)
{
    update_job job = {.kernels = kernels_now(), .n = n, .p = p, .g = g, .v = v};
    job.rmsprop = (sti_rmsprop_factors){
        .lr = args->lr,
        .gradient_scale = args->gradient_scale,
        .keep = keep_factor(args->decoupled, args->lr, args->decay),
        .decay = args->decoupled ? 0.0f : args->decay,
        .alpha = (float)args->alpha,
        .rest = (float)(1.0 - args->alpha),
        .epsilon = args->epsilon,
    };
    sti_team_run(team, (n + PIECE - 1) / PIECE, rmsprop_piece, &job);
}

void sti_optimizer_f32(const sti_team *team, const sti_optimizer_rule *rule,
                       bool decays, int64_t n, float *p, const float *g,
                       float *const moment[2])
{
    sti_optimizer_rule r = *rule;
    switch (r.kind) {
    case STI_RULE_SGD:
        r.sgd.decay = decays ? r.sgd.decay : 0;
        sti_sgd_f32(team, &r.sgd, n, p, g, moment[0]);
        break;
    case STI_RULE_ADAM:
        r.adam.decay = decays ? r.adam.decay : 0;
        sti_adam_f32(team, &r.adam, n, p, g, moment[0], moment[1]);
        break;
    case STI_RULE_RMSPROP:
        r.rmsprop.decay = decays ? r.rmsprop.decay : 0;
        sti_rmsprop_f32(team, &r.rmsprop, n, p, g, moment[0]);
        break;
    }
}
