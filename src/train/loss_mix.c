#include "train/loss_mix.h"

#include <math.h>

#include "kernel/maths/maths.h"
#include "train/loss_section.h"
#include "train/optimizer_section.h"
#include "train/step_engine.h"

#define S_MAX 6.0f /* of a log-variance: no part is worth 400 times another */

sti_loss_desc sti_loss_of_recipe(const sti_loss_values *loss)
{
    const bool focal = loss->weighting == STI_WEIGHTING_FOCAL;
    const double max_value = loss->focal_base + loss->focal_right;
    return (sti_loss_desc){
        .factor = {(float)loss->hard, (float)loss->pairing, (float)loss->soft},
        .temperature = (float)loss->temperature,
        .top = (int32_t)loss->top,
        .focal_base = focal ? (float)(loss->focal_base / max_value) : 1.0f,
        .focal_right = focal ? (float)(loss->focal_right / max_value) : 0.0f,
        .weighted = loss->weighting == STI_WEIGHTING_LEARNABLE ||
                    loss->weighting == STI_WEIGHTING_SOFTADAPT};
}

/* Factors of the recipe; parts with 0 take no part. */
static void factors_of(const sti_loss_values *loss, double factor[STI_LOSS_PARTS])
{
    factor[STI_LOSS_HARD] = loss->hard;
    factor[STI_LOSS_PAIRING] = loss->pairing;
    factor[STI_LOSS_SOFT] = loss->soft;
}

void sti_loss_state_init(const sti_loss_values *loss, sti_loss_state *state)
{
    double factor[STI_LOSS_PARTS];
    int parts = 0;
    factors_of(loss, factor);
    *state = (sti_loss_state){.windows = 0};
    for (int i = 0; i < STI_LOSS_PARTS; i++)
        parts += factor[i] > 0;
    for (int i = 0; i < STI_LOSS_PARTS; i++) {
        float weight = 1.0f;
        if (loss->weighting == STI_WEIGHTING_LEARNABLE)
            weight = 0.5f;
        if (loss->weighting == STI_WEIGHTING_SOFTADAPT)
            weight = 1.0f / (float)parts;
        state->weight[i] = factor[i] > 0 ? weight : 0.0f;
    }
}

/* ---- learnable ---- */

static float within(float x, float max_value)
{
    return x > max_value ? max_value : x < -max_value ? -max_value : x;
}

/* exp(-s) / 2, all made smaller together where they would weigh more than 1 a part: a
 * part that is nearly met asks for a weight without end, and the weights of the network
 * would be trained at ever larger rates. */
static void weigh_logs(sti_loss_state *state)
{
    float weight[STI_LOSS_PARTS] = {0}, sum = 0, parts = 0;
    for (int i = 0; i < STI_LOSS_PARTS; i++) {
        state->s[i] = within(state->s[i], S_MAX);
        if (state->weight[i] > 0) {
            weight[i] = 0.5f * sti_exp_f32(-state->s[i]);
            sum += weight[i];
            parts += 1;
        }
    }
    for (int i = 0; i < STI_LOSS_PARTS; i++)
        if (state->weight[i] > 0)
            state->weight[i] = sum > parts ? weight[i] * (parts / sum) : weight[i];
}

static void train_logs(const sti_optimizer_values *optimizer, const double *part,
                       double lr, int64_t step, sti_loss_state *state)
{
    float gradient[STI_LOSS_PARTS];
    for (int i = 0; i < STI_LOSS_PARTS; i++)
        gradient[i] = state->weight[i] > 0
                          ? 0.5f - 0.5f * sti_exp_f32(-state->s[i]) * (float)part[i]
                          : 0.0f;
    sti_update_numbers(optimizer, lr, step, STI_LOSS_PARTS, state->s, gradient,
                       state->moment[0], state->moment[1]);
    weigh_logs(state);
}

/* ---- softadapt ---- */

/* How fast each part rose since the last window. */
static void find_rates(const sti_loss_values *loss, const double *mean,
                       const sti_loss_state *state, double *rate)
{
    double sum = 0;
    for (int i = 0; i < STI_LOSS_PARTS; i++) {
        rate[i] = mean[i] - (double)state->previous[i];
        sum += fabs(rate[i]);
    }
    if (loss->softadapt == STI_SOFTADAPT_NORMALISED && sum > 0)
        for (int i = 0; i < STI_LOSS_PARTS; i++)
            rate[i] /= sum;
}

/* Softmax with the largest taken out: finite for any finite rates. */
static void weigh_rates(const sti_loss_values *loss, const double *mean,
                        const double *rate, sti_loss_state *state)
{
    double term[STI_LOSS_PARTS] = {0}, sum = 0, largest = -INFINITY;
    for (int i = 0; i < STI_LOSS_PARTS; i++)
        if (state->weight[i] > 0 && rate[i] > largest)
            largest = rate[i];
    for (int i = 0; i < STI_LOSS_PARTS; i++) {
        const double power = loss->beta * (rate[i] - largest);
        if (state->weight[i] > 0)
            term[i] = (double)sti_exp_f32(power > -80.0 ? (float)power : -80.0f);
        if (loss->softadapt == STI_SOFTADAPT_LOSS)
            term[i] *= mean[i];
        sum += term[i];
    }
    for (int i = 0; i < STI_LOSS_PARTS && sum > 0; i++)
        if (state->weight[i] > 0) {
            state->weight[i] = (float)(term[i] / sum);
            if (state->weight[i] < 1e-30f) /* 0 is for parts that are not there */
                state->weight[i] = 1e-30f;
        }
}

static void adapt(const sti_loss_values *loss, const double *part, int64_t step,
                  sti_loss_state *state)
{
    double mean[STI_LOSS_PARTS], rate[STI_LOSS_PARTS];
    for (int i = 0; i < STI_LOSS_PARTS; i++)
        state->sum[i] += (float)part[i];
    if ((step + 1) % loss->window != 0)
        return;
    for (int i = 0; i < STI_LOSS_PARTS; i++)
        mean[i] = (double)state->sum[i] / (double)loss->window;
    find_rates(loss, mean, state, rate);
    if (state->windows > 0)
        weigh_rates(loss, mean, rate, state);
    for (int i = 0; i < STI_LOSS_PARTS; i++) {
        state->previous[i] = (float)mean[i];
        state->sum[i] = 0;
    }
    state->windows = 1;
}

void sti_loss_state_update(const sti_loss_values *loss,
                           const sti_optimizer_values *optimizer, const double *part,
                           double lr, int64_t step, sti_loss_state *state)
{
    double factor[STI_LOSS_PARTS], scaled[STI_LOSS_PARTS];
    factors_of(loss, factor);
    for (int i = 0; i < STI_LOSS_PARTS; i++)
        scaled[i] = factor[i] > 0 ? factor[i] * part[i] : 0.0;
    if (loss->weighting == STI_WEIGHTING_LEARNABLE)
        train_logs(optimizer, scaled, lr, step, state);
    if (loss->weighting == STI_WEIGHTING_SOFTADAPT)
        adapt(loss, scaled, step, state);
}
