/* Which units go: by one threshold, or one a layer. */
#include <math.h>

#include "base/fail.h"
#include "train/project_priv.h"
#include "train/threshold.h"

/* ---- scores ---- */

void sti_scorer_begin(sti_scorer *s, sti_criterion criterion)
{
    *s = (sti_scorer){.criterion = criterion, .smallest = INFINITY};
}

void sti_scorer_add(sti_scorer *s, const float *x, int64_t n, int64_t stride)
{
    const bool squares =
        s->criterion == STI_CRITERION_RMS || s->criterion == STI_CRITERION_L2;
    for (int64_t i = 0; i < n; i++) {
        const double size = fabs((double)x[i * stride]);
        s->sum += squares ? size * size : size;
        s->largest = size > s->largest ? size : s->largest;
        s->smallest = size < s->smallest ? size : s->smallest;
    }
    s->count += n;
}

float sti_scorer_end(const sti_scorer *s)
{
    switch (s->criterion) {
    case STI_CRITERION_L2:
        return (float)sqrt(s->sum);
    case STI_CRITERION_MAX:
        return (float)s->largest;
    case STI_CRITERION_MIN:
        return (float)s->smallest;
    case STI_CRITERION_MEAN:
        return (float)(s->sum / (double)s->count);
    case STI_CRITERION_SUM:
        return (float)s->sum;
    case STI_CRITERION_RMS:
    default:
        return (float)sqrt(s->sum / (double)s->count);
    }
}

/* ---- thresholds ---- */

/* Scores of one target, or of all that a word takes (only NULL). */
typedef struct spans {
    sti_projection *p;
    int word;
    const sti_cutter *cutter;
    void *params;
    const sti_target *only;
} spans;

static const float *scores_of(const spans *s, const sti_target *t, int64_t first)
{
    return s->cutter->score ? s->p->score + first : sti_target_numbers(t, s->params);
}

static bool takes(const spans *s, const sti_target *t)
{
    return (t->takes >> s->word & 1) != 0;
}

static void visit(void *user, sti_threshold_counter *counter)
{
    const spans *s = user;
    const sti_scheme_word *word = &s->p->scheme.word[s->word];
    int64_t first = 0;
    for (int i = 0; i < s->p->count; i++) {
        const sti_target *t = &s->p->target[i];
        if (!takes(s, t))
            continue;
        const int64_t n = s->cutter->units(word, t);
        if (!s->only || s->only == t)
            sti_threshold_count(counter, scores_of(s, t, first), n);
        first += n;
    }
}

/* A share of n units; never all. A share such as 0.35 of 20 is 7, whatever 0.35 is in
 * binary.
 */
static int64_t removed(double share, int64_t n, bool round_up)
{
    const double exact = share * (double)n, slip = 1e-9 * (double)(n + 1);
    const int64_t k =
        round_up ? (int64_t)ceil(exact - slip) : (int64_t)floor(exact + slip);
    return k < n ? k : n - 1;
}

/* How many units of a target stay above a threshold, in the order of all. */
static int64_t count_kept(const float *score, int64_t n, sti_threshold *threshold)
{
    int64_t kept = 0;
    for (int64_t i = 0; i < n; i++)
        kept += !sti_threshold_cuts(threshold, score[i]);
    return kept;
}

static int64_t rounded(int64_t kept, int64_t align)
{
    kept -= kept % align;
    return kept > 0 ? kept : align;
}

/* Cut all but `kept` units of one target, whose scores begin at `first`. */
static void cut_target(spans *s, const sti_target *t, int64_t first, int64_t kept)
{
    const sti_scheme_word *word = &s->p->scheme.word[s->word];
    const int64_t n = s->cutter->units(word, t);
    if (kept >= n)
        return;
    s->only = t;
    sti_threshold threshold = sti_threshold_find(n - kept, visit, s);
    s->only = NULL;
    const float *score = scores_of(s, t, first);
    for (int64_t i = 0; i < n; i++)
        if (sti_threshold_cuts(&threshold, score[i]))
            s->cutter->cut(word, t, s->params, i);
}

static int64_t score_all(const spans *s)
{
    const sti_scheme_word *word = &s->p->scheme.word[s->word];
    int64_t total = 0;
    for (int i = 0; i < s->p->count; i++) {
        const sti_target *t = &s->p->target[i];
        if (!takes(s, t))
            continue;
        if (s->cutter->score)
            s->cutter->score(word, t, sti_target_numbers(t, s->params),
                             s->p->score + total);
        total += s->cutter->units(word, t);
    }
    return total;
}

/* Once a word: a projection is applied again and again. */
static void warn_empty(sti_projection *p, const sti_target *t, int index)
{
    const sti_scheme_word *word = &p->scheme.word[index];
    if (p->warned >> index & 1)
        return;
    p->warned |= 1u << index;
    sti_log(STINT_LOG_WARNING, "scheme: %s would leave nothing of %s; its best is kept",
            sti_scheme_kind_name(word->kind), t->name);
}

void sti_project_cut(sti_projection *p, int index, const sti_cutter *cutter,
                     void *params)
{
    const sti_scheme_word *word = &p->scheme.word[index];
    spans s = {p, index, cutter, params, NULL};
    const int64_t total = score_all(&s);
    const bool each = word->layer || word->shares > 1;
    const int64_t k =
        word->automatic || each ? 0 : removed(word->share[0], total, cutter->round_up);
    sti_threshold threshold = {0};
    if (word->automatic || total == 0)
        return;
    if (k > 0)
        threshold = sti_threshold_find(k, visit, &s);
    int layer = 0;
    int64_t first = 0;
    for (int i = 0; i < p->count; i++) {
        const sti_target *t = &p->target[i];
        if (!takes(&s, t))
            continue;
        const int64_t n = cutter->units(word, t);
        int64_t kept = n;
        if (each)
            kept -=
                removed(word->share[word->shares > 1 ? layer : 0], n, cutter->round_up);
        else if (k > 0)
            kept = count_kept(scores_of(&s, t, first), n, &threshold);
        if (kept == 0)
            warn_empty(p, t, index);
        cut_target(&s, t, first, rounded(kept, word->align));
        first += n;
        layer++;
    }
}
