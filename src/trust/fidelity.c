#include "trust/fidelity.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/fail.h"
#include "base/memory.h"
#include "kernel/maths/maths.h"
#include "trust/calibration.h"
#include "trust/statistics.h"

enum { BEST = 5 };

/* ---- answers ---- */

bool sti_fidelity_answers(const float *logits, int64_t count, int32_t classes,
                          int32_t *answer, int64_t *bad)
{
    for (int64_t i = 0; i < count; i++) {
        const float *z = logits + i * classes;
        answer[i] = 0;
        for (int32_t c = 0; c < classes; c++) {
            if (!isfinite(z[c])) {
                *bad = i;
                return false;
            }
            if (z[c] > z[answer[i]])
                answer[i] = c;
        }
    }
    return true;
}

/* log of the sum of exp(z), largest first taken out. */
static double log_sum(const float *z, int32_t classes, int32_t best)
{
    double sum = 0;
    for (int32_t c = 0; c < classes; c++)
        sum += (double)sti_exp_f32(z[c] - z[best]);
    return (double)z[best] + (double)sti_log_f32((float)sum);
}

/* ---- scores ---- */

/* The classes of the largest logits, best first; the lower class of equal ones. */
static void find_best(const float *z, int32_t classes, int32_t best[BEST])
{
    for (int k = 0; k < BEST; k++) {
        best[k] = -1;
        for (int32_t c = 0; c < classes; c++) {
            bool taken = false;
            for (int j = 0; j < k; j++)
                taken |= best[j] == c;
            if (!taken && (best[k] < 0 || z[c] > z[best[k]]))
                best[k] = c;
        }
    }
}

static bool same_best(const float *a, const float *b, int32_t classes)
{
    int32_t first[BEST], second[BEST];
    int common = 0;
    find_best(a, classes, first);
    find_best(b, classes, second);
    for (int i = 0; i < BEST; i++)
        for (int j = 0; j < BEST; j++)
            common += first[i] == second[j] && first[i] >= 0;
    return common == (classes < BEST ? classes : BEST);
}

static int ascending(const void *a, const void *b)
{
    const float x = *(const float *)a, y = *(const float *)b;
    return x < y ? -1 : x > y;
}

static void score_one(const sti_fidelity_data *d, int64_t i, stint_fidelity *out,
                      stint_calibration kept[2], float *kl)
{
    const float *r = d->reference + i * d->classes, *c = d->changed + i * d->classes;
    const int32_t best_r = out->reference_answer[i], best_c = out->changed_answer[i];
    const double sum_r = log_sum(r, d->classes, best_r);
    const double sum_c = log_sum(c, d->classes, best_c);
    double distance = 0;
    for (int32_t k = 0; k < d->classes; k++) {
        const double p = (double)sti_exp_f32((float)((double)r[k] - sum_r));
        distance += p * (((double)r[k] - sum_r) - ((double)c[k] - sum_c));
        const double apart = fabs((double)r[k] - (double)c[k]);
        out->logit_max = apart > out->logit_max ? apart : out->logit_max;
    }
    kl[i] = distance > 0 ? (float)distance : 0; /* below 0 only by rounding */
    sti_calibrate(&kept[0], (double)sti_exp_f32((float)((double)r[best_r] - sum_r)),
              best_r == d->label[i]);
    sti_calibrate(&kept[1], (double)sti_exp_f32((float)((double)c[best_c] - sum_c)),
              best_c == d->label[i]);
}

static stint_status find_scores(const sti_fidelity_data *d, stint_fidelity *out)
{
    stint_calibration kept[2] = {{{0}, {0}, {0}}, {{0}, {0}, {0}}};
    int64_t same = 0;
    double sum = 0;
    float *kl = sti_alloc_array(d->count, sizeof *kl, "fidelity");
    if (!kl)
        return STINT_E_MEMORY;
    for (int64_t i = 0; i < d->count; i++) {
        score_one(d, i, out, kept, kl);
        same += same_best(d->reference + i * d->classes, d->changed + i * d->classes,
                          d->classes);
        sum += (double)kl[i];
    }
    qsort(kl, (size_t)d->count, sizeof *kl, ascending);
    out->kl_mean = sum / (double)d->count;
    out->kl_999 = (double)kl[(d->count * 999 + 999) / 1000 - 1];
    out->top5_same = (double)same / (double)d->count;
    out->reference_ece = sti_calibration_error(&kept[0], d->count);
    out->changed_ece = sti_calibration_error(&kept[1], d->count);
    sti_free(kl);
    return STINT_OK;
}

/* ---- counts ---- */

