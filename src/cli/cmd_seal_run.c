/* stint seal plan and run: what whoever computes on encrypted data does. */
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "base/fail.h"
#include "base/progress.h"
#include "base/units.h"
#include "cli/cli.h"
#include "cli/cli_links.h"
#include "cli/cli_seal.h"
#include "stint/net.h"

typedef struct run_args {
    const char *key, *in, *out, *set_name, *fail, *root, *report;
    int64_t threads, rank, ranks;
    double timeout_s;
    bool sockets;
    int order;
    size_t memory_bytes;
    double time_s;
    sti_cli_common common;
} run_args;

/* clang-format off */
#define RUN_ROW(field, kind, standard, words)                                          \
    .type = (kind), .default_text = (standard),                                        \
    .offset = offsetof(run_args, field), .flag = true, .help = (words)
#define RUN_SHARED_ROWS                                                                \
    {.name = "memory", .letter = 'm', .unit = "SIZE",                                  \
     RUN_ROW(memory_bytes, STI_OPTION_BYTES, "auto",                                   \
             "bound of the peak memory of the whole process")},                        \
    {.name = "order", .choices = "ready|levels", .unit = "NAME",                       \
     RUN_ROW(order, STI_OPTION_CHOICE, "ready",                                        \
             "gates as soon as their inputs are there, or level by level")},           \
    STI_CLI_THREADS_ROW(run_args),                                                     \
    STI_CLI_COMMON_ROWS(run_args)
/* clang-format on */

static const sti_option run_rows[] = {
    {.name = "key",
     .letter = 'k',
     .unit = "EVAL",
     RUN_ROW(key, STI_OPTION_PATH, "", "the file eval.key")},
    {.name = "in",
     .unit = "IN.ct",
     RUN_ROW(in, STI_OPTION_PATH, "", "the encrypted inputs")},
    {.name = "out",
     .letter = 'o',
     .unit = "OUT.ct",
     RUN_ROW(out, STI_OPTION_PATH, "", "the encrypted outputs")},
    {.name = "report",
     .unit = "FILE.html",
     RUN_ROW(report, STI_OPTION_PATH, "",
             "a page: time by level, how busy threads were, bootstraps by line")},
    STI_CLI_NET_ROW(run_args, root, "net-root", STI_OPTION_TEXT, "", 0, -1, "ADDRESS",
                    "where processes that share the work meet: HOST:PORT, or @NAME on "
                    "one host; not needed under mpirun"),
    STI_CLI_NET_ROW(run_args, ranks, "net-ranks", STI_OPTION_INT, "0", 0, WIRE_RANKS,
                    "N", "how many meet; 0: as mpirun says"),
    STI_CLI_NET_ROW(run_args, rank, "net-rank", STI_OPTION_INT, "0", 0, WIRE_RANKS - 1,
                    "R", "which of them this one is, from 0; rank 0 writes --out"),
    STI_CLI_NET_ROW(run_args, timeout_s, "net-timeout", STI_OPTION_TIME, "30s", 0, -1,
                    "TIME", "so long silent, a process is lost"),
    {.name = "net-sockets",
     RUN_ROW(sockets, STI_OPTION_BOOL, "false",
             "share no memory between processes of a host")},
    RUN_SHARED_ROWS,
};
static const sti_option plan_rows[] = {
    {.name = "set-name",
     .unit = "NAME",
     RUN_ROW(set_name, STI_OPTION_TEXT, "p128",
             "parameter set; stint seal sets lists them")},
    {.name = "time",
     .unit = "TIME",
     RUN_ROW(time_s, STI_OPTION_TIME, "0s", "bound of the time of a run; 0s: none")},
    {.name = "fail",
     .unit = "2^-N",
     RUN_ROW(fail, STI_OPTION_TEXT, "",
             "bound of the probability that the result is wrong, as 2^-64")},
    STI_CLI_NET_ROW(run_args, ranks, "net-ranks", STI_OPTION_INT, "1", 1, 64, "N",
                    "processes that share the work, each with -j threads"),
    RUN_SHARED_ROWS,
};

static void show_progress(void *user, int64_t done, int64_t total)
{
    (void)total;
    sti_progress_update(user, done, "");
}

