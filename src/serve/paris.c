#include "serve/paris.h"

#include <math.h>
#include <string.h>

#include "base/fail.h"
#include "base/units.h"
#include "serve/paris_priv.h"

/* Smallest batch with this share of the size's highest throughput. */
static int knee_of(const sti_serve_model *m, const double *time_s, double knee)
{
    double best = 0;
    for (int b = 1; b <= m->batch_most; b++)
        best = fmax(best, b / time_s[b - 1]);
    int b = 1;
    while (b < m->batch_most && b / time_s[b - 1] < knee * best)
        b++;
    return b;
}

static void find_knees(const sti_serve_tables *t, const sti_serve_model *m, double knee,
                       int *knee_out)
{
    int before = 0, last = -1;
    for (int k = 0; k < t->sizes; k++) {
        knee_out[k] = 0;
        if (!(sti_serve_p50(m, k)[0] < HUGE_VAL))
            continue;
        const int own = knee_of(m, sti_serve_p50(m, k), knee);
        knee_out[k] = before = own > before ? own : before;
        last = k;
    }
    if (last >= 0)
        knee_out[last] = m->batch_most;
}

/* The size that a batch belongs to: that of its segment, or the next larger one that is
 * in time, or any that is; of one that may be late the largest. */
static int size_of_batch(const sti_serve_tables *t, const sti_serve_model *m,
                         const int *knee, int b)
{
    for (int k = 0; k < t->sizes; k++)
        if (b <= knee[k] && sti_serve_p95(m, k)[b - 1] <= m->sla_s)
            return k;
    for (int k = t->sizes - 1; k >= 0; k--)
        if (sti_serve_p95(m, k)[b - 1] <= m->sla_s)
            return k;
    for (int k = t->sizes - 1; k >= 0 && b > sti_serve_largest_in_time(t, m); k--)
        if (sti_serve_p50(m, k)[b - 1] < HUGE_VAL)
            return k;
    return -1;
}

static stint_status impossible(const sti_serve_tables *t, const sti_serve_model *m,
                               int b)
{
    double least = HUGE_VAL;
    for (int k = 0; k < t->sizes; k++)
        least = fmin(least, sti_serve_p95(m, k)[b - 1]);
    return sti_fail(STINT_E_BUDGET,
                    "%s: no partition answers a batch of %d within %s: the fastest "
                    "takes %s in 95 of 100 cases; allow that much, or smaller batches",
                    m->name, b, sti_time_text(m->sla_s), sti_time_text(least));
}

static stint_status find_demand(const sti_serve_tables *t, const sti_serve_model *m,
                                sti_paris_model *p)
{
    memset(p->demand_s, 0, sizeof p->demand_s);
    for (int b = 1; b <= m->batch_most; b++) {
        if (!(m->share[b - 1] > 0) && b < m->batch_most)
            continue;
        const int k = size_of_batch(t, m, p->knee, b);
        if (k < 0)
            return impossible(t, m, b);
        p->demand_s[k] += m->share[b - 1] * sti_serve_p50(m, k)[b - 1];
    }
    return STINT_OK;
}

static bool has_room(const sti_serve_tables *t, const sti_serve_cut *cut, int size)
{
    sti_serve_cut more = *cut;
    more.count[size]++;
    return sti_serve_cut_place(t, &more, NULL);
}

/* Shares of CPUs that do not fit on them, though their units would: the largest go. */
static void thin(const sti_serve_tables *t, sti_serve_cut *cut)
{
    while (!sti_serve_cut_place(t, cut, NULL)) {
        int k = t->sizes - 1;
        while (cut->count[k] == 0 || sti_serve_size_cpus(t, t->size[k]) > 0)
            k--;
        cut->count[k]--;
    }
}

