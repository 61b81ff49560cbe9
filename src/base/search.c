#include "base/search.h"

#include <math.h>

#include "base/fail.h"

enum { LOOKS = 3 /* at one argument */ };

typedef struct search {
    const sti_search_desc *desc;
    sti_search_fn *fn;
    void *user;
    sti_search_result *result;
    double cost; /* of result->at */
} search;

static stint_status look(search *s, double at, int repeat, sti_search_look *seen)
{
    *seen = (sti_search_look){.value = 0};
    stint_status st = s->fn(s->user, at, repeat, seen);
    if (st != STINT_OK)
        return st;
    s->result->samples++;
    if (!isfinite(seen->value) || !isfinite(seen->deviation))
        return sti_fail(STINT_E_FAILED, "search: the value at %g is not a number", at);
    if (s->desc->costs && !isfinite(seen->cost))
        return sti_fail(STINT_E_FAILED, "search: the objective at %g is not a number",
                        at);
    return STINT_OK;
}

/* The argument is judged: the bracket shrinks to one side of it. */
static void decide(search *s, double at, bool keeps, double cost)
{
    sti_search_result *r = s->result;
    const bool better = s->desc->costs ? cost < s->cost : at > r->at;
    if (!keeps) {
        r->high = at < r->high ? at : r->high;
        return;
    }
    r->low = at > r->low ? at : r->low;
    if (r->found && !better)
        return;
    r->at = at;
    r->found = true;
    s->cost = cost;
}

/* Looks that the halving still needs. */
static int needed(const search *s)
{
    const sti_search_result *r = s->result;
    int count = 0;
    for (double width = r->high - r->low; width > s->desc->width; width /= 2)
        count++;
    return count;
}

static stint_status halve(search *s)
{
    const sti_search_desc *d = s->desc;
    const double at = 0.5 * (s->result->low + s->result->high);
    double sum = 0, spread = 0;
    sti_search_look seen;
    int looks = 0;
    for (;;) {
        stint_status st = look(s, at, looks, &seen);
        if (st != STINT_OK)
            return st;
        sum += seen.value;
        spread += seen.deviation * seen.deviation;
        looks++;
        const double off = fabs(sum / looks - d->limit);
        const bool close = off <= 2 * sqrt(spread) / looks;
        const int spare = d->samples - s->result->samples - (needed(s) - 1);
        if (!close || spread == 0 || looks == LOOKS || spare <= 0)
            break;
    }
    decide(s, at, sum / looks >= d->limit, seen.cost);
    return STINT_OK;
}

static search begin(const sti_search_desc *desc, sti_search_fn *fn, void *user,
                    sti_search_result *result)
{
    *result = (sti_search_result){.low = desc->low, .high = desc->high};
    return (search){.desc = desc, .fn = fn, .user = user, .result = result};
}

stint_status sti_search_bisect(const sti_search_desc *desc, sti_search_fn *fn,
                               void *user, sti_search_result *result)
{
    search s = begin(desc, fn, user, result);
    stint_status st = STINT_OK;
    while (st == STINT_OK && result->samples < desc->samples &&
           result->high - result->low > desc->width)
        st = halve(&s);
    return st;
}

stint_status sti_search_grid(const sti_search_desc *desc, sti_search_fn *fn, void *user,
                             sti_search_result *result)
{
    search s = begin(desc, fn, user, result);
    const double step = (desc->high - desc->low) / (desc->samples + 1);
    bool kept = true;
    for (int i = 1; i <= desc->samples; i++) {
        sti_search_look seen;
        const double at = desc->low + step * i;
        stint_status st = look(&s, at, 0, &seen);
        if (st != STINT_OK)
            return st;
        /* Noise may put a lucky one behind one that missed: the first miss ends it. */
        kept = kept && seen.value >= desc->limit;
        decide(&s, at, kept, seen.cost);
    }
    return STINT_OK;
}
