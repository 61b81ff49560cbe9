/* The training network with other tensors packed, or in other blocks. */
#include <string.h>

#include "base/fail.h"
#include "plan/budget.h"
#include "train/error_section.h"
#include "train/job.h"
#include "train/run_section.h"

static stint_status form_table(const sti_value_form *forms, int count, int32_t values,
                               uint8_t **table_out)
{
    uint8_t *table = sti_alloc((size_t)values, "form");
    if (!table)
        return STINT_E_MEMORY;
    for (int i = 0; i < count; i++) {
        if (forms[i].value < 0 || forms[i].value >= values || forms[i].form < 0 ||
            forms[i].form >= STI_FORMS) {
            sti_free(table);
            return sti_fail(STINT_E_INPUT,
                            "plan: form %d of value %d, of which there are "
                            "%d and %d",
                            (int)forms[i].form, (int)forms[i].value, STI_FORMS,
                            (int)values);
        }
        table[forms[i].value] = (uint8_t)forms[i].form;
    }
    *table_out = table;
    return STINT_OK;
}

int sti_job_list_forms(const sti_job *job, sti_value_form *forms_out)
{
    int count = 0;
    for (int32_t v = 0; job->form && v < job->form_values; v++)
        if (job->form[v] != STI_FORM_KEEP)
            forms_out[count++] = (sti_value_form){v, job->form[v]};
    return count;
}

static stint_status rewrite(const sti_job *job, sti_network *fresh,
                            const sti_pack_choice *choices, int count,
                            const uint8_t *form, int32_t values)
{
    stint_status st = sti_network_pack(fresh, choices, count,
                                       sti_error_section_of(job->recipe)->check);
    if (st == STINT_OK && form)
        st = sti_budget_apply(fresh->graph, form, values);
    return st == STINT_OK ? sti_network_plan(
                                fresh, sti_crew_lane_threads(job->threads, job->lanes))
                          : st;
}

static void account(sti_job *job)
{
    sti_memory_account(job, job->lanes, &job->plan);
    job->plan.fits =
        job->plan.budget_bytes == 0 || job->plan.peak_bytes <= job->plan.budget_bytes;
}

stint_status sti_job_repack(sti_job *job, const sti_pack_choice *choices, int count,
                            const sti_value_form *forms, int form_count)
{
    sti_network fresh;
    uint8_t *table = NULL;
    stint_status st =
        sti_network_build(&job->network, STINT_TRAIN, job->train.images, &fresh);
    if (st != STINT_OK)
        return st;
    const int32_t values = sti_graph_value_count(fresh.graph);
    if (form_count > 0)
        st = form_table(forms, form_count, values, &table);
    if (st == STINT_OK)
        st = rewrite(job, &fresh, choices, count, forms ? table : job->form, values);
    if (st != STINT_OK) {
        sti_free(table);
        sti_network_fini(&fresh);
        return st;
    }
    if (forms) {
        sti_free(job->form);
        job->form = table;
        job->form_values = values;
        job->rewritten = table != NULL;
    }
    sti_network_fini(&job->train);
    job->train = fresh;
    account(job);
    return STINT_OK;
}

stint_status sti_job_fewer_lanes(sti_job *job)
{
    stint_status st = STINT_OK;
    while (!job->plan.fits && job->lanes > 1 &&
           sti_run_section_of(job->recipe)->lanes == 0 && st == STINT_OK) {
        job->lanes--;
        const int threads = sti_crew_lane_threads(job->threads, job->lanes);
        st = sti_network_plan(&job->train, threads);
        if (st == STINT_OK && job->eval.graph)
            st = sti_network_plan(&job->eval, threads);
        if (st == STINT_OK)
            account(job);
    }
    return st;
}

stint_status sti_job_rechoose(sti_job *job, const sti_pack_choice *sizes, int count)
{
    const int64_t images = job->train.images;
    sti_network_fini(&job->train);
    sti_free(job->form);
    job->form = NULL;
    job->rewritten = false;
    stint_status st =
        sti_network_build(&job->network, STINT_TRAIN, images, &job->train);
    job->exact = sizes == NULL;
    job->sizes = sizes;
    job->size_count = count;
    if (st == STINT_OK)
        st = sti_job_choose(job);
    job->exact = false;
    job->sizes = NULL;
    job->size_count = 0;
    return st;
}
