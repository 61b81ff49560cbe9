#include "infer/sampler.h"

#include <float.h>
#include <inttypes.h>
#include <math.h>

#include "base/fail.h"
#include "base/memory.h"
#include "base/rng.h"
#include "base/team.h"
#include "kernel/elementwise/elementwise.h"
#include "stint/topk.h"

enum { FIRST_LOOK = 256 }; /* tokens sorted at first when a share is asked for */

stint_status sti_sampler_check(const sti_sampler_desc *d)
{
    if (!(d->temperature >= 0 && d->temperature <= 1e6))
        return sti_fail(STINT_E_USAGE,
                        "temperature is %g, but must be 0 (always the likeliest token) "
                        "or a number above it, to 1e6; 1 is as trained",
                        d->temperature);
    if (d->top_k < 0)
        return sti_fail(STINT_E_USAGE, "top_k is %" PRId64 ", but must be at least 1",
                        d->top_k);
    if (!(d->top_p > 0 && d->top_p <= 1))
        return sti_fail(STINT_E_USAGE, "top_p is %g, but must be above 0 and at most 1",
                        d->top_p);
    return STINT_OK;
}

/* Sorted, of k winners. */
static stint_topk_desc select_desc(int64_t vocabulary, int64_t k)
{
    return (stint_topk_desc){.type = STINT_TOPK_F32,
                             .key = STINT_TOPK_MAX,
                             .nan = STINT_TOPK_NAN_LAST,
                             .zeros_equal = true,
                             .sorted = true,
                             .n = vocabulary,
                             .k = k,
                             .threads = 1};
}

static bool needs_order(const sti_sampler_desc *d, int64_t vocabulary)
{
    return d->temperature > 0 &&
           ((d->top_k > 0 && d->top_k < vocabulary) || d->top_p < 1);
}

/* Numbers of winners that are ever asked for: the first look, and eight times as many
 * again and again until `most`. */
static int64_t next_look(int64_t k, int64_t max_count)
{
    return k > max_count / 8 ? max_count : 8 * k;
}

static int64_t max_winners(const sti_sampler_desc *d, int64_t vocabulary)
{
    return d->top_k > 0 && d->top_k < vocabulary ? d->top_k : vocabulary;
}

static stint_status workspace_bytes(const sti_sampler_desc *d, int64_t vocabulary,
                                    size_t *bytes_out)
{
    const int64_t max_count = max_winners(d, vocabulary);
    int64_t k = max_count < FIRST_LOOK ? max_count : FIRST_LOOK;
    size_t largest = 0;
    for (;; k = next_look(k, max_count)) {
        size_t bytes;
        const stint_topk_desc desc = select_desc(vocabulary, k);
        const stint_status st = stint_topk_workspace_bytes(&desc, &bytes);
        if (st != STINT_OK)
            return st;
        largest = bytes > largest ? bytes : largest;
        if (k == max_count)
            break;
    }
    *bytes_out = largest;
    return STINT_OK;
}

stint_status sti_sampler_bytes(const sti_sampler_desc *desc, int64_t vocabulary,
                               size_t *bytes_out)
{
    *bytes_out = 0;
    if (!needs_order(desc, vocabulary)) {
        *bytes_out = (size_t)vocabulary * sizeof(float);
        return STINT_OK;
    }
    const stint_status st = workspace_bytes(desc, vocabulary, bytes_out);
    *bytes_out += (size_t)vocabulary * (sizeof(int64_t) + sizeof(float));
    return st;
}

stint_status sti_sampler_init(const sti_sampler_desc *desc, int64_t vocabulary,
                              sti_sampler *s)
{
    *s = (sti_sampler){.desc = *desc, .vocabulary = vocabulary};
    s->value = sti_alloc_array(vocabulary, sizeof *s->value, "sampler");
    if (!s->value)
        return STINT_E_MEMORY;
    if (!needs_order(desc, vocabulary))
        return STINT_OK;
    stint_status st = workspace_bytes(desc, vocabulary, &s->workspace_bytes);
    if (st == STINT_OK) {
        s->index = sti_alloc_array(vocabulary, sizeof *s->index, "sampler");
        s->workspace = sti_alloc(s->workspace_bytes, "sampler");
        st = s->index && s->workspace ? STINT_OK : STINT_E_MEMORY;
    }
    if (st != STINT_OK)
        sti_sampler_fini(s);
    return st;
}

