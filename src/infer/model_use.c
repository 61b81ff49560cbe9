#include "infer/model_use.h"

#include "base/fail.h"

stint_status sti_model_use(const stint_model_file *model, int64_t images, int threads,
                           int lanes, sti_network *network_out, sti_infer **infer_out)
{
    const sti_network_desc desc = sti_model_network_in_use(model);
    stint_status st;
    STI_TRY(sti_network_build(&desc, STINT_EVAL, images, network_out));
    STI_TRY(sti_network_plan(network_out, sti_lane_threads(threads, lanes)));
    STI_TRY(sti_infer_create(network_out, threads, lanes, infer_out));
    STI_TRY(
        sti_model_load(model, network_out, (*infer_out)->params, (*infer_out)->states));
out:
    return st;
}
