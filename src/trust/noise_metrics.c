#include "trust/noise_metrics.h"

#include <inttypes.h>
#include <math.h>

#include "base/fail.h"
#include "base/memory.h"

/* Share of right answers, and of false positives and false negatives: means over the
 * classes that have such a rate. NaN: none has. */
typedef struct noise_rates {
    double accuracy, fpr, fnr;
} noise_rates;

/* What is counted once and used for every run. */
typedef struct counter {
    const sti_noise_table *table;
    int64_t *of_class, *right, *wrong; /* [classes]: inputs, true and false positives */
} counter;

static void count_answers(counter *c, const int32_t *answer, int64_t group)
{
    const sti_noise_table *t = c->table;
    for (int32_t k = 0; k < t->classes; k++)
        c->of_class[k] = c->right[k] = c->wrong[k] = 0;
    for (int64_t i = 0; i < t->count; i++) {
        if (group >= 0 && t->group[i] != group)
            continue;
        c->of_class[t->label[i]]++;
        if (answer[i] == t->label[i])
            c->right[answer[i]]++;
        else
            c->wrong[answer[i]]++;
    }
}

static noise_rates class_rates(const counter *c, int32_t k, int64_t total)
{
    const double positive = (double)c->of_class[k];
    const double negative = (double)(total - c->of_class[k]);
    noise_rates r = {.accuracy = (double)NAN, .fpr = (double)NAN, .fnr = (double)NAN};
    if (positive > 0) {
        r.accuracy = (double)c->right[k] / positive;
        r.fnr = (positive - (double)c->right[k]) / positive;
    }
    if (negative > 0)
        r.fpr = (double)c->wrong[k] / negative;
    return r;
}

static int64_t counted(const counter *c)
{
    int64_t total = 0;
    for (int32_t k = 0; k < c->table->classes; k++)
        total += c->of_class[k];
    return total;
}

/* The rates of all that was counted. */
static noise_rates whole_rates(const counter *c)
{
    const int64_t total = counted(c);
    noise_rates sum = {.accuracy = 0};
    int64_t right = 0, with_fpr = 0, with_fnr = 0;
    for (int32_t k = 0; k < c->table->classes; k++) {
        const noise_rates r = class_rates(c, k, total);
        right += c->right[k];
        if (!isnan(r.fpr)) {
            sum.fpr += r.fpr;
            with_fpr++;
        }
        if (!isnan(r.fnr)) {
            sum.fnr += r.fnr;
            with_fnr++;
        }
    }
    return (noise_rates){.accuracy =
                             total ? (double)right / (double)total : (double)NAN,
                         .fpr = with_fpr ? sum.fpr / (double)with_fpr : (double)NAN,
                         .fnr = with_fnr ? sum.fnr / (double)with_fnr : (double)NAN};
}

/* Standard deviation of the population; exactly 0 for equal values. */
static double deviation(const double *value, int64_t n, double *mean_out)
{
    double sum = 0, squares = 0;
    for (int64_t i = 0; i < n; i++)
        sum += value[i] - value[0]; /* equal values: no rounding of the mean */
    const double mean = value[0] + sum / (double)n;
    for (int64_t i = 0; i < n; i++)
        squares += (value[i] - mean) * (value[i] - mean);
    if (mean_out)
        *mean_out = mean;
    return sqrt(squares / (double)n);
}

/* Deviations of three rates over runs; rates [runs]. */
static void deviations(const noise_rates *rates, int64_t runs, double *scratch,
                       double out[3], double *accuracy_mean)
{
    double mean;
    for (int which = 0; which < 3; which++) {
        for (int64_t r = 0; r < runs; r++)
            scratch[r] = which == 0   ? rates[r].accuracy
                         : which == 1 ? rates[r].fpr
                                      : rates[r].fnr;
        out[which] = deviation(scratch, runs, &mean);
        if (which == 0 && accuracy_mean)
            *accuracy_mean = mean;
    }
}

/* 1: the part varies as the whole does. No variation at all is no spread. */
static double relative(double part, double whole)
{
    return part == 0 ? 0 : whole > 0 ? part / whole : (double)NAN;
}

static void fill_part(stint_noise_part *part, const stint_noise_arm *arm,
                      const double deviation_of[3], double mean, int64_t count)
{
    part->count = count;
    part->accuracy_mean = mean;
    part->accuracy_stdev = deviation_of[0];
    part->fpr_stdev = deviation_of[1];
    part->fnr_stdev = deviation_of[2];
    part->accuracy_spread = relative(part->accuracy_stdev, arm->accuracy_stdev);
    part->fpr_spread = relative(part->fpr_stdev, arm->fpr_stdev);
    part->fnr_spread = relative(part->fnr_stdev, arm->fnr_stdev);
}

static double share_of_others(const int32_t *a, const int32_t *b, int64_t count)
{
    int64_t others = 0;
    for (int64_t i = 0; i < count; i++)
        others += a[i] != b[i];
    return (double)others / (double)count;
}