static void find_counts(const sti_fidelity_data *d, stint_fidelity *out)
{
    int64_t other = 0, other_right = 0, lost = 0, won = 0, right_r = 0, right_c = 0;
    for (int64_t i = 0; i < d->count; i++) {
        const bool differs = out->reference_answer[i] != out->changed_answer[i];
        const bool r = out->reference_answer[i] == d->label[i];
        const bool c = out->changed_answer[i] == d->label[i];
        other += differs;
        other_right += differs && r;
        lost += r && !c;
        won += !r && c;
        right_r += r;
        right_c += c;
    }
    out->reference_accuracy = (double)right_r / (double)d->count;
    out->changed_accuracy = (double)right_c / (double)d->count;
    out->mismatch = sti_share(other, d->count);
    out->mismatch_right = sti_share(other_right, d->count);
    out->nfr = sti_share(lost, d->count);
    out->pfr = sti_share(won, d->count);
    out->mcnemar_p = sti_mcnemar_exact(lost, won);
}

/* What any such table must satisfy; a failure is an error of ours. */
static stint_status check_identities(const stint_fidelity *f)
{
    const int64_t r = (int64_t)(f->reference_accuracy * (double)f->count + 0.5);
    const int64_t c = (int64_t)(f->changed_accuracy * (double)f->count + 0.5);
    const int64_t apart = r > c ? r - c : c - r;
    if (c != r - f->nfr.count + f->pfr.count ||
        f->mismatch_right.count != f->nfr.count ||
        f->nfr.count + f->pfr.count > f->mismatch.count || f->mismatch.count < apart)
        return sti_fail(STINT_E_BUG, "fidelity: the counts contradict each other");
    return STINT_OK;
}

/* ---- parts: classes and groups ---- */

static double ratio(int64_t a, int64_t b)
{
    return b > 0 ? (double)a / (double)b : (double)NAN;
}

/* Rates of one class, over inputs of one group (-1: all). */
typedef struct class_rates {
    int64_t count, others, other_answers;
    int64_t hit[2], false_hit[2]; /* reference, changed */
} class_rates;

static class_rates rates_of(const sti_fidelity_data *d, const stint_fidelity *f,
                            int32_t class, int32_t group)
{
    class_rates t = {0};
    for (int64_t i = 0; i < d->count; i++) {
        if (group >= 0 && d->group[i] != group)
            continue;
        const bool own = d->label[i] == class;
        const bool r = f->reference_answer[i] == class;
        const bool c = f->changed_answer[i] == class;
        t.count += own;
        t.others += !own;
        t.other_answers += own && f->reference_answer[i] != f->changed_answer[i];
        t.hit[0] += own && r;
        t.hit[1] += own && c;
        t.false_hit[0] += !own && r;
        t.false_hit[1] += !own && c;
    }
    return t;
}

static stint_fidelity_part class_part(const sti_fidelity_data *d,
                                      const stint_fidelity *f, int32_t class)
{
    const class_rates t = rates_of(d, f, class, -1);
    return (stint_fidelity_part){.name = d->class_name[class],
                                 .count = t.count,
                                 .reference_right = t.hit[0],
                                 .changed_right = t.hit[1],
                                 .reference_fpr = ratio(t.false_hit[0], t.others),
                                 .changed_fpr = ratio(t.false_hit[1], t.others),
                                 .reference_tpr = ratio(t.hit[0], t.count),
                                 .changed_tpr = ratio(t.hit[1], t.count),
                                 .mismatch = sti_share(t.other_answers, t.count)};
}

/* Means over the classes that occur in the group. */
static stint_fidelity_part group_part(const sti_fidelity_data *d,
                                      const stint_fidelity *f, int32_t group)
{
    stint_fidelity_part p = {.name = group < 0 ? "all" : d->group_name[group]};
    int64_t classes = 0, false_classes = 0, other_answers = 0;
    for (int32_t c = 0; c < d->classes; c++) {
        const class_rates t = rates_of(d, f, c, group);
        p.count += t.count;
        p.reference_right += t.hit[0];
        p.changed_right += t.hit[1];
        other_answers += t.other_answers;
        if (t.count > 0) {
            p.reference_tpr += ratio(t.hit[0], t.count);
            p.changed_tpr += ratio(t.hit[1], t.count);
            classes++;
        }
        if (t.others > 0) {
            p.reference_fpr += ratio(t.false_hit[0], t.others);
            p.changed_fpr += ratio(t.false_hit[1], t.others);
            false_classes++;
        }
    }
    p.reference_tpr = classes ? p.reference_tpr / (double)classes : (double)NAN;
    p.changed_tpr = classes ? p.changed_tpr / (double)classes : (double)NAN;
    p.reference_fpr =
        false_classes ? p.reference_fpr / (double)false_classes : (double)NAN;
    p.changed_fpr = false_classes ? p.changed_fpr / (double)false_classes : (double)NAN;
    p.mismatch = sti_share(other_answers, p.count);
    return p;
}

