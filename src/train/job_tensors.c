/* The list of what goes from the forward to the backward half. */
#include <stdio.h>
#include <string.h>

#include "plan/budget.h"
#include "train/job.h"

/* A tensor of bytes is a small form already: sign bits, window indices. */
static stint_plan_form shown(const stint_shape *shape, sti_form form)
{
    switch (form) {
    case STI_FORM_RECOMPUTE:
    case STI_FORM_REPEAT:
        return STINT_PLAN_RECOMPUTED;
    case STI_FORM_PACK:
        return STINT_PLAN_PACKED;
    case STI_FORM_KEEP:
    case STI_FORMS:
        break;
    }
    return shape->dtype == STINT_U8 ? STINT_PLAN_SMALL : STINT_PLAN_KEPT;
}

/* Means and deviations of a batch-norm: many, tiny, always kept; listed as one. */
static bool is_statistic(const sti_value_row *row)
{
    return row->producer_out > 0 && row->shape.dtype == STINT_F32;
}

static void describe(const sti_value_row *row, const uint8_t *form, stint_value value,
                     stint_plan_tensor *t)
{
    const sti_node *node = row->producer;
    const char *what = "";
    if (row->shape.dtype == STINT_U8)
        what = strcmp(node->op->name, "max_pool") == 0 ? " index" : " bits";
    *t = (stint_plan_tensor){.bytes = stint_shape_bytes(&row->shape)};
    snprintf(t->name, sizeof t->name, "%s%s%s%s", node->scope, *node->scope ? " " : "",
             node->op->name, what);
    t->form = shown(&row->shape, form ? (sti_form)form[value] : STI_FORM_KEEP);
    t->held_bytes = t->form == STINT_PLAN_RECOMPUTED ? 0 : t->bytes;
}

/* Returns how many lines there are; those below `room` are written. */
static int list_all(const stint_graph *graph, const uint8_t *saved, const uint8_t *form,
                    stint_plan_tensor *list, int room)
{
    stint_plan_tensor rest = {.name = "batch statistics", .form = STINT_PLAN_SMALL};
    int count = 0;
    for (int32_t n = 0; n < sti_graph_node_count(graph); n++) {
        const sti_node *node = sti_graph_node(graph, n);
        for (int32_t i = 0; i < node->n_out; i++) {
            const sti_value_row *row = sti_graph_value(graph, node->out[i]);
            if (saved[node->out[i]] && is_statistic(row))
                rest.held_bytes = rest.bytes += stint_shape_bytes(&row->shape);
            else if (saved[node->out[i]] && count++ < room)
                describe(row, form, node->out[i], &list[count - 1]);
        }
    }
    if (rest.bytes > 0 && count++ < room)
        list[count - 1] = rest;
    return count;
}

stint_status sti_job_list_tensors(const stint_graph *graph, const uint8_t *form,
                                  stint_plan_result *plan)
{
    uint8_t *saved = sti_alloc((size_t)sti_graph_value_count(graph), "tensors");
    stint_plan_tensor *list = NULL;
    stint_status st = saved ? sti_budget_saved(graph, saved) : STINT_E_MEMORY;
    int count = st == STINT_OK ? list_all(graph, saved, form, NULL, 0) : 0;
    if (st == STINT_OK) {
        list = sti_alloc_array(count, sizeof *list, "tensors");
        st = list ? STINT_OK : STINT_E_MEMORY;
    }
    if (st == STINT_OK) {
        list_all(graph, saved, form, list, count);
        sti_free(plan->tensors);
        plan->tensors = list;
        plan->tensor_count = count;
    }
    sti_free(saved);
    return st;
}
