/* From a loss to what a training step must give: one gradient a parameter that is
 * trained. */
#include <stdio.h>

#include "base/fail.h"
#include "op/op.h"
#include "pass/pass_priv.h"

/* Parameters with their gradients, and how much of each is trained. */
typedef struct trained {
    stint_value *param, *gradient;
    sti_train_share *share;
    int count;
} trained;

/* Params of the set; the others are frozen. */
static void collect_params(stint_graph *graph, const sti_train_set *set, trained *t)
{
    for (int32_t v = 0; v < sti_graph_value_count(graph); v++) {
        const sti_value_row *row = sti_graph_value(graph, v);
        sti_train_share share = {.count = 0};
        if (row->role != STI_ROLE_PARAM)
            continue;
        if (set && set->trains && !set->trains(set->user, row, &share)) {
            sti_graph_freeze(graph, v);
            continue;
        }
        t->share[t->count] = share;
        t->param[t->count++] = v;
    }
}

/* A part of the parameters that nothing would come of is a mistake. */
static stint_status check_reached(const stint_graph *graph, const sti_train_set *set,
                                  const trained *t)
{
    if (!set || !set->trains)
        return STINT_OK;
    for (int i = 0; i < t->count; i++)
        if (t->gradient[i] >= 0)
            return STINT_OK;
    return t->count == 0
               ? sti_fail(STINT_E_INPUT, "nothing is trained: no parameter is chosen")
               : sti_fail(STINT_E_INPUT,
                          "nothing is trained: the loss depends on none of the %d "
                          "parameters that are chosen, such as %s",
                          t->count, stint_value_name(graph, t->param[0]));
}

/* Gradients of shares in the place of those of whole weights. */
static stint_status cut_shares(stint_graph *graph, trained *t)
{
    stint_status st = STINT_OK;
    bool any = false;
    for (int i = 0; i < t->count && st == STINT_OK; i++) {
        if (t->share[i].count == 0 || t->gradient[i] < 0)
            continue;
        st = sti_pass_share(graph, t->param[i], t->gradient[i], &t->share[i],
                            &t->gradient[i]);
        any = true;
    }
    return st == STINT_OK && any ? sti_pass_place_shares(graph) : st;
}

/* Where no gradient flows the result is zero: the shard tree sums it all the same. */
static void add_outputs(stint_graph *graph, const trained *t)
{
    for (int i = 0; i < t->count; i++) {
        const sti_value_row *row = sti_graph_value(graph, t->param[i]);
        sti_output output = {.kind = STI_OUTPUT_GRADIENT,
                             .value = t->gradient[i],
                             .target = t->param[i],
                             .name = row->name,
                             .channels = t->share[i].channels,
                             .channel_count = t->share[i].count,
                             .channel_axis = sti_share_axis(&row->shape)};
        const stint_shape shape = sti_graph_output_shape(graph, &output);
        if (output.value < 0)
            output.value = sti_op_fill(graph, &shape, 0.0f);
        sti_graph_output(graph, &output);
    }
}

/* A value that the loss does not depend on has a gradient of zeros. */
static void add_fetches(stint_graph *graph, const stint_value *of,
                        const stint_value *gradients, int count)
{
    for (int i = 0; i < count; i++) {
        const sti_value_row *row = sti_graph_value(graph, of[i]);
        char name[128];
        snprintf(name, sizeof name, STI_GRADIENT_NAME "%s", row->name);
        stint_value value = gradients[i];
        if (value < 0)
            value = sti_op_fill(graph, &row->shape, 0.0f);
        sti_graph_output(graph, &(sti_output){.kind = STI_OUTPUT_FETCH,
                                              .value = value,
                                              .target = -1,
                                              .name = name});
    }
}

static stint_status append(stint_graph *graph, stint_value loss,
                           const sti_train_set *set, const stint_value *also,
                           int also_count, trained *t)
{
    stint_status st;
    collect_params(graph, set, t);
    for (int i = 0; i < also_count; i++)
        t->param[t->count + i] = also[i];
    st = sti_pass_gradient(graph, loss, t->param, t->count + also_count, t->gradient);
    if (st == STINT_E_UNSUPPORTED && t->count > 0)
        return sti_fail_context(st, "training %s and what lies above it",
                                stint_value_name(graph, t->param[0]));
    if (st == STINT_OK)
        st = check_reached(graph, set, t);
    if (st == STINT_OK)
        st = cut_shares(graph, t);
    if (st != STINT_OK)
        return st;
    add_outputs(graph, t);
    add_fetches(graph, also, t->gradient + t->count, also_count);
    st = sti_graph_status(graph);
    return st == STINT_OK ? sti_pass_own_outputs(graph, NULL) : st;
}

stint_status sti_pass_train_also(stint_graph *graph, stint_value loss,
                                 const sti_train_set *set, const stint_value *also,
                                 int also_count)
{
    const int64_t values = (int64_t)sti_graph_value_count(graph) + also_count;
    trained t = {.param = sti_alloc_array(values, sizeof *t.param, "pass.train"),
                 .gradient = sti_alloc_array(values, sizeof *t.gradient, "pass.train"),
                 .share = sti_alloc_array(values, sizeof *t.share, "pass.train")};
    const stint_status st = t.param && t.gradient && t.share
                                ? append(graph, loss, set, also, also_count, &t)
                                : STINT_E_MEMORY;
    sti_free(t.param);
    sti_free(t.gradient);
    sti_free(t.share);
    return st;
}

stint_status sti_pass_train(stint_graph *graph, stint_value loss,
                            const sti_train_set *set)
{
    return sti_pass_train_also(graph, loss, set, NULL, 0);
}

/* Copy at the end of the graph, with the scope of what it copies. */
static stint_value append_copy(stint_graph *graph, stint_value value)
{
    const sti_node *producer = sti_graph_value(graph, value)->producer;
    bool backward = producer && producer->backward;
    if (producer)
        sti_graph_set_backward(graph, producer);
    stint_value copy = sti_op_copy(graph, value);
    sti_graph_set_backward(graph, NULL);
    if (copy >= 0)
        sti_graph_node(graph, sti_graph_node_count(graph) - 1)->backward = backward;
    return copy;
}

stint_status sti_pass_own_outputs(stint_graph *graph, sti_pass_note *note)
{
    int32_t values = sti_graph_value_count(graph), copies = 0;
    stint_value *root = sti_alloc_array(values, sizeof *root, "pass.outputs");
    uint8_t *taken = sti_alloc_array(values, sizeof *taken, "pass.outputs");
    stint_status status = STINT_OK;

    if (!root || !taken) {
        status = STINT_E_MEMORY;
        goto done;
    }
    sti_pass_roots(graph, root);
    for (int32_t i = 0; i < sti_graph_output_count(graph); i++) {
        stint_value value = sti_graph_outputs(graph)[i].value, r = root[value];
        if (sti_graph_value(graph, r)->role == STI_ROLE_NODE && !taken[r]) {
            taken[r] = 1;
            continue;
        }
        stint_value copy = append_copy(graph, value);
        if (copy < 0)
            break;
        sti_graph_outputs(graph)[i].value = copy;
        copies++;
    }
    status = sti_graph_status(graph);
    sti_pass_note_set(note, "%d results copied into blocks of their own", (int)copies);
done:
    sti_free(root);
    sti_free(taken);
    return status;
}