static void measure_churn(const sti_noise_table *t, const noise_rates *rates,
                          stint_noise_arm *arm)
{
    double sum = 0, least = 0;
    for (int64_t a = 0; a < t->runs; a++)
        for (int64_t b = a + 1; b < t->runs; b++) {
            sum += share_of_others(t->answer[a], t->answer[b], t->count);
            least += fabs(rates[a].accuracy - rates[b].accuracy);
        }
    const double pairs = (double)t->runs * (double)(t->runs - 1) / 2;
    arm->churn = sum / pairs;
    arm->churn_least = least / pairs;
}

typedef struct noise_work {
    counter counter;
    noise_rates *rates; /* [runs, classes + 1], the whole last */
    noise_rates *line;  /* [runs] */
    double *scratch;    /* [runs] */
} noise_work;

static void measure_all(noise_work *w, stint_noise_arm *arm)
{
    const sti_noise_table *t = w->counter.table;
    const int64_t columns = t->classes + 1;
    double d[3], mean;
    for (int64_t r = 0; r < t->runs; r++) {
        count_answers(&w->counter, t->answer[r], -1);
        for (int32_t k = 0; k < t->classes; k++)
            w->rates[r * columns + k] = class_rates(&w->counter, k, t->count);
        w->rates[r * columns + t->classes] = w->line[r] = whole_rates(&w->counter);
    }
    deviations(w->line, t->runs, w->scratch, d, &arm->accuracy_mean);
    arm->accuracy_stdev = d[0];
    arm->fpr_stdev = d[1];
    arm->fnr_stdev = d[2];
    measure_churn(t, w->line, arm);
    for (int32_t k = 0; k < t->classes; k++) {
        for (int64_t r = 0; r < t->runs; r++)
            w->line[r] = w->rates[r * columns + k];
        deviations(w->line, t->runs, w->scratch, d, &mean);
        fill_part(&arm->class_part[k], arm, d, mean, w->counter.of_class[k]);
    }
}

static void measure_groups(noise_work *w, stint_noise_arm *arm)
{
    const sti_noise_table *t = w->counter.table;
    double d[3], mean;
    for (int64_t g = 0; g < t->groups; g++) {
        for (int64_t r = 0; r < t->runs; r++) {
            count_answers(&w->counter, t->answer[r], g);
            w->line[r] = whole_rates(&w->counter);
        }
        deviations(w->line, t->runs, w->scratch, d, &mean);
        fill_part(&arm->group_part[g], arm, d, mean, counted(&w->counter));
    }
}

static stint_status check_table(const sti_noise_table *t)
{
    if (t->runs < 2)
        return sti_fail(STINT_E_INPUT,
                        "%" PRId64 " run has nothing to differ from; give --runs 2 or "
                        "more",
                        t->runs);
    if (t->count < 1)
        return sti_fail(STINT_E_INPUT, "there are no inputs to answer");
    for (int64_t r = 0; r < t->runs; r++)
        for (int64_t i = 0; i < t->count; i++)
            if (t->answer[r][i] < 0 || t->answer[r][i] >= t->classes)
                return sti_fail(STINT_E_INPUT,
                                "run %" PRId64 " answers input %" PRId64
                                " with class %" PRId32 " of %" PRId32,
                                r + 1, i, t->answer[r][i], t->classes);
    return STINT_OK;
}

stint_status sti_noise_measure(const sti_noise_table *table, stint_noise_arm *arm)
{
    noise_work w = {.counter = {.table = table}};
    stint_status st = check_table(table);
    if (st != STINT_OK)
        return st;
    int64_t *counts =
        sti_alloc_array(3 * (int64_t)table->classes, sizeof *counts, "noise counts");
    w.rates = sti_alloc_array(table->runs * (table->classes + 2), sizeof *w.rates,
                              "noise rates");
    w.scratch = sti_alloc_array(table->runs, sizeof *w.scratch, "noise rates");
    if (counts && w.rates && w.scratch) {
        w.line = w.rates + table->runs * (table->classes + 1);
        w.counter.of_class = counts;
        w.counter.right = counts + table->classes;
        w.counter.wrong = counts + 2 * table->classes;
        arm->runs = table->runs;
        measure_all(&w, arm);
        if (table->group)
            measure_groups(&w, arm);
    } else {
        st = STINT_E_MEMORY;
    }
    sti_free(counts);
    sti_free(w.rates);
    sti_free(w.scratch);
    return st;
}

/* NaN is the deviation of what no run has, such as the recall of a class without
 * inputs. */
static bool parts_are_zero(const stint_noise_part *part, int64_t count)
{
    for (int64_t i = 0; i < count; i++)
        if (part[i].accuracy_stdev > 0 || part[i].fpr_stdev > 0 ||
            part[i].fnr_stdev > 0)
            return false;
    return true;
}

bool sti_noise_is_zero(const stint_noise_arm *arm, int32_t classes, int64_t groups)
{
    return arm->accuracy_stdev == 0 && arm->fpr_stdev == 0 && arm->fnr_stdev == 0 &&
           arm->churn == 0 && arm->distance == 0 && arm->distance_normalised == 0 &&
           arm->onset_step < 0 && parts_are_zero(arm->class_part, classes) &&
           parts_are_zero(arm->group_part, groups);
}