/* What any k takes, by those that stand for the others. */
static stint_status workspace_any(int64_t vocabulary, size_t *bytes_out)
{
    stint_status st = STINT_OK;
    *bytes_out = 0;
    for (int64_t k = 0; k < vocabulary && st == STINT_OK; k = k ? 2 * k : 1) {
        size_t bytes;
        const sti_sampler_desc some = {.temperature = 1, .top_k = k, .top_p = 0.5};
        st = workspace_bytes(&some, vocabulary, &bytes);
        *bytes_out = st == STINT_OK && bytes > *bytes_out ? bytes : *bytes_out;
    }
    return st;
}

stint_status sti_sampler_bytes_any(int64_t vocabulary, size_t *bytes_out)
{
    const stint_status st = workspace_any(vocabulary, bytes_out);
    *bytes_out += (size_t)vocabulary * (sizeof(int64_t) + sizeof(float));
    return st;
}

stint_status sti_sampler_init_any(int64_t vocabulary, sti_sampler *s)
{
    *s = (sti_sampler){.desc = {.top_p = 1}, .vocabulary = vocabulary};
    stint_status st = workspace_any(vocabulary, &s->workspace_bytes);
    s->value = sti_alloc_array(vocabulary, sizeof *s->value, "sampler");
    s->index = sti_alloc_array(vocabulary, sizeof *s->index, "sampler");
    s->workspace = sti_alloc(s->workspace_bytes, "sampler");
    if (st == STINT_OK && (!s->value || !s->index || !s->workspace))
        st = STINT_E_MEMORY;
    if (st != STINT_OK)
        sti_sampler_fini(s);
    return st;
}

stint_status sti_sampler_reserve(sti_sampler *s, const sti_sampler_desc *desc)
{
    size_t bytes;
    if (!needs_order(desc, s->vocabulary))
        return STINT_OK;
    const stint_status st = workspace_bytes(desc, s->vocabulary, &bytes);
    if (st != STINT_OK || bytes <= s->workspace_bytes)
        return st;
    void *more = sti_alloc(bytes, "sampler");
    if (!more)
        return STINT_E_MEMORY;
    sti_free(s->workspace);
    s->workspace = more;
    s->workspace_bytes = bytes;
    return STINT_OK;
}

void sti_sampler_set(sti_sampler *s, const sti_sampler_desc *desc)
{
    s->desc = *desc;
}

void sti_sampler_fini(sti_sampler *s)
{
    sti_free(s->index);
    sti_free(s->value);
    sti_free(s->workspace);
    *s = (sti_sampler){0};
}

/* The likeliest token, the lowest on ties; -1 where a logit is no number to compare. */
static int64_t likeliest(int64_t n, const float *logits)
{
    int64_t best = 0;
    bool sound = true;
    for (int64_t i = 0; i < n; i++) {
        sound &= logits[i] < INFINITY; /* false for NaN */
        if (logits[i] > logits[best])
            best = i;
    }
    return sound ? best : -1;
}

/* value[i]: the weight of logit i against the likeliest one's, which is 1; returns
 * their sum. logits may be value. */
static double weigh(sti_sampler *s, const float *logits, int64_t count, float top)
{
    double sum = 0;
    for (int64_t i = 0; i < count; i++)
        s->value[i] = (logits[i] - top) / (float)s->desc.temperature;
    sti_unary_f32(&sti_team_serial, STI_UNARY_EXP, count, 0.0f, s->value, s->value);
    for (int64_t i = 0; i < count; i++)
        sum += (double)s->value[i];
    return sum;
}

