/* What the budget solver and those who apply its choices share: what a node costs, what
 * is kept for the backward half, which values can be packed, and how a graph is
 * rewritten as a set of forms says. */
#include <string.h>

#include "base/fail.h"
#include "op/op.h"
#include "plan/plan_priv.h"

/* Rates of one thread for comparing costs; only their ratio decides anything. Constants
 * rather than measurements: the choice must be the same on every machine. */
#define FLOP_PER_S  60e9
#define BYTES_PER_S 9e9
/* Seconds that the codec takes for a value. */
#define PACK_S   3.5e-9
#define UNPACK_S 3.0e-9

/* ---- costs ---- */

static double values_of(const stint_graph *graph, stint_value value)
{
    return (double)stint_shape_count(&sti_graph_value(graph, value)->shape);
}

double sti_budget_node_seconds(const stint_graph *graph, const sti_node *node)
{
    if (node->op->flags & STI_OP_VIEW)
        return 0;
    if (node->op == &sti_op_pack)
        return PACK_S * values_of(graph, node->in[0]);
    if (node->op == &sti_op_unpack)
        return UNPACK_S * values_of(graph, node->out[0]);
    if (node->op->cost) {
        sti_cost cost = node->op->cost(graph, node);
        double work = cost.flop / FLOP_PER_S;
        double moved = (cost.read_bytes + cost.write_bytes) / BYTES_PER_S;
        return work > moved ? work : moved;
    }
    double bytes = 0;
    for (int32_t i = 0; i < node->n_in; i++)
        if (node->in[i] >= 0)
            bytes +=
                (double)stint_shape_bytes(&sti_graph_value(graph, node->in[i])->shape);
    if (node->n_out > 0)
        bytes +=
            (double)stint_shape_bytes(&sti_graph_value(graph, node->out[0])->shape);
    return bytes / BYTES_PER_S;
}

double sti_budget_seconds(const stint_graph *graph)
{
    double seconds = 0;
    for (int32_t n = 0; n < sti_graph_node_count(graph); n++)
        seconds += sti_budget_node_seconds(graph, sti_graph_node(graph, n));
    return seconds;
}

/* ---- what is kept ---- */

const sti_node *sti_budget_maker(const stint_graph *graph, stint_value value)
{
    const sti_node *node = sti_graph_value(graph, value)->producer;
    return node && !node->backward && !(node->op->flags & STI_OP_VIEW) ? node : NULL;
}

stint_status sti_budget_saved(const stint_graph *graph, uint8_t *saved_out)
{
    int32_t values = sti_graph_value_count(graph);
    stint_value *content = sti_alloc_array(values, sizeof *content, "budget.saved");
    if (!content)
        return STINT_E_MEMORY;
    memset(saved_out, 0, (size_t)values);
    for (stint_value v = 0; v < values; v++)
        content[v] = v;
    for (int32_t n = 0; n < sti_graph_node_count(graph); n++) {
        const sti_node *node = sti_graph_node(graph, n);
        if (node->op->flags & STI_OP_VIEW)
            content[node->out[0]] = content[node->in[0]];
        for (int32_t i = 0; i < node->n_in && node->backward; i++)
            if (node->in[i] >= 0 && sti_budget_maker(graph, content[node->in[i]]))
                saved_out[content[node->in[i]]] = 1;
    }
    sti_free(content);
    return STINT_OK;
}

/* ---- forms ---- */

stint_status sti_budget_apply(stint_graph *graph, const uint8_t *form, int32_t values)
{
    stint_status status = sti_pass_recompute(graph, form, values, NULL);
    if (status == STINT_OK)
        status = sti_pass_inplace(graph, NULL);
    return status ? status : stint_graph_check(graph);
}

void sti_budget_choices(const sti_budget *budget, const uint8_t *form,
                        sti_pack_choice *choices_out, int *count_out)
{
    *count_out = 0;
    for (stint_value v = 0; v < budget->values; v++)
        if (sti_form_packs((sti_form)form[v]) && budget->blocks[v].capacity > 0) {
            choices_out[*count_out] = budget->blocks[v];
            if (form[v] == STI_FORM_PACK_SUM)
                choices_out[*count_out].form = STI_PACK_SUM;
            ++*count_out;
        }
}

/* ---- blocks ---- */

stint_status sti_budget_list(const stint_graph *graph, sti_pack_candidate *by_value,
                             sti_pack_choice *blocks)
{
    int count = 0;
    int32_t values = sti_graph_value_count(graph);
    sti_pack_candidate *list = sti_alloc_array(values, sizeof *list, "budget.packs");
    stint_status status = list ? STINT_OK : STINT_E_MEMORY;
    if (status == STINT_OK)
        status = sti_pack_candidates(graph, list, &count);
    for (int i = 0; i < count && status == STINT_OK; i++) {
        stint_value v = list[i].value;
        if (by_value)
            by_value[v] = list[i];
        blocks[v] = (sti_pack_choice){v, list[i].form,
                                      sti_pack_capacity(list[i].expected_bytes)};
    }
    sti_free(list);
    return status;
}

stint_status sti_budget_use_sizes(sti_budget *b, const sti_pack_choice *sizes,
                                  int count)
{
    for (int i = 0; i < count; i++) {
        const sti_pack_choice *known = &sizes[i];
        if (known->value < 0 || known->value >= b->values)
            return sti_fail(STINT_E_BUG, "budget: a size of another network");
        if (b->blocks[known->value].capacity > 0)
            b->blocks[known->value].capacity = known->capacity;
    }
    return STINT_OK;
}

stint_status sti_budget_blocks(const stint_graph *graph, const sti_pack_choice *sizes,
                               int size_count, sti_budget *budget)
{
    budget->values = sti_graph_value_count(graph);
    budget->blocks = sti_alloc_array(budget->values, sizeof *budget->blocks, "budget");
    stint_status status =
        budget->blocks ? sti_budget_list(graph, NULL, budget->blocks) : STINT_E_MEMORY;
    return status == STINT_OK ? sti_budget_use_sizes(budget, sizes, size_count)
                              : status;
}

void sti_budget_destroy(sti_budget *budget)
{
    if (!budget)
        return;
    for (int32_t i = 0; i < budget->count; i++)
        sti_free(budget->options[i].form);
    sti_free(budget->options);
    sti_free(budget->blocks);
    sti_free(budget);
}
