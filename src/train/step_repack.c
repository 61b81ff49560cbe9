/* The training network with other tensors packed, or in other blocks. */
#include <string.h>

#include "base/fail.h"
#include "plan/budget.h"
#include "train/error_section.h"
#include "train/memory_account.h"
#include "train/run_section.h"
#include "train/step_plan.h"

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

int sti_step_list_forms(const sti_step_plan *plan, sti_value_form *forms_out)
{
    int count = 0;
    for (int32_t v = 0; plan->form && v < plan->form_values; v++)
        if (plan->form[v] != STI_FORM_KEEP)
            forms_out[count++] = (sti_value_form){v, plan->form[v]};
    return count;
}

static void account(const sti_setup *setup, sti_step_plan *plan)
{
    stint_plan_result *result = &plan->result;
    sti_account process;
    sti_memory_account(setup, &setup->train, plan->rewritten, plan->lanes, &process);
    sti_memory_take_account(&process, plan->lanes, result);
    result->budget_bytes = sti_run_section_of(setup->inputs->recipe)->memory_bytes;
    result->fits = sti_step_plan_holds(result, result->budget_bytes);
}

static stint_status rewrite(const sti_setup *setup, int lanes, sti_network *fresh,
                            const sti_pack_choice *choices, int count,
                            const uint8_t *form, int32_t values)
{
    const bool check = sti_error_section_of(setup->inputs->recipe)->check;
    stint_status st = sti_network_pack(fresh, choices, count, check);
    if (st == STINT_OK && form)
        st = sti_budget_apply(fresh->graph, form, values);
    return st == STINT_OK
               ? sti_network_plan(fresh, sti_lane_threads(setup->threads, lanes))
               : st;
}

stint_status sti_step_repack(sti_setup *setup, sti_step_plan *plan,
                             const sti_pack_choice *choices, int count,
                             const sti_value_form *forms, int form_count)
{
    sti_network fresh = {.graph = NULL};
    uint8_t *table = NULL;
    stint_status st;
    STI_TRY(sti_network_build(&setup->inputs->network, STINT_TRAIN, setup->train.images,
                              &fresh));
    const int32_t values = sti_graph_value_count(fresh.graph);
    if (form_count > 0)
        STI_TRY(form_table(forms, form_count, values, &table));
    STI_TRY(rewrite(setup, plan->lanes, &fresh, choices, count,
                    forms ? table : plan->form, values));
    if (forms) {
        sti_free(plan->form);
        plan->form = table;
        plan->form_values = values;
        plan->rewritten = table != NULL;
    }
    sti_network_fini(&setup->train);
    setup->train = fresh;
    account(setup, plan);
    return STINT_OK;
out:
    sti_free(table);
    sti_network_fini(&fresh);
    return st;
}

stint_status sti_step_fewer_lanes(sti_setup *setup, sti_step_plan *plan)
{
    const int64_t wanted = sti_run_section_of(setup->inputs->recipe)->lanes;
    stint_status st = STINT_OK;
    while (!plan->result.fits && plan->lanes > 1 && wanted == 0 && st == STINT_OK) {
        plan->lanes--;
        st = sti_setup_plan(setup, &setup->train, plan->lanes);
        if (st == STINT_OK)
            account(setup, plan);
    }
    return st;
}

stint_status sti_step_rechoose(sti_setup *setup, sti_step_plan *plan,
                               const sti_choice_hints *hints)
{
    const int64_t images = setup->train.images;
    sti_network_fini(&setup->train);
    sti_free(plan->form);
    plan->form = NULL;
    plan->rewritten = false;
    const stint_status st =
        sti_network_build(&setup->inputs->network, STINT_TRAIN, images, &setup->train);
    return st == STINT_OK ? sti_step_choose(setup, hints, plan) : st;
}

static int worth_packing(const sti_pack_choice *sizes, int count,
                         sti_pack_choice *choices_out)
{
    int kept = 0;
    for (int i = 0; i < count; i++)
        if (sizes[i].capacity > 0)
            choices_out[kept++] = sizes[i];
    return kept;
}

stint_status sti_step_enlarge(sti_setup *setup, sti_step_plan *plan,
                              const sti_pack_choice *sizes, int count)
{
    const sti_choice_hints hints = {.sizes = sizes, .size_count = count};
    sti_pack_choice *kept = sti_alloc_array((int64_t)count + 1, sizeof *kept, "packs");
    if (!kept)
        return STINT_E_MEMORY;
    stint_status st =
        sti_step_repack(setup, plan, kept, worth_packing(sizes, count, kept), NULL, 0);
    sti_free(kept);
    return st == STINT_OK && !plan->result.fits ? sti_step_rechoose(setup, plan, &hints)
                                                : st;
}
