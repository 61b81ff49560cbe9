/* The standard pipeline. A new pass is one file and one line here. */
#include "base/fail.h"
#include "pass/pass_priv.h"

const sti_pass sti_passes[] = {
    {"dead-code", "remove what no result depends on", sti_pass_dead_code},
    {"common-subexpression", "compute equal things once",
     sti_pass_common_subexpression},
    {"fuse", "bias, residual and ReLU into the kernel before them", sti_pass_fuse},
    {"own-outputs", "a block of its own for each result", sti_pass_own_outputs},
    {"schedule", "free memory as early as possible", sti_pass_schedule},
    {"again", "make cheap results again for the backward half", sti_pass_again},
    {"inplace", "lay results over operands that die", sti_pass_inplace},
    {"loops", "the tuned loop strings of matrix products", sti_pass_loops},
    {NULL, NULL, NULL},
};

static stint_status run_pass(stint_graph *graph, const sti_pass *pass)
{
    sti_pass_note note = {""};
    stint_status status = pass->run(graph, &note);
    if (status == STINT_OK)
        status = stint_graph_check(graph);
    if (status)
        return sti_fail_context(status, "pass %s", pass->name);
    sti_log(STINT_LOG_DEBUG, "pass %s: %s", pass->name, note.text);
    return STINT_OK;
}

stint_status sti_pass_standard(stint_graph *graph)
{
    stint_status status = stint_graph_check(graph);
    for (const sti_pass *pass = sti_passes; pass->name && status == STINT_OK; pass++)
        status = run_pass(graph, pass);
    return status;
}

stint_status sti_pass_prepare(stint_graph *graph)
{
    stint_status status = stint_graph_check(graph);
    if (status == STINT_OK)
        status = sti_pass_common_subexpression(graph, NULL);
    if (status == STINT_OK)
        status = sti_pass_fuse(graph, NULL);
    return status ? status : stint_graph_check(graph);
}
