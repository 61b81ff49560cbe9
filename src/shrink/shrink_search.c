/* Which shares are tried: for a size and a latency those whose untrained projection
 * keeps them, corrected by what samples come to; for answers by base/search.h. */
#include <math.h>

#include "base/fail.h"
#include "base/search.h"
#include "base/units.h"
#include "shrink/shrinker.h"
#include "train/train_section.h"

#define WIDTH 0.005 /* of a bracket that is narrow enough */
#define USED  0.95  /* of a size or a latency that is allowed: enough */

/* Two measurements of one network differ by so much, as a share. */
#define CLOCK_DEVIATION 0.01

static uint64_t seed_of(const sti_shrinker *s, int repeat)
{
    return (uint64_t)sti_train_section_of(s->recipe)->seed + (uint64_t)repeat;
}

/* Six digits stand in the scheme, so they are the share. */
static double rounded(double share)
{
    return round(share * 1e6) / 1e6;
}

/* ---- by answers ---- */

static stint_status try_share(void *user, double share, int repeat,
                              sti_search_look *look)
{
    sti_shrinker *s = user;
    int number;
    stint_status st = sti_sample_take(s, rounded(share), seed_of(s, repeat), &number);
    if (st != STINT_OK)
        return st;
    const sti_sample *sample = &s->sample[number];
    look->value = sti_sample_slack(s, sample);
    look->deviation = sample->deviation;
    look->cost = sample->facts.latency_ms;
    look->cost_deviation = CLOCK_DEVIATION * sample->facts.latency_ms;
    return STINT_OK;
}

/* The largest share whose answers keep the limits. Bytes fall with it; times need not,
 * which is what the search by processes is told. */
static stint_status search_answers(sti_shrinker *s, int samples)
{
    const stint_shrink_desc *d = s->desc;
    const sti_search_desc desc = {.low = 0,
                                  .high = STI_SHARE_MAX,
                                  .width = WIDTH,
                                  .samples = samples,
                                  .costs = d->search == STINT_SHRINK_SEARCH_BAYES &&
                                           sti_shrink_times(d)};
    sti_search_result found;
    stint_status (*const ways[])(const sti_search_desc *, sti_search_fn *, void *,
                                 sti_search_result *) = {
        [STINT_SHRINK_SEARCH_BISECT] = sti_search_bisect,
        [STINT_SHRINK_SEARCH_BAYES] = sti_search_bayes,
        [STINT_SHRINK_SEARCH_GRID] = sti_search_grid};
    const stint_status st = ways[d->search](&desc, try_share, s, &found);
    s->low = found.low;
    s->high = found.high;
    return st;
}

/* ---- by size and latency ---- */

static bool limits_latency(const stint_shrink_desc *d)
{
    return d->latency_s > 0 || d->latency_share > 0;
}

static stint_status guess_excess(sti_shrinker *s, double share, double *excess)
{
    double ms = 0, base_ms = 0;
    const stint_status st = sti_shrink_time_guess(s, share, &ms, &base_ms);
    *excess = sti_shrink_excess(s->desc, 0, ms, base_ms);
    return st;
}

/* A time that no share keeps is refused before anything is trained; one look may be
 * unlucky, so it is told by two shares. */
static stint_status check_latency(sti_shrinker *s)
{
    static const double last[] = {STI_SHARE_MAX, 0.998};
    double ms = 0, base_ms = 0, least = INFINITY;
    for (int i = 0; i < 2; i++) {
        const stint_status st = sti_shrink_time_guess(s, last[i], &ms, &base_ms);
        if (st != STINT_OK || sti_shrink_excess(s->desc, 0, ms, base_ms) <= 1)
            return st;
        least = fmin(least, ms);
    }
    return sti_fail(STINT_E_BUDGET,
                    "shrink: a latency of %.3g ms is out of reach of this scheme: the "
                    "least is about %.3g ms, where the model takes %.3g ms; allow "
                    "more, or give another scheme",
                    s->desc->latency_s > 0 ? 1000 * s->desc->latency_s
                                           : s->desc->latency_share * base_ms,
                    least, base_ms);
}

/* The smallest share whose untrained projection takes no more than `aim` of the time
 * that is allowed. */
static stint_status guess_latency_share(sti_shrinker *s, double aim, double *share)
{
    double low = 0, high = STI_SHARE_MAX, excess;
    stint_status st = guess_excess(s, low, &excess);
    if (st == STINT_OK && excess <= aim)
        high = low; /* it keeps the limit as it is */
    while (st == STINT_OK && high - low > WIDTH) {
        const double middle = rounded(0.5 * (low + high));
        st = guess_excess(s, middle, &excess);
        if (excess > aim)
            low = middle;
        else
            high = middle;
    }
    *share = high;
    return st;
}

/* Bytes and times that are aimed at, which samples correct. */
typedef struct aims {
    double bytes, excess; /* of the whole file; of the latency, as a ratio */
    double least_bytes;
} aims;

