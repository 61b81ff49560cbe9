/* From a loss to what a training step must give: one gradient a parameter. */
#include <stdio.h>

#include "op/op.h"
#include "pass/pass_priv.h"

static int collect_params(const stint_graph *graph, stint_value *params)
{
    int count = 0;
    for (int32_t v = 0; v < sti_graph_value_count(graph); v++)
        if (sti_graph_value(graph, v)->role == STI_ROLE_PARAM)
            params[count++] = v;
    return count;
}

/* Where no gradient flows the result is zero: the shard tree sums it all the same. */
static void add_outputs(stint_graph *graph, const stint_value *params,
                        const stint_value *gradients, int count)
{
    for (int i = 0; i < count; i++) {
        const sti_value_row *row = sti_graph_value(graph, params[i]);
        stint_value value = gradients[i];
        if (value < 0)
            value = sti_op_fill(graph, &row->shape, 0.0f);
        sti_graph_output(graph, &(sti_output){.kind = STI_OUTPUT_GRADIENT,
                                              .value = value,
                                              .target = params[i],
                                              .name = row->name});
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

stint_status sti_pass_train_also(stint_graph *graph, stint_value loss,
                                 const stint_value *also, int also_count)
{
    const int64_t values = (int64_t)sti_graph_value_count(graph) + also_count;
    stint_value *params = sti_alloc_array(values, sizeof *params, "pass.train");
    stint_value *gradients = sti_alloc_array(values, sizeof *gradients, "pass.train");
    stint_status status = STINT_E_MEMORY;

    if (!params || !gradients)
        goto done;
    const int count = collect_params(graph, params);
    for (int i = 0; i < also_count; i++)
        params[count + i] = also[i];
    status = sti_pass_gradient(graph, loss, params, count + also_count, gradients);
    if (status == STINT_OK) {
        add_outputs(graph, params, gradients, count);
        add_fetches(graph, also, gradients + count, also_count);
        status = sti_graph_status(graph);
    }
    if (status == STINT_OK)
        status = sti_pass_own_outputs(graph, NULL);
done:
    sti_free(params);
    sti_free(gradients);
    return status;
}

stint_status sti_pass_train(stint_graph *graph, stint_value loss)
{
    return sti_pass_train_also(graph, loss, NULL, 0);
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
