/* The standard pipeline, from the lines of pass_list.h. */
#include "base/fail.h"
#include "pass/pass_priv.h"

const sti_pass sti_passes[] = {
#define STI_PASS(function, name, help) {name, help, sti_pass_##function},
#include "pass/pass_list.h"
#undef STI_PASS
    {NULL, NULL, NULL},
};

static stint_status run_pass(stint_graph *graph, const sti_pass *pass)
{
    const bool told = sti_log_shows(STINT_LOG_DEBUG);
    sti_pass_note note = {""};
    stint_status status = pass->run(graph, told ? &note : NULL);
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