static stint_status next_share(sti_shrinker *s, const aims *a, double *share)
{
    double of_latency = 0;
    stint_status st = STINT_OK;
    *share = 0;
    if (s->desc->size_bytes > 0)
        st = sti_guess_share(&s->guess, STI_SHARE_MAX, a->bytes, share);
    if (st == STINT_OK && limits_latency(s->desc))
        st = guess_latency_share(s, a->excess, &of_latency);
    *share = ceil(fmax(*share, of_latency) * 1e6) / 1e6;
    return st;
}

/* A guess of this share that came to less or more than its sample is scaled by that. */
static stint_status correct(sti_shrinker *s, const sti_sample *sample, aims *a)
{
    const stint_shrink_desc *d = s->desc;
    const double middle = 0.5 * (1 + USED);
    double excess;
    int64_t guessed;
    stint_status st = STINT_OK;
    if (d->size_bytes > 0) {
        st = sti_guess_bytes(&s->guess, sample->share, NULL, &guessed, NULL);
        a->bytes = fmax((double)guessed * middle * (double)d->size_bytes /
                            (double)sample->facts.bytes,
                        a->least_bytes);
    }
    if (st == STINT_OK && limits_latency(d)) {
        st = guess_excess(s, sample->share, &excess);
        a->excess = excess * middle /
                    sti_shrink_excess(d, 0, sample->facts.latency_ms, sample->ms);
    }
    return st;
}

/* Training changes how many bytes the numbers take, and which outputs go, so guesses
 * are corrected by what the sample before took. */
static stint_status search_limits(sti_shrinker *s)
{
    const stint_shrink_desc *d = s->desc;
    aims a = {.bytes = (double)d->size_bytes, .excess = 0.5 * (1 + USED)};
    stint_status st = STINT_OK;
    int64_t least = 0;
    if (limits_latency(d))
        st = check_latency(s);
    if (st == STINT_OK && d->size_bytes > 0)
        st = sti_guess_bytes(&s->guess, STI_SHARE_MAX, NULL, &least, NULL);
    a.least_bytes = (double)least;
    for (int i = 0; i < s->most && st == STINT_OK; i++) {
        const int before = s->count;
        double share;
        int number;
        st = next_share(s, &a, &share);
        if (st == STINT_OK)
            st = sti_sample_take(s, share, seed_of(s, 0), &number);
        if (st != STINT_OK)
            return st;
        const sti_sample *sample = &s->sample[number];
        const double excess = sti_shrink_excess(d, (double)sample->facts.bytes,
                                                sample->facts.latency_ms, sample->ms);
        if (excess <= 1 && (excess >= USED || share == 0))
            break;
        if (s->count == before)
            break; /* the share that was tried already: nothing nearer is left */
        st = correct(s, sample, &a);
    }
    return st;
}

/* ---- all ---- */

static bool any_met(const sti_shrinker *s)
{
    for (int i = 0; i < s->count; i++)
        if (s->sample[i].facts.met)
            return true;
    return false;
}

stint_status sti_shrink_search(sti_shrinker *s)
{
    const stint_shrink_desc *d = s->desc;
    const bool answers = d->limits_drop || d->limits_mismatch;
    stint_status st = STINT_OK;
    int number;
    if (!sti_scheme_is_automatic(&s->scheme))
        return sti_sample_take(s, 0, seed_of(s, 0), &number);
    if (d->size_bytes > 0 || limits_latency(d))
        st = search_limits(s);
    if (st != STINT_OK || !answers || any_met(s) || s->count >= s->most)
        return st;
    return search_answers(s, s->most - s->count);
}

/* ---- the choice ---- */

static double excess_of(const sti_shrinker *s, const sti_sample *sample)
{
    return sti_shrink_excess(s->desc, (double)sample->facts.bytes,
                             sample->facts.latency_ms, sample->ms);
}

/* Is a the better one? What keeps all limits comes first, then what keeps size and
 * latency, or is nearest to them, then what keeps the answers. */
static bool is_better(const sti_shrinker *s, const sti_sample *a, const sti_sample *b)
{
    const stint_shrink_desc *d = s->desc;
    const bool hard = d->size_bytes > 0 || limits_latency(d);
    if (a->facts.met != b->facts.met)
        return a->facts.met;
    if (sti_sample_fits(s, a) != sti_sample_fits(s, b))
        return sti_sample_fits(s, a);
    if (!sti_sample_fits(s, a))
        return excess_of(s, a) < excess_of(s, b);
    if (hard)
        return a->facts.accuracy > b->facts.accuracy;
    if (!a->facts.met)
        return sti_sample_slack(s, a) > sti_sample_slack(s, b);
    if (d->objective == STINT_SHRINK_OBJECTIVE_LATENCY)
        return a->facts.latency_ms < b->facts.latency_ms;
    return a->facts.bytes < b->facts.bytes;
}

const sti_sample *sti_shrink_choose(const sti_shrinker *s)
{
    const sti_sample *best = &s->sample[0];
    for (int i = 1; i < s->count; i++)
        if (is_better(s, &s->sample[i], best))
            best = &s->sample[i];
    return best;
}
