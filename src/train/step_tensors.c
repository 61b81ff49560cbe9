/* The list of what goes from the forward to the backward half. */
#include <stdio.h>
#include <string.h>

#include "plan/budget.h"
#include "train/step_plan.h"

/* A tensor of bytes is a small form already: sign bits, window indices. */
static stint_plan_form shown(const stint_shape *shape, sti_form form)
{
    switch (form) {
    case STI_FORM_RECOMPUTE:
    case STI_FORM_REPEAT:
        return STINT_PLAN_RECOMPUTED;
    case STI_FORM_PACK:
    case STI_FORM_PACK_SUM:
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

typedef struct lister {
    const stint_graph *graph;
    uint8_t *saved;
    uint8_t *form; /* [values]: as shown */
    size_t *held;  /* [values]: of packed ones */
} lister;

static void describe(const lister *l, stint_value value, stint_plan_tensor *t)
{
    const sti_value_row *row = sti_graph_value(l->graph, value);
    const sti_node *node = row->producer;
    const char *what = "";
    if (row->shape.dtype == STINT_U8)
        what = strcmp(node->op->name, "max_pool") == 0 ? " index" : " bits";
    *t = (stint_plan_tensor){.bytes = stint_shape_bytes(&row->shape)};
    snprintf(t->name, sizeof t->name, "%s%s%s%s", node->scope, *node->scope ? " " : "",
             node->op->name, what);
    t->form = shown(&row->shape, (sti_form)l->form[value]);
    t->held_bytes = t->form == STINT_PLAN_RECOMPUTED ? 0
                    : t->form == STINT_PLAN_PACKED   ? l->held[value]
                                                     : t->bytes;
}

/* Returns how many lines there are; those below `room` are written. */
static int list_all(const lister *l, stint_plan_tensor *list, int room)
{
    stint_plan_tensor rest = {.name = "batch statistics", .form = STINT_PLAN_SMALL};
    int count = 0;
    for (int32_t n = 0; n < sti_graph_node_count(l->graph); n++) {
        const sti_node *node = sti_graph_node(l->graph, n);
        for (int32_t i = 0; i < node->n_out; i++) {
            const sti_value_row *row = sti_graph_value(l->graph, node->out[i]);
            if (l->saved[node->out[i]] && is_statistic(row))
                rest.held_bytes = rest.bytes += stint_shape_bytes(&row->shape);
            else if (l->saved[node->out[i]] && count++ < room)
                describe(l, node->out[i], &list[count - 1]);
        }
    }
    if (rest.bytes > 0 && count++ < room)
        list[count - 1] = rest;
    return count;
}

/* Blocks and the tensors that they stand for beside their own. */
static stint_status find_packed(lister *l, const sti_pack_choice *blocks)
{
    int count = 0;
    int32_t values = sti_graph_value_count(l->graph);
    sti_pack_candidate *list = sti_alloc_array(values, sizeof *list, "tensors");
    stint_status st = list ? STINT_OK : STINT_E_MEMORY;
    if (st == STINT_OK)
        st = sti_pack_candidates(l->graph, list, &count);
    for (int i = 0; i < count && st == STINT_OK; i++) {
        if (!sti_form_packs((sti_form)l->form[list[i].value]))
            continue;
        l->held[list[i].value] = (size_t)blocks[list[i].value].capacity;
        if (list[i].also >= 0)
            l->form[list[i].also] = STI_FORM_PACK;
    }
    sti_free(list);
    return st;
}

static stint_status lister_init(lister *l, const uint8_t *form,
                                const sti_pack_choice *blocks)
{
    size_t values = (size_t)sti_graph_value_count(l->graph);
    l->saved = sti_alloc(values, "tensors");
    l->form = sti_alloc(values, "tensors");
    l->held = sti_alloc_array((int64_t)values, sizeof *l->held, "tensors");
    if (!l->saved || !l->form || !l->held)
        return STINT_E_MEMORY;
    if (form)
        memcpy(l->form, form, values);
    stint_status st = sti_budget_saved(l->graph, l->saved);
    return st == STINT_OK && blocks ? find_packed(l, blocks) : st;
}

stint_status sti_step_list_tensors(const stint_graph *graph, const uint8_t *form,
                                   const sti_pack_choice *blocks,
                                   stint_plan_result *result)
{
    lister l = {.graph = graph};
    stint_plan_tensor *list = NULL;
    stint_status st = lister_init(&l, form, blocks);
    int count = st == STINT_OK ? list_all(&l, NULL, 0) : 0;
    if (st == STINT_OK) {
        list = sti_alloc_array(count, sizeof *list, "tensors");
        st = list ? STINT_OK : STINT_E_MEMORY;
    }
    if (st == STINT_OK) {
        list_all(&l, list, count);
        sti_free(result->tensors);
        result->tensors = list;
        result->tensor_count = count;
    }
    sti_free(l.saved);
    sti_free(l.form);
    sti_free(l.held);
    return st;
}