/* Whole numbers: rounded down, then what is left to those that lost most, in units. */
static void round_cut(const sti_serve_tables *t, const double *wanted,
                      sti_serve_cut *cut)
{
    *cut = (sti_serve_cut){.count = {0}};
    for (int k = 0; k < t->sizes; k++)
        cut->count[k] = (int)(wanted[k] + 1e-9);
    thin(t, cut);
    for (;;) {
        const int left = t->units - sti_serve_cut_units(t, cut);
        int best = -1;
        double most = 0;
        for (int k = 0; k < t->sizes; k++) {
            const double lost = (wanted[k] - cut->count[k]) * t->size[k];
            if (wanted[k] > 0 && t->size[k] <= left && (best < 0 || lost > most) &&
                has_room(t, cut, k)) {
                best = k;
                most = lost;
            }
        }
        if (best < 0)
            return;
        cut->count[best]++;
    }
}

static bool does_largest(const sti_serve_tables *t, const sti_serve_model *m, int size)
{
    return sti_serve_p95(m, size)[sti_serve_largest_in_time(t, m) - 1] <= m->sla_s;
}

/* The largest batch must find a partition that answers it in time. */
static bool serves_largest(const sti_serve_tables *t, const sti_serve_cut *cut)
{
    for (int m = 0; m < t->models; m++) {
        bool any = false;
        for (int k = 0; k < t->sizes; k++)
            any = any || (cut->count[k] > 0 && does_largest(t, &t->model[m], k));
        if (!any)
            return false;
    }
    return true;
}

/* The smallest share of a CPU that does all models' largest batches: two of the
 * machine's halves are worth more than the whole. */
static int size_of_largest(const sti_serve_tables *t)
{
    for (int k = 0; t->cpus && k < t->sizes; k++) {
        int does = 0;
        for (int m = 0; m < t->models; m++)
            does += does_largest(t, &t->model[m], k);
        if (does == t->models)
            return k;
    }
    return t->sizes - 1;
}

/* One of the size that the largest batch needs in place of as many others as it takes,
 * small ones first. */
static void add_largest(const sti_serve_tables *t, sti_serve_cut *cut)
{
    const int last = size_of_largest(t);
    if (t->mig7) {
        double wanted[STI_SERVE_SIZES];
        for (int k = 0; k < t->sizes; k++)
            wanted[k] = cut->count[k];
        wanted[last] = fmax(wanted[last], 1);
        sti_mig7_fit(t, wanted, cut);
        return;
    }
    cut->count[last]++;
    for (int k = 0; k < t->sizes; k++)
        while (k != last && cut->count[k] > 0 && !sti_serve_cut_place(t, cut, NULL))
            cut->count[k]--;
    while (cut->count[last] > 1 && !sti_serve_cut_place(t, cut, NULL))
        cut->count[last]--;
}

stint_status sti_paris_cut(const sti_serve_tables *tables, double knee,
                           sti_paris *paris_out, sti_serve_cut *cut_out)
{
    double sum = 0, demand[STI_SERVE_SIZES] = {0};
    *paris_out = (sti_paris){.wanted = {0}};
    for (int m = 0; m < tables->models; m++) {
        sti_paris_model *p = &paris_out->model[m];
        find_knees(tables, &tables->model[m], knee, p->knee);
        const stint_status st = find_demand(tables, &tables->model[m], p);
        if (st != STINT_OK)
            return st;
        for (int k = 0; k < tables->sizes; k++)
            demand[k] += tables->model[m].weight * p->demand_s[k];
    }
    for (int k = 0; k < tables->sizes; k++)
        sum += tables->size[k] * demand[k];
    for (int k = 0; k < tables->sizes; k++)
        paris_out->wanted[k] = demand[k] * tables->units / sum;
    if (tables->mig7)
        sti_mig7_fit(tables, paris_out->wanted, cut_out);
    else
        round_cut(tables, paris_out->wanted, cut_out);
    if (!serves_largest(tables, cut_out))
        add_largest(tables, cut_out);
    return STINT_OK;
}
