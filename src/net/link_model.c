#include "net/link_model.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/fail.h"

/* A line through the origin predicts nothing for an empty message. */
#define LEAST_SECONDS 1e-9

const double sti_link_percent[STI_LINK_QUANTILES] = {1,  2.5, 5,    25, 50,
                                                     75, 95,  97.5, 99, 99.9};

#define MERGE_WITHIN 0.03
/* Medians are never better than this: keeps BIC from splitting what is exact. */
#define LEAST_ERROR 1e-6

/* Medians of the sizes, ascending, and where their samples lie. */
typedef struct points {
    int count;
    double bytes[STI_LINK_SIZES], seconds[STI_LINK_SIZES];
    int64_t first[STI_LINK_SIZES + 1];
} points;

typedef struct line {
    double alpha, beta, error; /* sum of squared relative errors */
    double slope;              /* beta before alpha was bounded */
    bool bounded;
} line;

static int by_bytes(const void *a, const void *b)
{
    const sti_link_sample *x = a, *y = b;
    if (x->bytes != y->bytes)
        return x->bytes < y->bytes ? -1 : 1;
    return (x->seconds > y->seconds) - (x->seconds < y->seconds);
}

static double median(const sti_link_sample *sorted, int64_t n)
{
    return n % 2 ? sorted[n / 2].seconds
                 : (sorted[n / 2 - 1].seconds + sorted[n / 2].seconds) / 2;
}

static stint_status find_points(int64_t n, sti_link_sample *samples, points *p)
{
    qsort(samples, (size_t)n, sizeof *samples, by_bytes);
    p->count = 0;
    for (int64_t i = 0; i < n;) {
        int64_t end = i;
        for (; end < n && samples[end].bytes == samples[i].bytes; end++)
            if (!(samples[end].seconds >= STI_LINK_LEAST_S &&
                  samples[end].seconds <= STI_LINK_MAX_S && samples[end].bytes >= 0 &&
                  samples[end].bytes <= STI_LINK_MAX_BYTES))
                return sti_fail(STINT_E_INPUT,
                                "link: a message of %g bytes took %g s; times are from "
                                "%g to %g s",
                                samples[end].bytes, samples[end].seconds,
                                STI_LINK_LEAST_S, STI_LINK_MAX_S);
        if (p->count == STI_LINK_SIZES)
            return sti_fail(STINT_E_INPUT, "link: more than %d sizes", STI_LINK_SIZES);
        p->first[p->count] = i;
        p->bytes[p->count] = samples[i].bytes;
        p->seconds[p->count++] = median(samples + i, end - i);
        i = end;
    }
    p->first[p->count] = n;
    return p->count >= 3
               ? STINT_OK
               : sti_fail(STINT_E_INPUT,
                          "link: %d sizes; at least 3 make a line and a doubt",
                          p->count);
}

/* Least squares of (alpha + beta s) / t - 1 over points [from, to). */
static line fit_line(const points *p, int from, int to)
{
    double w = 0, ws = 0, wss = 0, wt = 0, wst = 0;
    line l = {0};
    for (int i = from; i < to; i++) {
        const double t = p->seconds[i], s = p->bytes[i], weight = 1 / (t * t);
        w += weight;
        ws += weight * s;
        wss += weight * s * s;
        wt += weight * t;
        wst += weight * s * t;
    }
    const double det = w * wss - ws * ws;
    if (det > 1e-12 * w * wss) {
        l.alpha = (wss * wt - ws * wst) / det;
        l.beta = (w * wst - ws * wt) / det;
    } else {
        l.alpha = wt / w;
    }
    if (l.beta < 0) { /* larger messages are not faster: noise */
        l.beta = 0;
        l.alpha = wt / w;
    }
    l.slope = l.beta;
    if (l.alpha < 0) {
        l.alpha = 0;
        l.beta = wst / wss;
        l.bounded = true;
    }
    for (int i = from; i < to; i++) {
        const double e = (l.alpha + l.beta * p->bytes[i]) / p->seconds[i] - 1;
        l.error += e * e;
    }
    return l;
}

/* cut[k][j]: where the last of k + 1 segments over points [0, j) begins. */
typedef struct cuts {
    double error[STI_LINK_SEGMENTS][STI_LINK_SIZES + 1];
    int cut[STI_LINK_SEGMENTS][STI_LINK_SIZES + 1];
} cuts;

enum { LEAST_POINTS = 3 };

static void find_cuts(const points *p, cuts *c)
{
    for (int j = 0; j <= p->count; j++)
        for (int k = 0; k < STI_LINK_SEGMENTS; k++)
            c->error[k][j] = INFINITY;
    for (int i = 0; i < p->count; i++)
        for (int j = i + LEAST_POINTS; j <= p->count; j++) {
            const double error = fit_line(p, i, j).error;
            if (i == 0) {
                c->error[0][j] = error;
                c->cut[0][j] = 0;
            }
            for (int k = 1; k < STI_LINK_SEGMENTS && i > 0; k++)
                if (c->error[k - 1][i] + error < c->error[k][j]) {
                    c->error[k][j] = c->error[k - 1][i] + error;
                    c->cut[k][j] = i;
                }
        }
}

/* Segments by the Bayesian information criterion: two numbers and a place each. */
static int choose_count(const points *p, const cuts *c)
{
    const double n = p->count;
    double best = INFINITY;
    int count = 1;
    for (int k = 0; k < STI_LINK_SEGMENTS; k++) {
        const double error = c->error[k][p->count] / n + LEAST_ERROR * LEAST_ERROR;
        const double bic = n * log(error) + (3 * k + 2) * log(n);
        if (bic < best) {
            best = bic;
            count = k + 1;
        }
    }
    return count;
}

