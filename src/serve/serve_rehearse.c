#include "serve/serve_rehearse.h"

#include <stdio.h>
#include <string.h>

#include "base/stop.h"

enum { CUT_BYTES = 32, CANDIDATES = 4 + STI_SERVE_SIZES };

/* A cut to try. */
typedef struct candidate {
    char cut[CUT_BYTES];
    double late;
} candidate;

typedef struct rehearsal {
    const sti_serve_options *options;
    sti_serve_tables *tables;
    const sti_simulate_desc *desc;
    double quantile;
    uint64_t seed;
    sti_serve_cut tried[CANDIDATES];
    int count;
} rehearsal;

static int list_candidates(const sti_serve_tables *t, candidate *list)
{
    int count = 0;
    for (int late = 0; late < 2; late++) {
        const double share = late ? t->late : 0;
        list[count++] = (candidate){"auto", share};
        list[count++] = (candidate){"paris", share};
    }
    for (int k = 0; k < t->sizes; k++) {
        sti_serve_cut cut;
        if (!sti_serve_cut_equal(t, t->size[k], &cut) || cut.count[k] < 1)
            continue;
        list[count].late = 0;
        snprintf(list[count++].cut, CUT_BYTES, "%dx%d", cut.count[k], t->size[k]);
    }
    return count;
}

static bool was_tried(const rehearsal *r, const sti_serve_cut *cut)
{
    for (int i = 0; i < r->count; i++)
        if (memcmp(r->tried[i].count, cut->count, sizeof cut->count) == 0)
            return true;
    return false;
}

/* again: also a cut that was tried. */
static stint_status rehearse(rehearsal *r, const char *cut, double late, bool again,
                             const sti_serve_rehearsed *out)
{
    sti_serve_options options = *r->options;
    sti_simulate_desc desc = *r->desc;
    sti_serve_plan plan;
    options.cut = cut;
    r->tables->late = late;
    *out->per_s = 0;
    const stint_status st = sti_serve_plan_make(&options, r->tables, &plan);
    if (st != STINT_OK || (!again && was_tried(r, &plan.cut)))
        return st;
    if (!again)
        r->tried[r->count++] = plan.cut;
    desc.scheduler = plan.scheduler;
    desc.scheduler.seed = r->seed;
    *out->bound_per_s = plan.bound_per_s;
    const double over = plan.scheduler.merge ? 4 : 2; /* a merged batch takes less */
    return sti_simulate_rate(&desc, r->quantile,
                             plan.bound_per_s > 0 ? over * plan.bound_per_s : 1e6,
                             out->per_s, out->result);
}

stint_status sti_serve_rehearse(const sti_serve_options *options,
                                sti_serve_tables *tables, const sti_simulate_desc *desc,
                                double quantile, uint64_t seed,
                                const sti_serve_rehearsed *out)
{
    rehearsal r = {.options = options,
                   .tables = tables,
                   .desc = desc,
                   .quantile = quantile,
                   .seed = seed};
    candidate list[CANDIDATES];
    double most = -1;
    int best = 0;
    if (strcmp(options->cut, "auto") != 0)
        return rehearse(&r, options->cut, tables->late, true, out);
    const int count = list_candidates(tables, list);
    for (int i = 0; i < count && sti_stop_asked() == STINT_OK; i++) {
        const stint_status st = rehearse(&r, list[i].cut, list[i].late, false, out);
        if (st == STINT_OK && *out->per_s > most) {
            most = *out->per_s;
            best = i;
        }
        sti_serve_result_fini(out->result);
    }
    const stint_status stopped = sti_stop_asked();
    return stopped != STINT_OK
               ? stopped
               : rehearse(&r, list[best].cut, list[best].late, true, out);
}