static void find_class_spread(stint_fidelity *f)
{
    double sum = 0, square = 0;
    int64_t n = 0;
    f->worst_recall_change = 0;
    for (int32_t c = 0; c < f->classes; c++) {
        const stint_fidelity_part *p = &f->class_part[c];
        if (p->count == 0)
            continue;
        const double change = p->changed_tpr - p->reference_tpr;
        if (change < f->worst_recall_change)
            f->worst_recall_change = change;
        sum += p->mismatch.rate;
        square += p->mismatch.rate * p->mismatch.rate;
        n++;
    }
    const double mean = n ? sum / (double)n : 0;
    const double variance = n ? square / (double)n - mean * mean : 0;
    f->mismatch_spread = variance > 0 ? sqrt(variance) : 0;
}

static void find_odds_gap(const sti_fidelity_data *d, stint_fidelity *f)
{
    const stint_fidelity_part all = group_part(d, f, -1);
    for (int64_t g = 0; g < d->groups; g++) {
        const stint_fidelity_part *p = &f->group_part[g];
        const double tpr = fabs(p->changed_tpr - all.changed_tpr);
        const double fpr = fabs(p->changed_fpr - all.changed_fpr);
        if (tpr > f->odds_gap) /* false for a group without a rate */
            f->odds_gap = tpr;
        if (fpr > f->odds_gap)
            f->odds_gap = fpr;
    }
}

static stint_status find_parts(const sti_fidelity_data *d, stint_fidelity *f)
{
    f->class_part = sti_alloc_array(d->classes, sizeof *f->class_part, "fidelity");
    f->group_part = sti_alloc_array(d->groups, sizeof *f->group_part, "fidelity");
    if (!f->class_part || !f->group_part)
        return STINT_E_MEMORY;
    for (int32_t c = 0; c < d->classes; c++)
        f->class_part[c] = class_part(d, f, c);
    for (int64_t g = 0; g < d->groups; g++)
        f->group_part[g] = group_part(d, f, (int32_t)g);
    f->groups = d->groups;
    find_class_spread(f);
    find_odds_gap(d, f);
    return STINT_OK;
}

/* ---- all ---- */

static stint_status find_answers(const sti_fidelity_data *d, stint_fidelity *f)
{
    int64_t bad;
    f->reference_answer = sti_alloc_array(d->count, sizeof(int32_t), "answers");
    f->changed_answer = sti_alloc_array(d->count, sizeof(int32_t), "answers");
    if (!f->reference_answer || !f->changed_answer)
        return STINT_E_MEMORY;
    if (!sti_fidelity_answers(d->reference, d->count, d->classes, f->reference_answer,
                              &bad))
        return sti_fail(
            STINT_E_INPUT,
            "the reference gives a score that is not finite for input %" PRId64, bad);
    if (!sti_fidelity_answers(d->changed, d->count, d->classes, f->changed_answer,
                              &bad))
        return sti_fail(
            STINT_E_INPUT,
            "the new model gives a score that is not finite for input %" PRId64, bad);
    return STINT_OK;
}

stint_status sti_fidelity_find(const sti_fidelity_data *d, stint_fidelity *f)
{
    f->count = d->count;
    f->classes = d->classes;
    f->floor_mismatch = f->floor_nfr = (double)NAN;
    f->excess_low = f->excess = f->excess_high = (double)NAN;
    if (d->count < 1)
        return sti_fail(STINT_E_INPUT, "no inputs to compare on");
    stint_status st = find_answers(d, f);
    if (st == STINT_OK) {
        find_counts(d, f);
        st = check_identities(f);
    }
    if (st == STINT_OK)
        st = find_parts(d, f);
    return st == STINT_OK ? find_scores(d, f) : st;
}

stint_status sti_fidelity_floor(const sti_fidelity_data *d,
                                const int32_t *const *answer, int64_t floors,
                                stint_fidelity *f)
{
    float *excess = sti_alloc_array(d->count, sizeof *excess, "noise floor");
    int64_t other = 0, lost = 0;
    double sum = 0;
    if (!excess)
        return STINT_E_MEMORY;
    for (int64_t i = 0; i < d->count; i++) {
        int64_t here = 0;
        for (int64_t k = 0; k < floors; k++) {
            here += answer[k][i] != f->reference_answer[i];
            lost +=
                f->reference_answer[i] == d->label[i] && answer[k][i] != d->label[i];
        }
        const bool differs = f->changed_answer[i] != f->reference_answer[i];
        excess[i] = (float)differs - (float)here / (float)floors;
        other += here;
        sum += (double)excess[i];
    }
    f->floors = floors;
    f->floor_mismatch = (double)other / (double)(floors * d->count);
    f->floor_nfr = (double)lost / (double)(floors * d->count);
    f->excess = sum / (double)d->count;
    sti_bootstrap_mean(d->count, excess, 1, &f->excess_low, &f->excess_high);
    sti_free(excess);
    return STINT_OK;
}
