/* A graph in use, fed from the caller's memory, batch by batch on lanes. */
#include <string.h>

#include "base/fail.h"
#include "infer/lanes.h"
#include "store/checkpoint_file.h"
#include "train/session_priv.h"

struct stint_use {
    sti_network net;
    sti_infer *infer;
    int lanes;
    stint_value input[STINT_SESSION_MOST], output[STINT_SESSION_MOST];
    int inputs, outputs;
    size_t bytes, params, states; /* all that is taken; of the weights */
    /* What the lanes of one call work on. */
    int64_t batches;
    stint_fill_fn *fill;
    stint_read_fn *read;
    void *user;
};

static stint_status build(stint_use *use, const stint_use_desc *d)
{
    stint_graph *g = use->net.graph;
    stint_status st = stint_graph_check(g);
    if (st == STINT_OK && d->output_count > STINT_SESSION_MOST)
        st = sti_fail(STINT_E_INPUT, "%d outputs; at most %d can be read",
                      d->output_count, STINT_SESSION_MOST);
    if (st != STINT_OK)
        return st;
    STI_TRY(sti_session_find_inputs(g, d->inputs, d->input_count, use->input));
    for (int i = 0; i < d->output_count; i++)
        sti_graph_output(g, &(sti_output){.kind = STI_OUTPUT_FETCH,
                                          .value = d->outputs[i].value,
                                          .target = -1,
                                          .name = d->outputs[i].name});
    STI_TRY(sti_graph_status(g));
    STI_TRY(sti_pass_prepare(g));
    STI_TRY(sti_pass_winograd(g, NULL));
    STI_TRY(sti_pass_standard(g));
    for (int i = 0; i < d->output_count; i++)
        use->output[i] = sti_session_find_output(g, d->outputs[i].name);
    use->inputs = d->input_count;
    use->outputs = d->output_count;
out:
    return st;
}

static size_t region(const stint_use *use, sti_region r)
{
    return STI_ALIGN_UP(use->net.plan->region_bytes[r], 64);
}

static stint_status prepare(stint_use *use, const stint_use_desc *d)
{
    int threads = 0;
    stint_status st;
    STI_TRY(build(use, d));
    STI_TRY(sti_threads_choose(d->threads, &threads, NULL));
    use->lanes = d->lanes > 0 ? d->lanes : threads;
    STI_TRY(sti_network_plan(&use->net, sti_lane_threads(threads, use->lanes)));
    STI_TRY(sti_infer_create(&use->net, threads, use->lanes, &use->infer));
    use->params = region(use, STI_REGION_PARAM);
    use->states = region(use, STI_REGION_STATE);
    use->bytes = use->params + use->states +
                 (size_t)use->lanes *
                     (region(use, STI_REGION_RESULT) + region(use, STI_REGION_FETCH) +
                      region(use, STI_REGION_ARENA));
out:
    return st;
}

stint_status stint_use_open(const stint_use_desc *desc, stint_use **use_out)
{
    stint_use *use = sti_alloc(sizeof *use, "graph in use");
    if (!use) {
        stint_graph_destroy(desc->graph);
        return STINT_E_MEMORY;
    }
    use->net = (sti_network){.graph = desc->graph, .images = 1};
    const stint_status st = prepare(use, desc);
    if (st != STINT_OK) {
        stint_use_close(use);
        return st;
    }
    *use_out = use;
    return STINT_OK;
}

void stint_use_close(stint_use *use)
{
    if (!use)
        return;
    sti_infer_destroy(use->infer);
    sti_network_fini(&use->net);
    sti_free(use);
}

size_t stint_use_bytes(const stint_use *use)
{
    return use->bytes;
}

size_t stint_use_weights_bytes(const stint_use *use)
{
    return use->params + use->states;
}

stint_status stint_use_weights(stint_use *use, const void *weights, size_t bytes)
{
    if (bytes != use->params + use->states)
        return sti_fail(STINT_E_INPUT,
                        "weights of %zu bytes for a graph of %zu; they are another "
                        "graph's",
                        bytes, use->params + use->states);
    memcpy(use->infer->params, weights, use->params);
    memcpy(use->infer->states, (const char *)weights + use->params, use->states);
    return STINT_OK;
}

stint_status stint_use_load(stint_use *use, const char *path)
{
    sti_tensor_list list = {.arena = sti_arena_create("weights")};
    sti_tensor_file *file = NULL;
    stint_status st = list.arena ? STINT_OK : STINT_E_MEMORY;
    if (st != STINT_OK)
        return st;
    STI_TRY(sti_tensor_file_open(path, &file));
    STI_TRY(sti_tensor_list_init(&list, list.arena,
                                 2 * sti_graph_value_count(use->net.graph)));
    STI_TRY(sti_tensor_list_add_network(&list, &use->net, STI_ROLE_PARAM, "",
                                        use->infer->params));
    STI_TRY(sti_tensor_list_add_network(&list, &use->net, STI_ROLE_STATE, "",
                                        use->infer->states));
    for (int64_t i = 0; i < list.count; i++)
        STI_TRY(sti_tensor_list_read(&list, i, file));
out:
    sti_tensor_file_close(file);
    sti_arena_destroy(list.arena);
    return st;
}

static void run_batch(const stint_use *use, int lane, int64_t batch)
{
    static const sti_step step = {0};
    sti_exec *exec = use->infer->lanes.lane[lane].exec;
    void *input[STINT_SESSION_MOST];
    const void *output[STINT_SESSION_MOST];
    for (int i = 0; i < use->inputs; i++)
        input[i] = sti_exec_address(exec, use->input[i]);
    use->fill(use->user, batch, input);
    sti_exec_run(exec, &use->infer->lanes.lane_team, &step);
    for (int i = 0; i < use->outputs; i++)
        output[i] = sti_exec_address(exec, use->output[i]);
    use->read(use->user, batch, output);
}

static void run_lane(void *arg, int64_t lane, int worker)
{
    const stint_use *use = arg;
    (void)worker;
    for (int64_t batch = lane; batch < use->batches; batch += use->lanes)
        run_batch(use, (int)lane, batch);
}

void stint_use_run(stint_use *use, int64_t batches, stint_fill_fn *fill,
                   stint_read_fn *read, void *user)
{
    use->batches = batches;
    use->fill = fill;
    use->read = read;
    use->user = user;
    if (use->lanes == 1)
        run_lane(use, 0, 0);
    else
        sti_team_run(&use->infer->lanes.team, use->lanes, run_lane, use);
}
