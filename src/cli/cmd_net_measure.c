/* net measure: what the links between processes give. */
#include <math.h>

#include "base/fail.h"
#include "base/units.h"
#include "cli/cli_links.h"
#include "net/link_patterns.h"

static const sti_option measure_rows[] = {
    {.name = "out",
     .letter = 'o',
     .type = STI_OPTION_PATH,
     .default_text = "links.json",
     .offset = offsetof(sti_cli_links_args, out),
     .flag = true,
     .unit = "FILE",
     .help = "file that rank 0 writes"},
    {.name = "pattern",
     .type = STI_OPTION_CHOICE,
     .choices = "pairs|at-once|neighbours|all-to-all|incast|fan-out|allreduce",
     .default_text = "pairs",
     .offset = offsetof(sti_cli_links_args, pattern),
     .flag = true,
     .help = "who sends to whom: one message at a time, for the file; or many at once, "
             "told only"},
    STI_CLI_NET_ROW(sti_cli_links_args, time, "time", STI_OPTION_TIME, "10s", 0, -1,
                    "TIME", "for all pairs together"),
    STI_CLI_NET_ROW(sti_cli_links_args, max_bytes, "largest", STI_OPTION_BYTES, "4M", 0,
                    -1, "SIZE", "largest message, 64K or more"),
    STI_CLI_JOIN_ROWS,
    STI_CLI_COMMON_ROWS(sti_cli_links_args),
};

static void warn_crowded(sti_comm *comm, const sti_cli_place *all)
{
    if (sti_comm_rank(comm) > 0)
        return;
    for (int r = 0; r < sti_comm_size(comm); r++)
        if (sti_cli_is_crowded(comm, all, r)) {
            sti_log(
                STINT_LOG_WARNING,
                "more ranks on %s than CPUs for them: these times are no measure of "
                "the links",
                sti_comm_host(comm, r));
            return;
        }
}

/* ---- many messages at once ---- */

static const char *rate_text(double bytes_per_s)
{
    return isfinite(bytes_per_s) ? sti_rate_text(8 * bytes_per_s) : "-";
}

static void describe_rows(const sti_pattern_row *rows, sti_cli_telling *tell,
                          bool as_json)
{
    if (as_json)
        sti_json_begin_array(&tell->json, "sizes");
    else
        sti_text_printf(&tell->text, "%10s %10s %10s %10s %13s %13s\n", "bytes",
                        "median", "5 %", "95 %", "algorithm", "bus");
    for (const sti_pattern_row *r = rows; r < rows + STI_PATTERN_SIZES; r++)
        if (as_json) {
            sti_json_begin_object(&tell->json, NULL);
            sti_json_int(&tell->json, "bytes", r->bytes);
            sti_json_int(&tell->json, "samples", r->samples);
            sti_json_float(&tell->json, "median_s", r->median_s);
            sti_json_float(&tell->json, "low_s", r->low_s);
            sti_json_float(&tell->json, "high_s", r->high_s);
            sti_json_float(&tell->json, "algorithm_bits_per_s",
                           8 * r->algorithm_bytes_per_s);
            sti_json_float(&tell->json, "bus_bits_per_s", 8 * r->bus_bytes_per_s);
            sti_json_end_object(&tell->json);
        } else {
            sti_text_printf(
                &tell->text, "%10s %10s %10s %10s %13s %13s\n",
                sti_bytes_text((size_t)r->bytes), sti_time_text(r->median_s),
                sti_time_text(r->low_s), sti_time_text(r->high_s),
                rate_text(r->algorithm_bytes_per_s), rate_text(r->bus_bytes_per_s));
        }
    if (as_json)
        sti_json_end_array(&tell->json);
}

static stint_status measure_pattern(const sti_cli_call *call, stint_net *net,
                                    sti_cli_telling *tell)
{
    const sti_cli_links_args *a = call->args;
    sti_comm *comm = sti_net_comm(net);
    const sti_measure_desc desc = {
        .seconds = a->time, .max_bytes = (int64_t)a->max_bytes, .seed = 1};
    sti_pattern_row rows[STI_PATTERN_SIZES];
    const stint_status st =
        sti_links_pattern(comm, (sti_pattern)a->pattern, &desc, rows);
    if (st != STINT_OK || stint_net_rank(net) > 0)
        return st;
    const char *name = sti_pattern_name((sti_pattern)a->pattern);
    if (call->common->json) {
        sti_json_text(&tell->json, "pattern", name);
        sti_json_int(&tell->json, "ranks", sti_comm_size(comm));
        sti_json_text(&tell->json, "kind", sti_comm_kind(comm));
    } else {
        sti_text_printf(&tell->text, "%s, %d ranks over %s; no file is written\n", name,
                        sti_comm_size(comm), sti_comm_kind(comm));
    }
    describe_rows(rows, tell, call->common->json);
    return STINT_OK;
}

static stint_status measure_work(sti_cli_call *call, stint_net *net,
                                 sti_cli_telling *tell)
{
    const sti_cli_links_args *a = call->args;
    sti_cli_place *all = NULL;
    stint_status st = sti_cli_gather_places(call, net, &all);
    if (st != STINT_OK)
        return st;
    warn_crowded(sti_net_comm(net), all);
    return a->pattern == STI_PATTERN_PAIRS
               ? sti_cli_measure(call, net, a->out, a->time, tell)
               : measure_pattern(call, net, tell);
}

static stint_status measure_run(sti_cli_call *call)
{
    const sti_cli_links_args *a = call->args;
    if (a->max_bytes < STI_LINK_LARGEST_LEAST)
        return sti_fail(STINT_E_USAGE,
                        "--largest: %s is too small to see a link's rate; at least %s",
                        sti_bytes_text(a->max_bytes),
                        sti_bytes_text(STI_LINK_LARGEST_LEAST));
    return sti_cli_run_ranks(call, measure_work);
}

const sti_cli_command sti_cmd_net_measure = {
    .name = "net measure",
    .summary = "measure the links between processes",
    .operands = "",
    .example = "mpirun -n 2 stint net measure -o links.json\n"
               "mpirun -n 4 stint net measure --pattern all-to-all",
    .about = "Round trips of messages of many sizes over the transport that training "
             "uses; every byte is checked. The file is for net predict. Other patterns "
             "are timed as the slowest rank has it; of the two rates \"algorithm\" "
             "counts the operation's bytes, \"bus\" those of the busiest rank's link.",
    .min_operands = 0,
    .max_operands = 0,
    STI_CLI_ARGS(measure_rows, sti_cli_links_args),
    .run = measure_run,
};
