/* What of a step is packed or made again, as lists that another plan of the same
 * network can take over: that of another process, with lanes and a budget of its own.
 */
#include <string.h>

#include "base/fail.h"
#include "op/op_bf16.h"
#include "train/step_plan.h"

void sti_held_fini(sti_held *held)
{
    sti_free(held->pack);
    sti_free(held->form);
    *held = (sti_held){.packs = 0};
}

stint_status sti_held_init(sti_held *held, int packs, int forms)
{
    *held = (sti_held){.packs = packs, .forms = forms, .slowdown = 1};
    held->pack = sti_alloc_array((int64_t)packs + 1, sizeof *held->pack, "held");
    held->form = sti_alloc_array((int64_t)forms + 1, sizeof *held->form, "held");
    if (held->pack && held->form)
        return STINT_OK;
    sti_held_fini(held);
    return STINT_E_MEMORY;
}

sti_pack_choice sti_held_choice(const sti_node *pack)
{
    const sti_pack_attr *attr = pack->attr;
    return (sti_pack_choice){.value = pack->in[0],
                             .form = attr->sum    ? STI_PACK_SUM
                                     : attr->norm ? STI_PACK_NORM
                                                  : STI_PACK_VALUE,
                             .capacity = attr->capacity};
}

/* By row, so that a network packed by the list has the same rows. */
static int list_packs(const stint_graph *graph, sti_pack_choice *out)
{
    int count = 0;
    for (int32_t n = 0; n < sti_graph_node_count(graph); n++) {
        const sti_node *node = sti_graph_node(graph, n);
        if (node->op != &sti_op_pack)
            continue;
        if (out)
            out[((const sti_pack_attr *)node->attr)->row] = sti_held_choice(node);
        count++;
    }
    return count;
}

stint_status sti_held_of(const sti_network *train, const sti_step_plan *plan,
                         sti_held *held)
{
    const stint_status st = sti_held_init(held, list_packs(train->graph, NULL),
                                          plan->form ? plan->form_values : 0);
    if (st != STINT_OK)
        return st;
    list_packs(train->graph, held->pack);
    held->forms = sti_step_list_forms(plan, held->form);
    held->slowdown = plan->result.slowdown;
    return STINT_OK;
}

/* The tensors of the plan's result, which tell of the network as built. */
static stint_status list_tensors(const sti_setup *setup, const sti_held *held,
                                 sti_step_plan *plan)
{
    sti_network plain = {.graph = NULL};
    sti_pack_choice *blocks = NULL;
    stint_status st;
    STI_TRY(sti_network_build(&setup->inputs->network, STINT_TRAIN, setup->train.images,
                              &plain));
    const int32_t values = sti_graph_value_count(plain.graph);
    blocks = sti_alloc_array(values, sizeof *blocks, "held");
    if (!blocks) {
        st = STINT_E_MEMORY;
        goto out;
    }
    for (int i = 0; i < held->packs; i++)
        if (held->pack[i].value >= 0 && held->pack[i].value < values)
            blocks[held->pack[i].value] = held->pack[i];
    STI_TRY(sti_step_list_tensors(plain.graph, plan->form, plan->form ? blocks : NULL,
                                  &plan->result));
out:
    sti_free(blocks);
    sti_network_fini(&plain);
    return st;
}

stint_status sti_step_hold(sti_setup *setup, sti_step_plan *plan, const sti_held *held)
{
    stint_status st;
    plan->lanes = sti_step_fastest_lanes(setup);
    STI_TRY(sti_setup_plan(setup, &setup->train, plan->lanes));
    STI_TRY(
        sti_step_repack(setup, plan, held->pack, held->packs, held->form, held->forms));
    STI_TRY(sti_step_fewer_lanes(setup, plan));
    STI_TRY(list_tensors(setup, held, plan));
    plan->result.slowdown = held->slowdown;
out:
    return st;
}