/* value[i] = weight of the i-th winner of k; returns their sum. */
static stint_status order(sti_sampler *s, const float *logits, float top, int64_t k,
                          double *sum_out)
{
    const stint_topk_desc desc = select_desc(s->vocabulary, k);
    const stint_status st = stint_topk(&desc, logits, NULL, s->index, s->value,
                                       s->workspace, s->workspace_bytes);
    *sum_out = st == STINT_OK ? weigh(s, s->value, k, top) : 0;
    return st;
}

/* How many of the k first make up the share top_p of `sum`; 0: more than these. */
static int64_t count_share(const sti_sampler *s, int64_t k, double sum, double *kept)
{
    *kept = 0;
    for (int64_t i = 0; i < k; i++) {
        *kept += (double)s->value[i];
        if (*kept >= s->desc.top_p * sum)
            return i + 1;
    }
    return 0;
}

/* Winners in order with their weights: as many as take part, and the sum of these. Few
 * are sorted at first; how many were looked at does not show in the result. */
static stint_status choose(sti_sampler *s, const float *logits, float top,
                           int64_t *count_out, double *sum_out)
{
    const int64_t max_count = max_winners(&s->desc, s->vocabulary);
    double sum = 0;
    if (max_count < s->vocabulary || s->desc.top_p >= 1) {
        const stint_status st = order(s, logits, top, max_count, &sum);
        *count_out = s->desc.top_p < 1 ? count_share(s, max_count, sum, sum_out) : 0;
        if (*count_out == 0) { /* all of them, also when rounding fell short */
            *count_out = max_count;
            *sum_out = sum;
        }
        return st;
    }
    sum = weigh(s, logits, s->vocabulary, top);
    for (int64_t k = max_count < FIRST_LOOK ? max_count : FIRST_LOOK;;
         k = next_look(k, max_count)) {
        double some;
        const stint_status st = order(s, logits, top, k, &some);
        *count_out = count_share(s, k, sum, sum_out);
        if (st != STINT_OK || *count_out > 0)
            return st;
        if (k == max_count) {
            *count_out = max_count;
            *sum_out = some;
            return st;
        }
    }
}

/* The token below whose running sum of weights u * sum lies. */
static int64_t pick(const float *weight, int64_t count, double sum, double u)
{
    double below = 0;
    int64_t last = 0;
    for (int64_t i = 0; i < count; i++) {
        below += (double)weight[i];
        if (weight[i] > 0.0f)
            last = i;
        if (below > u * sum)
            return i;
    }
    return last; /* u * sum rounded up to the sum itself */
}

stint_status sti_sampler_draw(sti_sampler *s, const float *logits, int64_t i,
                              int32_t *token_out)
{
    const int64_t best = likeliest(s->vocabulary, logits);
    uint32_t word[4];
    double sum = 0;
    int64_t count = s->vocabulary;
    if (best < 0)
        return sti_fail(STINT_E_FAILED,
                        "token %" PRId64
                        ": the model's logits hold NaN or infinity; its weights are "
                        "damaged or too large",
                        i);
    *token_out = (int32_t)best;
    /* What float32 takes for 0 would divide 0 by 0. */
    if (s->desc.temperature < (double)FLT_MIN)
        return STINT_OK;
    const bool ordered = needs_order(&s->desc, s->vocabulary);
    if (ordered) {
        const stint_status st = choose(s, logits, logits[best], &count, &sum);
        if (st != STINT_OK)
            return st;
    }
    if (!ordered)
        sum = weigh(s, logits, s->vocabulary, logits[best]);
    sti_random4(s->desc.seed, STI_STREAM_SAMPLE, (uint64_t)i, 0, word);
    const uint64_t bits = (uint64_t)word[0] << 32 | word[1];
    const int64_t at = pick(s->value, count, sum, (double)(bits >> 11) * 0x1p-53);
    *token_out = (int32_t)(ordered ? s->index[at] : at);
    return STINT_OK;
}
