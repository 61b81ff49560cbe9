#include "infer/model_use.h"

#include "base/fail.h"

static stint_status put_to_use(const stint_model_file *model,
                               const sti_network_desc *desc, int64_t images,
                               int threads, int lanes, sti_network *network_out,
                               sti_infer **infer_out)
{
    stint_status st;
    STI_TRY(sti_network_build(desc, STINT_EVAL, images, network_out));
    STI_TRY(sti_network_plan(network_out, sti_lane_threads(threads, lanes)));
    STI_TRY(sti_infer_create(network_out, threads, lanes, infer_out));
    STI_TRY(
        sti_model_load(model, network_out, (*infer_out)->params, (*infer_out)->states));
out:
    return st;
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