static void add_run(const sti_cli_call *call, const stint_seal_run_result *r,
                    const char *path, sti_text *out)
{
    const double rate = r->seconds > 0 ? (double)r->bootstraps / r->seconds : 0;
    if (!call->common->json) {
        sti_text_printf(out, "%s: %s bootstrap%s in %s, ", path,
                        sti_count_text(r->bootstraps), r->bootstraps == 1 ? "" : "s",
                        sti_time_text(r->seconds));
        if (r->ranks > 1)
            sti_text_printf(out, "%d ranks, ", r->ranks);
        sti_text_printf(out, "%.0f a second, threads busy %.0f %%; peak %s of %s\n",
                        rate, 100 * r->busy, sti_bytes_text(r->peak_rss_bytes),
                        sti_bytes_text(r->planned_peak_bytes));
        return;
    }
    sti_json j;
    sti_cli_json_begin(&j, out);
    sti_json_text(&j, "out", path);
    sti_json_int(&j, "bootstraps", r->bootstraps);
    sti_json_float(&j, "seconds", r->seconds);
    sti_json_float(&j, "bootstraps_per_s", rate);
    sti_json_float(&j, "busy", r->busy);
    sti_json_int(&j, "planned_peak_bytes", (int64_t)r->planned_peak_bytes);
    sti_json_int(&j, "peak_rss_bytes", (int64_t)r->peak_rss_bytes);
    sti_json_text(&j, "output_sha256", r->output_sha256);
    sti_json_int(&j, "ranks", r->ranks);
    sti_json_end_object(&j);
}

static stint_status check_files(const char *circuit, const run_args *args)
{
    stint_status st = sti_cli_seal_check_out(circuit, args->out);
    STI_TRY(st);
    if (!args->key || !args->in)
        return sti_fail(STINT_E_USAGE,
                        "--key names the evaluation key and --in the encrypted inputs; "
                        "one of them is missing");
    STI_TRY(sti_cli_check_out(args->key, args->out));
    STI_TRY(sti_cli_check_out(args->in, args->out));
    if (args->report) {
        STI_TRY(sti_cli_check_out(circuit, args->report));
        STI_TRY(sti_cli_check_out(args->key, args->report));
        STI_TRY(sti_cli_check_out(args->in, args->report));
    }
out:
    return st;
}

/* On each rank; rank 0 speaks for all. */
static stint_status run_on(sti_cli_call *call, const stint_net *net)
{
    const run_args *args = call->args;
    const bool first = stint_net_rank(net) == 0;
    sti_progress progress;
    stint_seal_run_result result;
    stint_seal_facts facts = {0};
    sti_text text = {0};
    stint_status st = STINT_OK;
    if (first && stint_seal_describe(call->operands[0], &facts) != STINT_OK)
        facts.bootstraps = 0; /* the run says why */
    sti_progress_begin(&progress, "bootstraps", "bootstraps", facts.bootstraps,
                       call->common->quiet || !first);
    const stint_seal_run_desc desc = {.circuit = call->operands[0],
                                      .eval_key = args->key,
                                      .in = args->in,
                                      .out = args->out,
                                      .threads = (int)args->threads,
                                      .memory_bytes = args->memory_bytes,
                                      .by_levels = args->order,
                                      .progress = first ? show_progress : NULL,
                                      .user = &progress,
                                      .net = net,
                                      .report = first ? args->report : NULL};
    st = stint_seal_run(&desc, &result);
    sti_progress_clear(&progress);
    STI_TRY(st);
    if (first) {
        add_run(call, &result, args->out, &text);
        st = sti_cli_answer(call, &text);
    }
out:
    stint_seal_facts_fini(&facts);
    return st;
}

static stint_status run_run(sti_cli_call *call)
{
    const run_args *args = call->args;
    const stint_net_desc where = {.root = args->root,
                                  .rank = (int)args->rank,
                                  .ranks = (int)args->ranks,
                                  .timeout_s = args->timeout_s,
                                  .sockets_only = args->sockets,
                                  .purpose = call->command->name};
    stint_net *net = NULL;
    stint_status st = check_files(call->operands[0], args);
    if (st == STINT_OK)
        st = stint_net_join(&where, &net);
    if (st != STINT_OK)
        return st;
    sti_cli_catch_signals();
    return sti_cli_leave(call, net, run_on(call, net));
}

/* ---- plan ---- */

