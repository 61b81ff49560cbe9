/* The search by Gaussian processes. First of the value: the next look is where it may
 * cross the limit and is least known, 1.96 sigma - |mean - limit| (the implicit level
 * set confidence bound), within the bracket that what was seen so far leaves. Then of
 * the cost, if there is one: where mean - 2 sigma is least (the lower confidence
 * bound), below the bracket. */
#include <math.h>

#include "base/fail.h"
#include "base/gaussian_process.h"
#include "base/search.h"

enum { GRID = 1000 };

/* A cost that may be lower by less than this part is not looked for. */
#define SAVING 0.01

typedef struct process {
    sti_gp gp;
    double raw[STI_GP_POINTS], raw_noise[STI_GP_POINTS]; /* as seen */
    double mean, scale; /* the process is of (value - mean) / scale */
} process;

typedef struct bayes {
    const sti_search_desc *desc;
    sti_search_fn *fn;
    void *user;
    sti_search_result *result;
    process value, cost;
    bool kept;        /* something that keeps the limit has a cost: */
    double best_cost; /* the least of these */
} bayes;

/* Arguments and values are brought to units of the range and of the spread. */
static double unit(const bayes *b, double at)
{
    return (at - b->desc->low) / (b->desc->high - b->desc->low);
}

static stint_status refit(process *p)
{
    sti_gp *gp = &p->gp;
    double squares = 0;
    p->mean = 0;
    for (int i = 0; i < gp->count; i++)
        p->mean += p->raw[i] / gp->count;
    for (int i = 0; i < gp->count; i++)
        squares += (p->raw[i] - p->mean) * (p->raw[i] - p->mean);
    p->scale = squares > 0 ? sqrt(squares / gp->count) : 1;
    for (int i = 0; i < gp->count; i++) {
        gp->y[i] = (p->raw[i] - p->mean) / p->scale;
        gp->noise[i] = p->raw_noise[i] / (p->scale * p->scale);
    }
    return sti_gp_learn(gp);
}

static stint_status add(process *p, double x, double y, double deviation)
{
    p->gp.x[p->gp.count] = x;
    p->raw[p->gp.count] = y;
    p->raw_noise[p->gp.count++] = deviation * deviation;
    return refit(p);
}

static double mean_at(const process *p, double x, double *deviation)
{
    double mean, variance;
    sti_gp_at(&p->gp, x, &mean, &variance);
    *deviation = sqrt(variance) * p->scale;
    return mean * p->scale + p->mean;
}

/* ---- the crossing ---- */

/* The middle first; with few points the process knows nothing of a bend. */
static double next_crossing(const bayes *b)
{
    const sti_search_result *r = b->result;
    const double width = r->high - r->low;
    double best = -INFINITY, at = r->low + 0.5 * width;
    if (b->value.gp.count < 2)
        return at;
    for (int i = 1; i < GRID; i++) {
        const double x = r->low + width * i / GRID;
        double deviation;
        const double mean = mean_at(&b->value, unit(b, x), &deviation);
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
static bool narrow(bayes *b, double at, const sti_search_look *look)
{
    sti_search_result *r = b->result;
    double spread;
    const double believed = mean_at(&b->value, unit(b, at), &spread);
    const bool clear = fabs(look->value - b->desc->limit) > 2 * look->deviation;
    const bool keeps = (clear ? look->value : believed) >= b->desc->limit;
    if (keeps && at > r->low)
        r->low = at;
    if (!keeps && at < r->high)
        r->high = at;
    return keeps;
}

/* ---- the cost ---- */

/* Of the arguments below the bracket the one that may be cheapest; false: none may be
 * cheaper than the cheapest that was seen. */
static bool next_cheapest(const bayes *b, double *at)
{
    const double width = b->result->low - b->desc->low;
    double least = INFINITY;
    for (int i = 0; i <= GRID; i++) {
        const double x = b->desc->low + width * i / GRID;
        double deviation;
        const double bound = mean_at(&b->cost, unit(b, x), &deviation) - 2 * deviation;
        if (bound < least) {
            least = bound;
            *at = x;
        }
    }
    return width > 0 && least < b->best_cost - SAVING * fabs(b->best_cost);
}

/* ---- looks ---- */

/* How often an argument was looked at. */
static int repeats(const bayes *b, double at)
{
    int count = 0;
    for (int i = 0; i < b->value.gp.count; i++)
        count += b->value.gp.x[i] == unit(b, at);
    return count;
}

static void choose(bayes *b, double at, bool keeps, double cost)
{
    sti_search_result *r = b->result;
    const bool better = b->desc->costs ? !b->kept || cost < b->best_cost : at > r->at;
    if (!keeps || (r->found && !better))
        return;
    b->kept = true;
    b->best_cost = cost;
    r->found = true;
    r->at = at;
}

static stint_status look_at(bayes *b, double at)
{
    sti_search_look look = {0};
    stint_status st = b->fn(b->user, at, repeats(b, at), &look);
    if (st != STINT_OK)
        return st;
    b->result->samples++;
    if (!isfinite(look.value) || !isfinite(look.deviation))
        return sti_fail(STINT_E_FAILED, "search: the value at %g is not a number", at);
    if (b->desc->costs && !(isfinite(look.cost) && isfinite(look.cost_deviation)))
        return sti_fail(STINT_E_FAILED, "search: the objective at %g is not a number",
                        at);
    st = add(&b->value, unit(b, at), look.value, look.deviation);
    if (st == STINT_OK && b->desc->costs)
        st = add(&b->cost, unit(b, at), look.cost, look.cost_deviation);
    if (st == STINT_OK)
        choose(b, at, narrow(b, at, &look), look.cost);
    return st;
}

static bool may_look(const bayes *b, int samples)
{
    return b->result->samples < samples && b->value.gp.count < STI_GP_POINTS;
}

stint_status sti_search_bayes(const sti_search_desc *desc, sti_search_fn *fn,
                              void *user, sti_search_result *result)
{
    bayes b = {.desc = desc, .fn = fn, .user = user, .result = result};
    const int first = desc->costs ? (6 * desc->samples + 9) / 10 : desc->samples;
    stint_status st = STINT_OK;
    double at = desc->low;
    *result = (sti_search_result){.low = desc->low, .high = desc->high};
    while (st == STINT_OK && may_look(&b, first) &&
           result->high - result->low > desc->width)
        st = look_at(&b, next_crossing(&b));
    while (st == STINT_OK && desc->costs && b.kept && may_look(&b, desc->samples) &&
           next_cheapest(&b, &at))
        st = look_at(&b, at);
    return st;
}