static bool lines_agree(const points *p, const line *a, const line *b, int from, int to)
{
    for (int i = from; i < to; i++) {
        const double x = a->alpha + a->beta * p->bytes[i];
        const double y = b->alpha + b->beta * p->bytes[i];
        if (fabs(x - y) > MERGE_WITHIN * fmin(x, y))
            return false;
    }
    return true;
}

/* begin [count + 1]: places of the segments; the result is how many are left. */
static int merge(const points *p, int count, int *begin)
{
    for (int k = 0; k + 1 < count;) {
        const line a = fit_line(p, begin[k], begin[k + 1]);
        const line b = fit_line(p, begin[k + 1], begin[k + 2]);
        if (!lines_agree(p, &a, &b, begin[k], begin[k + 2])) {
            k++;
            continue;
        }
        memmove(begin + k + 1, begin + k + 2, (size_t)(count - k - 1) * sizeof *begin);
        count--;
    }
    return count;
}

static int by_value(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

void sti_link_sort(double *x, int64_t n)
{
    qsort(x, (size_t)n, sizeof *x, by_value);
}

double sti_link_quantile(const double *sorted, int64_t n, double percent)
{
    const double at = percent / 100 * (double)(n - 1);
    const int64_t low = (int64_t)at;
    const double part = at - (double)low;
    /* Never falls with percent, rounding included. */
    return low + 1 < n ? fmin(sorted[low] + (sorted[low + 1] - sorted[low]) * part,
                              sorted[low + 1])
                       : sorted[n - 1];
}

static void set_quantiles(const points *p, const sti_link_sample *samples, int from,
                          int to, double *ratios, sti_link_segment *s)
{
    int64_t n = 0;
    for (int i = from; i < to; i++)
        for (int64_t k = p->first[i]; k < p->first[i + 1]; k++)
            ratios[n++] = samples[k].seconds /
                          fmax(s->alpha_s + s->beta_s * p->bytes[i], LEAST_SECONDS);
    sti_link_sort(ratios, n);
    for (int q = 0; q < STI_LINK_QUANTILES; q++)
        s->quantile[q] =
            fmin(sti_link_quantile(ratios, n, sti_link_percent[q]), STI_LINK_MAX);
}

/* Spread and the interval of the median (of order statistics), the worst sizes. */
static void set_doubt(const points *p, const sti_link_sample *samples,
                      sti_link_model *model)
{
    model->spread = 1;
    model->confident = 0;
    for (int i = 0; i < p->count; i++) {
        const sti_link_sample *s = samples + p->first[i];
        const int64_t n = p->first[i + 1] - p->first[i];
        const int64_t wide = (int64_t)ceil(0.98 * sqrt((double)n));
        const int64_t low = n / 2 > wide ? n / 2 - wide : 0;
        const int64_t high = n / 2 + wide < n ? n / 2 + wide : n - 1;
        const double half = (s[high].seconds - s[low].seconds) / 2 / p->seconds[i];
        const double tail =
            s[(int64_t)ceil(0.95 * (double)(n - 1))].seconds / p->seconds[i];
        model->confident = fmin(fmax(model->confident, half), STI_LINK_MAX);
        model->spread = fmin(fmax(model->spread, tail), STI_LINK_MAX);
    }
}

stint_status sti_link_fit(int64_t n, sti_link_sample *samples, sti_link_model *model)
{
    points p;
    int begin[STI_LINK_SEGMENTS + 1];
    stint_status st = find_points(n, samples, &p);
    if (st != STINT_OK)
        return st;
    cuts *c = sti_alloc(sizeof *c, "net.link");
    double *ratios = sti_alloc_array(n, sizeof *ratios, "net.link");
    if (!c || !ratios) {
        st = STINT_E_MEMORY;
        goto out;
    }
    find_cuts(&p, c);
    int count = choose_count(&p, c);
    begin[count] = p.count;
    for (int k = count - 1; k >= 0; k--)
        begin[k] = c->cut[k][begin[k + 1]];
    count = merge(&p, count, begin);
    model->count = count;
    model->samples = n;
    for (int k = 0; k < count; k++) {
        const line l = fit_line(&p, begin[k], begin[k + 1]);
        model->segment[k] =
            (sti_link_segment){.from_bytes = k ? p.bytes[begin[k]] : 0,
                               .alpha_s = fmin(l.alpha, STI_LINK_MAX_S),
                               .beta_s = fmin(l.beta, STI_LINK_MAX_S),
                               .bounded = l.bounded,
                               .stream_s = fmin(l.slope, STI_LINK_MAX_S)};
        set_quantiles(&p, samples, begin[k], begin[k + 1], ratios, &model->segment[k]);
    }
    set_doubt(&p, samples, model);
out:
    sti_free(c);
    sti_free(ratios);
    return st;
}

const sti_link_segment *sti_link_segment_of(const sti_link_model *model, double bytes)
{
    int k = 0;
    while (k + 1 < model->count && bytes >= model->segment[k + 1].from_bytes)
        k++;
    return &model->segment[k];
}

double sti_link_seconds(const sti_link_model *model, double bytes)
{
    const sti_link_segment *s = sti_link_segment_of(model, bytes);
    return s->alpha_s + s->beta_s * bytes;
}

double sti_link_seconds_at(const sti_link_model *model, double bytes, int q)
{
    return sti_link_seconds(model, bytes) *
           sti_link_segment_of(model, bytes)->quantile[q];
}
