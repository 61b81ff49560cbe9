/* The search by a Gaussian process: the next look is where the function may cross the
 * limit and is least known, 1.96 sigma - |mean - limit| (the implicit level set
 * confidence bound), within the bracket that what was seen so far leaves. */
#include <math.h>

#include "base/fail.h"
#include "base/gaussian_process.h"
#include "base/search.h"

enum { GRID = 1000 };

typedef struct bayes {
    const sti_search_desc *desc;
    sti_search_result *result;
    sti_gp gp;
    double raw[STI_GP_POINTS], raw_noise[STI_GP_POINTS]; /* as seen */
    double mean, scale; /* the process is of (value - mean) / scale */
} bayes;

/* Arguments and values are brought to units of the range and of the spread. */
static double unit(const bayes *b, double at)
{
    return (at - b->desc->low) / (b->desc->high - b->desc->low);
}

static stint_status refit(bayes *b)
{
    sti_gp *gp = &b->gp;
    double squares = 0;
    b->mean = 0;
    for (int i = 0; i < gp->count; i++)
        b->mean += b->raw[i] / gp->count;
    for (int i = 0; i < gp->count; i++)
        squares += (b->raw[i] - b->mean) * (b->raw[i] - b->mean);
    b->scale = squares > 0 ? sqrt(squares / gp->count) : 1;
    for (int i = 0; i < gp->count; i++) {
        gp->y[i] = (b->raw[i] - b->mean) / b->scale;
        gp->noise[i] = b->raw_noise[i] / (b->scale * b->scale);
    }
    return sti_gp_learn(gp);
}

static double mean_at(const bayes *b, double at, double *deviation)
{
    double mean, variance;
    sti_gp_at(&b->gp, unit(b, at), &mean, &variance);
    *deviation = sqrt(variance) * b->scale;
    return mean * b->scale + b->mean;
}

/* The middle first; with few points the process knows nothing of a bend. */
static double next_at(const bayes *b)
{
    const sti_search_result *r = b->result;
    const double width = r->high - r->low;
    double best = -INFINITY, at = r->low + 0.5 * width;
    if (b->gp.count < 2)
        return at;
    for (int i = 1; i < GRID; i++) {
        const double x = r->low + width * i / GRID;
        double deviation;
        const double mean = mean_at(b, x, &deviation);
        const double worth = 1.96 * deviation - fabs(mean - b->desc->limit);
        if (worth > best) {
            best = worth;
            at = x;
        }
    }
    /* Near an end that is known it would say nothing new. */
    const double margin = 0.2 * width;
    at = at < r->low + margin ? r->low + margin : at;
    return at > r->high - margin ? r->high - margin : at;
}

/* What is clear by itself, or by all that was seen, moves an end of the bracket. */
static void narrow(bayes *b, double at, double value, double deviation)
{
    sti_search_result *r = b->result;
    double spread;
    const double believed = mean_at(b, at, &spread);
    const bool clear = fabs(value - b->desc->limit) > 2 * deviation;
    const bool keeps = (clear ? value : believed) >= b->desc->limit;
    if (keeps && at > r->low)
        r->low = at;
    if (!keeps && at < r->high)
        r->high = at;
    if (keeps && (!r->found || at > r->at))
        r->at = at;
    r->found = r->found || keeps;
}

/* How often an argument was looked at. */
static int repeats(const bayes *b, double at)
{
    int count = 0;
    for (int i = 0; i < b->gp.count; i++)
        count += b->gp.x[i] == unit(b, at);
    return count;
}

static stint_status look(bayes *b, sti_search_fn *fn, void *user)
{
    const double at = next_at(b);
    double value, deviation = 0;
    stint_status st = fn(user, at, repeats(b, at), &value, &deviation);
    if (st != STINT_OK)
        return st;
    b->result->samples++;
    if (!isfinite(value) || !isfinite(deviation))
        return sti_fail(STINT_E_FAILED, "search: the value at %g is not a number", at);
    b->gp.x[b->gp.count] = unit(b, at);
    b->raw[b->gp.count] = value;
    b->raw_noise[b->gp.count++] = deviation * deviation;
    st = refit(b);
    if (st == STINT_OK)
        narrow(b, at, value, deviation);
    return st;
}

stint_status sti_search_bayes(const sti_search_desc *desc, sti_search_fn *fn,
                              void *user, sti_search_result *result)
{
    bayes b = {.desc = desc, .result = result};
    stint_status st = STINT_OK;
    *result = (sti_search_result){.low = desc->low, .high = desc->high};
    while (st == STINT_OK && result->samples < desc->samples &&
           b.gp.count < STI_GP_POINTS && result->high - result->low > desc->width)
        st = look(&b, fn, user);
    return st;
}
