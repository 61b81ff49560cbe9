/* net check: who is there before a training of several processes. */
#include <inttypes.h>

#include "cli/cli_links.h"

/* "0-3,8" */
static void list_cpus(const sti_cli_place *p, sti_text *out)
{
    bool any = false;
    for (int c = 0; c < STI_CPUS_MOST; c++) {
        int end = c;
        if (!sti_cli_place_has(p, c))
            continue;
        while (end + 1 < STI_CPUS_MOST && sti_cli_place_has(p, end + 1))
            end++;
        sti_text_printf(out, "%s%d", any ? "," : "", c);
        if (end > c)
            sti_text_printf(out, "-%d", end);
        any = true;
        c = end;
    }
}

static const sti_option check_rows[] = {
    STI_CLI_NET_ROW(sti_cli_links_args, time, "time", STI_OPTION_TIME, "2s", 0, -1,
                    "TIME", "for the links of all pairs together"),
    STI_CLI_JOIN_ROWS,
    STI_CLI_COMMON_ROWS(sti_cli_links_args),
};

static void describe_places(sti_comm *comm, const sti_cli_place *all,
                            sti_cli_telling *tell, bool json)
{
    if (json)
        sti_json_begin_array(&tell->json, "places");
    for (int r = 0; r < sti_comm_size(comm); r++) {
        const bool crowded = sti_cli_is_crowded(comm, all, r);
        sti_text cpus = {0};
        list_cpus(&all[r], &cpus);
        const char *list = cpus.data ? cpus.data : "";
        if (json) {
            sti_json_begin_object(&tell->json, NULL);
            sti_json_int(&tell->json, "rank", r);
            sti_json_text(&tell->json, "host", sti_comm_host(comm, r));
            sti_json_text(&tell->json, "cpus", list);
            sti_json_int(&tell->json, "cpus_at_once", all[r].at_once);
            sti_json_int(&tell->json, "cpus_of_host", all[r].there);
            sti_json_bool(&tell->json, "crowded", crowded);
            sti_json_end_object(&tell->json);
        } else {
            sti_text_printf(
                &tell->text, "rank %d on %s, %" PRId64 " of %" PRId64 " CPUs (%s)%s\n",
                r, sti_comm_host(comm, r), all[r].at_once, all[r].there, list,
                crowded ? "; more ranks here than CPUs: no measure of speed" : "");
        }
        sti_text_fini(&cpus);
    }
    if (json)
        sti_json_end_array(&tell->json);
}

static stint_status check_work(sti_cli_call *call, stint_net *net,
                               sti_cli_telling *tell)
{
    const sti_cli_links_args *a = call->args;
    sti_cli_place *all = NULL;
    const stint_status st = sti_cli_gather_places(call, net, &all);
    if (st == STINT_OK && stint_net_rank(net) == 0)
        describe_places(sti_net_comm(net), all, tell, call->common->json);
    return st == STINT_OK ? sti_cli_measure(call, net, NULL, a->time, tell) : st;
}

static stint_status check_run(sti_cli_call *call)
{
    return sti_cli_run_ranks(call, check_work);
}

const sti_cli_command sti_cmd_net_check = {
    .name = "net check",
    .summary = "say who is there before a training of several processes",
    .operands = "",
    .example = "mpirun -n 2 stint net check",
    .about =
        "Ranks, hosts, the CPUs they are bound to, and the links between them, both "
        "ways.",
    .min_operands = 0,
    .max_operands = 0,
    STI_CLI_ARGS(check_rows, sti_cli_links_args),
    .run = check_run,
};
