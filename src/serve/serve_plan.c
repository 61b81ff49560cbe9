#include "serve/serve_plan.h"

#include <math.h>
#include <string.h>

#include "base/fail.h"
#include "base/linear_program.h"
#include "base/shown.h"

/* What a query of a model takes in the mean on a partition of a size. */
static double mean_time(const sti_serve_model *m, int size)
{
    double sum = 0;
    for (int b = 0; b < m->batch_most; b++)
        sum += m->share[b] > 0 ? m->share[b] * sti_serve_p50(m, size)[b] : 0;
    return sum;
}

/* Does a model's work keep a partition for longer than another's answers may take? On
 * one partition alone the other would be late behind it, whatever the rate. */
static bool one_blocks_another(const sti_serve_tables *t, int size)
{
    for (int a = 0; a < t->models; a++)
        for (int b = 0; b < t->models; b++)
            if (a != b && mean_time(&t->model[a], size) > t->model[b].sla_s)
                return true;
    return false;
}

/* The largest partitions of which there are two, in the place of a single one behind
 * whose work others would wait: the bound that a cut is chosen by knows of no waiting.
 */
static stint_status part_blockers(const sti_serve_tables *t, sti_serve_plan *plan)
{
    if (sti_serve_cut_partitions(t, &plan->cut) > 1 ||
        !one_blocks_another(t, t->sizes - 1))
        return STINT_OK;
    for (int k = t->sizes - 2; k >= 0; k--) {
        sti_serve_cut cut;
        if (!sti_serve_cut_equal(t, t->size[k], &cut) || cut.count[k] < 2)
            continue;
        plan->cut = cut;
        return sti_linear_program_known() ? sti_serve_bound(t, &cut, &plan->bound_per_s)
                                          : STINT_OK;
    }
    return STINT_OK;
}

static stint_status choose_cut(const sti_serve_options *options,
                               const sti_serve_tables *tables, sti_serve_plan *plan)
{
    const bool chosen = strcmp(options->cut, "auto") == 0;
    stint_status st = STINT_OK;
    plan->bound_per_s = (double)NAN;
    if (!chosen && strcmp(options->cut, "paris") != 0)
        STI_TRY(sti_serve_cut_parse(tables, options->cut, &plan->cut));
    if (!sti_linear_program_known()) {
        if (chosen)
            sti_log(STINT_LOG_WARNING, "%s; the cut is PARIS's", stint_last_error());
        return chosen ? part_blockers(tables, plan) : STINT_OK;
    }
    st = chosen ? sti_serve_climb(tables, &plan->cut, &plan->bound_per_s)
                : sti_serve_bound(tables, &plan->cut, &plan->bound_per_s);
    if (chosen && st == STINT_OK)
        st = part_blockers(tables, plan);
out:
    return st;
}

/* Is there a partition for each batch of each model? Tables may lack sizes. */
static stint_status check_cut(const sti_serve_tables *tables, const sti_serve_cut *cut)
{
    for (int m = 0; m < tables->models; m++) {
        const sti_serve_model *model = &tables->model[m];
        bool runs = false;
        for (int k = 0; k < tables->sizes && !runs; k++)
            runs = cut->count[k] > 0 &&
                   sti_serve_p50(model, k)[model->batch_most - 1] < HUGE_VAL;
        if (!runs)
            return sti_fail(STINT_E_USAGE,
                            "the cut has no partition of a size that the tables have "
                            "times of %s for",
                            sti_shown(model->name));
    }
    return STINT_OK;
}

stint_status sti_serve_plan_make(const sti_serve_options *options,
                                 const sti_serve_tables *tables, sti_serve_plan *plan)
{
    stint_status st;
    STI_TRY(sti_paris_cut(tables, STI_PARIS_KNEE, &plan->paris, &plan->cut));
    STI_TRY(choose_cut(options, tables, plan));
    STI_TRY(check_cut(tables, &plan->cut));
    plan->scheduler = (sti_scheduler_desc){.tables = tables,
                                           .cut = &plan->cut,
                                           .policy = (sti_serve_policy)options->policy,
                                           .admit_all = options->admit == 1,
                                           .serve_late = options->late == 1,
                                           .merge = options->batch_max > 1,
                                           .batch_most = (int)options->batch_max,
                                           .batch_delay_s = options->batch_delay_s};
out:
    return st;
}