/* "2^-64" is -64. */
static stint_status parse_fail(const char *text, double *out)
{
    *out = 0;
    if (!text)
        return STINT_OK;
    if (strncmp(text, "2^-", 3) == 0 && sti_parse_float(text + 3, out) == STINT_OK &&
        *out > 0) {
        *out = -*out;
        return STINT_OK;
    }
    return sti_fail(STINT_E_USAGE, "--fail: '%.40s' is no probability like 2^-64",
                    text);
}

static void add_plan(const sti_cli_call *call, const stint_seal_plan_result *r,
                     sti_text *out)
{
    if (!call->common->json) {
        sti_text_printf(out, "%s bootstrap%s, depth %s, ",
                        sti_count_text(r->bootstraps), r->bootstraps == 1 ? "" : "s",
                        sti_count_text(r->depth));
        sti_text_printf(out, "about %s\n", sti_time_text(r->seconds));
        sti_text_printf(out, "peak %s, eval.key %s, inputs %s\n",
                        sti_bytes_text(r->peak_bytes),
                        sti_bytes_text((size_t)r->key_bytes),
                        sti_bytes_text((size_t)r->input_bytes));
        sti_text_printf(
            out,
            "a wrong result: 2^%.1f; %.0f %% of the calls of eight gates are "
            "not full\n",
            r->fail_log2, 100 * r->narrow_share);
        if (r->sent_bytes > 0)
            sti_text_printf(out, "ranks send each other %s\n",
                            sti_bytes_text((size_t)r->sent_bytes));
        return;
    }
    sti_json j;
    sti_cli_json_begin(&j, out);
    sti_json_int(&j, "bootstraps", r->bootstraps);
    sti_json_int(&j, "depth", r->depth);
    sti_json_int(&j, "key_bytes", r->key_bytes);
    sti_json_int(&j, "input_bytes", r->input_bytes);
    sti_json_int(&j, "peak_bytes", (int64_t)r->peak_bytes);
    sti_json_float(&j, "seconds", r->seconds);
    sti_json_float(&j, "fail_log2", r->fail_log2);
    sti_json_float(&j, "narrow_share", r->narrow_share);
    sti_json_int(&j, "sent_bytes", r->sent_bytes);
    sti_json_bool(&j, "fits", r->fits);
    sti_json_end_object(&j);
}

static stint_status plan_run(sti_cli_call *call)
{
    const run_args *args = call->args;
    stint_seal_plan_desc desc = {.circuit = call->operands[0],
                                 .set = args->set_name,
                                 .threads = (int)args->threads,
                                 .by_levels = args->order,
                                 .memory_bytes = args->memory_bytes,
                                 .seconds = args->time_s,
                                 .ranks = (int)args->ranks};
    stint_seal_plan_result result;
    sti_text text = {0};
    stint_status st = parse_fail(args->fail, &desc.fail_log2);
    if (st == STINT_OK)
        st = stint_seal_plan(&desc, &result);
    if (st != STINT_OK)
        return st;
    add_plan(call, &result, &text);
    st = sti_cli_answer(call, &text);
    return st == STINT_OK && !result.fits ? STINT_E_BUDGET : st;
}

const sti_cli_command sti_cmd_seal_run = {
    .name = "seal run",
    .summary = "run a circuit on encrypted inputs",
    .operands = "FILE.seal",
    .example = "stint seal run auction.seal --key eval.key --in in.ct --out out.ct",
    .about =
        "Needs the circuit, the evaluation key and the encrypted inputs, and learns "
        "nothing of what they hold. The encrypted outputs are the same bytes for "
        "any threads, ranks, order and instruction set.",
    .min_operands = 1,
    .max_operands = 1,
    STI_CLI_ARGS(run_rows, run_args),
    .run = run_run,
};

const sti_cli_command sti_cmd_seal_plan = {
    .name = "seal plan",
    .summary = "say what a run on encrypted inputs will take",
    .operands = "FILE.seal",
    .example = "stint seal plan auction.seal --time 10s --fail 2^-64",
    .about =
        "Time is measured by some steps on this machine, memory and the probability "
        "of a wrong result are computed. The exit status is 3 if a budget is not "
        "kept.",
    .min_operands = 1,
    .max_operands = 1,
    STI_CLI_ARGS(plan_rows, run_args),
    .run = plan_run,
};
