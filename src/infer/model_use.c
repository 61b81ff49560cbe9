#include "infer/model_use.h"

#include "base/fail.h"

stint_status sti_model_fill(const stint_model_file *model, sti_infer *infer)
{
    const stint_status st =
        sti_model_load(model, infer->lanes.network, infer->params, infer->states);
    if (st == STINT_OK)
        sti_infer_ready(infer);
    return st;
}

static stint_status take_memory(sti_network *network, bool keep, int threads, int lanes,
                                sti_infer **infer_out)
{
    sti_network_keep(network, keep);
    const stint_status st = sti_network_plan(network, sti_lane_threads(threads, lanes));
    return st == STINT_OK ? sti_infer_create(network, threads, lanes, infer_out) : st;
}

/* Constants are kept where the machine has the memory for it. */
static stint_status put_to_use(const stint_model_file *model,
                               const sti_network_desc *desc, int64_t images,
                               int threads, int lanes, sti_network *network_out,
                               sti_infer **infer_out)
{
    stint_status st = sti_network_build(desc, STINT_EVAL, images, network_out);
    if (st == STINT_OK)
        st = take_memory(network_out, true, threads, lanes, infer_out);
    if (st == STINT_E_BUDGET)
        st = take_memory(network_out, false, threads, lanes, infer_out);
    return st == STINT_OK ? sti_model_fill(model, *infer_out) : st;
}

stint_status sti_model_use(const stint_model_file *model, int64_t images, int threads,
                           int lanes, sti_network *network_out, sti_infer **infer_out)
{
    const sti_network_desc desc = sti_model_network_in_use(model);
    return put_to_use(model, &desc, images, threads, lanes, network_out, infer_out);
}

static bool is_random(const stint_graph *graph)
{
    for (int32_t n = 0; n < sti_graph_node_count(graph); n++)
        if (sti_graph_node(graph, n)->op->flags & STI_OP_RANDOM)
            return true;
    return false;
}

stint_status sti_model_sample(const stint_model_file *model, int64_t images,
                              int threads, int lanes, sti_network *network_out,
                              sti_infer **infer_out)
{
    sti_network_desc desc = sti_model_network_in_use(model);
    desc.sampled = true;
    desc.bayes.estimator = STI_ESTIMATOR_WEIGHT; /* one network for all images */
    const stint_status st =
        put_to_use(model, &desc, images, threads, lanes, network_out, infer_out);
    return st == STINT_OK && !is_random(network_out->graph)
               ? sti_fail(STINT_E_USAGE,
                          "--samples: nothing in %s is random, neither its weights nor "
                          "dropout, so that all networks are one; train it with "
                          "--bayes or model.dropout, or give several by --ensemble",
                          sti_tensor_file_path(model->file))
               : st;
}
