#include "train/lc.h"

#include "kernel/maths/smooth.h"

enum { PIECE = 1 << 14 }; /* numbers that one thread takes at once */

double sti_lc_rate(double lr, double end, int64_t index, int64_t count)
{
    if (end <= 0)
        return lr;
    return lr * sti_smooth_exp((sti_smooth_log(end) - sti_smooth_log(lr)) *
                               (double)index / (double)count);
}

/* For a step of so many batches whose rates fall from lr to end. */
static double usual_mu(int64_t batches, double lr, double end, double momentum)
{
    double reach = 0;
    for (int64_t i = 0; i < batches; i++)
        reach += sti_lc_rate(lr, end, i, batches) / (1 - momentum);
    return reach > 0 ? 0.1 / reach : 1e-3;
}

sti_lc_plan sti_lc_plan_of(const sti_shrink_values *values, int64_t steps_per_epoch,
                           double lr, double momentum)
{
    const int64_t half = (steps_per_epoch + 1) / 2;
    sti_lc_plan plan = {.steps = values->steps,
                        .first = values->first ? values->first : steps_per_epoch,
                        .batches = values->batches ? values->batches : half,
                        .mu = values->mu,
                        .last = values->steps - 1,
                        .factor = values->mu_factor,
                        .cap = values->mu_cap};
    if (plan.mu == 0)
        plan.mu = usual_mu(plan.batches, lr, values->lr_end, momentum);
    plan.last -= (int64_t)(values->finish * (double)plan.last + 0.5);
    return plan;
}

int64_t sti_lc_batches(const sti_lc_plan *plan)
{
    return plan->steps < 2 ? 0 : plan->first + (plan->steps - 2) * plan->batches;
}

sti_lc_place sti_lc_place_of(const sti_lc_plan *plan, int64_t batch)
{
    if (batch < plan->first)
        return (sti_lc_place){1, batch, plan->first};
    batch -= plan->first;
    return (sti_lc_place){2 + batch / plan->batches, batch % plan->batches,
                          plan->batches};
}

bool sti_lc_finishes(const sti_lc_plan *plan, int64_t step)
{
    return step > plan->last;
}

sti_lc_place sti_lc_fall_of(const sti_lc_plan *plan, int64_t batch)
{
    const sti_lc_place place = sti_lc_place_of(plan, batch);
    if (!sti_lc_finishes(plan, place.step))
        return place;
    const int64_t before =
        plan->last < 1 ? 0 : plan->first + (plan->last - 1) * plan->batches;
    return (sti_lc_place){place.step, batch - before, sti_lc_batches(plan) - before};
}

double sti_lc_mu(const sti_lc_plan *plan, int64_t step)
{
    double mu = plan->mu;
    for (int64_t j = 1; j < step && mu <= plan->cap; j++)
        mu *= plan->factor;
    return mu;
}

/* ---- loops ---- */

typedef struct loop {
    int64_t n;
    float mu, scale;
    const float *w, *theta, *lambda;
    float *out;
} loop;

static int64_t end_of(const loop *l, int64_t piece)
{
    return (piece + 1) * PIECE < l->n ? (piece + 1) * PIECE : l->n;
}

static void run(const sti_team *team, sti_piece_fn *piece, loop *l)
{
    sti_team_run(team, (l->n + PIECE - 1) / PIECE, piece, l);
}

static void add_gradient(void *arg, int64_t piece, int worker)
{
    const loop *l = arg;
    (void)worker;
    for (int64_t i = piece * PIECE; i < end_of(l, piece); i++)
        l->out[i] += l->scale * (l->mu * (l->w[i] - l->theta[i]) - l->lambda[i]);
}

void sti_lc_gradient(const sti_team *team, int64_t n, double mu, double scale,
                     const float *w, const float *theta, const float *lambda, float *g)
{
    loop l = {n, (float)mu, (float)scale, w, theta, lambda, g};
    run(team, add_gradient, &l);
}

static void set_target(void *arg, int64_t piece, int worker)
{
    const loop *l = arg;
    (void)worker;
    for (int64_t i = piece * PIECE; i < end_of(l, piece); i++)
        l->out[i] = l->mu > 0 ? l->w[i] - l->lambda[i] / l->mu : l->w[i];
}

void sti_lc_target(const sti_team *team, int64_t n, double mu, const float *w,
                   const float *lambda, float *theta)
{
    loop l = {.n = n, .mu = (float)mu, .w = w, .lambda = lambda, .out = theta};
    run(team, set_target, &l);
}

static void set_multipliers(void *arg, int64_t piece, int worker)
{
    const loop *l = arg;
    (void)worker;
    for (int64_t i = piece * PIECE; i < end_of(l, piece); i++)
        l->out[i] -= l->mu * (l->w[i] - l->theta[i]);
}

void sti_lc_multipliers(const sti_team *team, int64_t n, double mu, const float *w,
                        const float *theta, float *lambda)
{
    loop l = {.n = n, .mu = (float)mu, .w = w, .theta = theta, .out = lambda};
    run(team, set_multipliers, &l);
}

static void scale(void *arg, int64_t piece, int worker)
{
    const loop *l = arg;
    (void)worker;
    for (int64_t i = piece * PIECE; i < end_of(l, piece); i++)
        l->out[i] *= l->scale;
}

void sti_lc_scale(const sti_team *team, int64_t n, double factor, float *x)
{
    loop l = {.n = n, .scale = (float)factor, .out = x};
    run(team, scale, &l);
}

void sti_lc_add_norms(int64_t n, const float *w, const float *theta,
                      const float *lambda, sti_lc_norms *norms)
{
    for (int64_t i = 0; i < n; i++) {
        const double x = (double)w[i], gap = x - (double)theta[i];
        const double multiplier = lambda ? (double)lambda[i] : 0;
        norms->gap += gap * gap;
        norms->weights += x * x;
        norms->multipliers += multiplier * multiplier;
    }
}
