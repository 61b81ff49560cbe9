/* stint serve: answer requests for inference over HTTP, in time or not at all. */
#include <inttypes.h>
#include <string.h>

#include "base/fail.h"
#include "base/units.h"
#include "cli/cli_serve.h"
#include "stint/serve.h"

typedef struct serve_args {
    const char *sla, *listen, *address_file, *traffic, *tables, *tables_out;
    size_t memory_bytes, max_body_bytes;
    int64_t threads, units, max_connections;
    double drain_s, quantile;
    bool explain;
    sti_serve_options serve;
    sti_cli_common common;
} serve_args;

/* clang-format off */
#define SERVE_ROW(field, kind, standard, words)                                        \
    .type = (kind), .default_text = (standard), .offset = offsetof(serve_args, field), \
    .flag = true, .help = (words)
/* clang-format on */

static const sti_option serve_rows[] = {
    {.name = "sla",
     .unit = "TIME",
     SERVE_ROW(
         sla, STI_OPTION_TEXT, "",
         "from the first line of a request to its answer, 20ms, or for each model "
         "NAME=TIME,...")},
    {.name = "listen",
     .unit = "ADDRESS",
     SERVE_ROW(listen, STI_OPTION_TEXT, "127.0.0.1:8000",
               "HOST:PORT (0: a free port), or unix:PATH")},
    {.name = "address-file",
     .unit = "FILE",
     SERVE_ROW(address_file, STI_OPTION_PATH, "", "gets HOST:PORT when all is ready")},
    {.name = "memory",
     .unit = "SIZE",
     SERVE_ROW(memory_bytes, STI_OPTION_BYTES, "auto",
               "bound on the peak of the process")},
    {.name = "units",
     .unit = "N",
     .min = 0,
     .max = STI_SERVE_UNITS,
     SERVE_ROW(units, STI_OPTION_INT, "0", "shares of the CPUs; 0: whole ones")},
    {.name = "quantile",
     .unit = "SHARE",
     .min = 0.5,
     .max = 1,
     SERVE_ROW(quantile, STI_OPTION_FLOAT, "1",
               "of requests to be in time by the cut")},
    {.name = "traffic",
     .unit = "FILE",
     SERVE_ROW(traffic, STI_OPTION_PATH, "",
               "trace of seconds,images that are expected")},
    {.name = "tables",
     .unit = "FILE",
     SERVE_ROW(tables, STI_OPTION_PATH, "",
               "latency tables in the place of measured ones")},
    {.name = "tables-out",
     .unit = "FILE",
     SERVE_ROW(tables_out, STI_OPTION_PATH, "", "gets the tables that were measured")},
    {.name = "max-body",
     .unit = "SIZE",
     SERVE_ROW(max_body_bytes, STI_OPTION_BYTES, "64M", "largest body of a request")},
    {.name = "max-connections",
     .unit = "N",
     .min = 1,
     .max = 65536,
     SERVE_ROW(max_connections, STI_OPTION_INT, "1024", "open at a time")},
    {.name = "drain",
     .unit = "TIME",
     SERVE_ROW(drain_s, STI_OPTION_TIME, "30s", "to answer what was taken at the end")},
    {.name = "explain",
     SERVE_ROW(explain, STI_OPTION_BOOL, "false",
               "measure, print the plan, and serve nothing")},
    STI_CLI_SERVE_ROWS(serve_args),
    STI_CLI_THREADS_ROW(serve_args),
    STI_CLI_COMMON_ROWS(serve_args),
};

static void tell_ready(void *user, const char *address)
{
    const sti_cli_call *call = user;
    if (!call->common->quiet)
        sti_cli_say(call, "serving on %s", address);
}

static stint_status answer(sti_cli_call *call, const stint_serve_result *r)
{
    sti_text text = {0};
    sti_json j;
    if (!call->common->json) {
        sti_text_printf(&text,
                        "%" PRId64 " served, %" PRId64 " rejected, %" PRId64
                        " late, %" PRId64 " failed; peak %s of %s planned\n",
                        r->served, r->rejected, r->late, r->failed,
                        sti_bytes_text(r->peak_rss_bytes),
                        sti_bytes_text(r->planned_peak_bytes));
        return sti_cli_answer(call, &text);
    }
    sti_cli_json_begin(&j, &text);
    sti_json_int(&j, "served", r->served);
    sti_json_int(&j, "rejected", r->rejected);
    sti_json_int(&j, "late", r->late);
    sti_json_int(&j, "failed", r->failed);
    sti_json_int(&j, "planned_peak_bytes", (int64_t)r->planned_peak_bytes);
    sti_json_int(&j, "peak_rss_bytes", (int64_t)r->peak_rss_bytes);
    sti_json_end_object(&j);
    return sti_cli_answer(call, &text);
}

static stint_status explain(sti_cli_call *call, const stint_serve_desc *desc)
{
    char *json = NULL;
    sti_text text = {0};
    const stint_status st = stint_serve_explain(desc, &json);
    if (st != STINT_OK)
        return st;
    sti_text_add(&text, json);
    stint_serve_free(json);
    return sti_cli_answer(call, &text);
}

/* No answer takes the place of what is read. */
static stint_status check_outs(sti_cli_call *call)
{
    const serve_args *args = call->args;
    const char *outs[] = {args->address_file, args->tables_out};
    const char *ins[] = {args->tables, args->traffic};
    stint_status st = STINT_OK;
    for (int o = 0; o < 2; o++) {
        for (int i = 0; i < 2 && st == STINT_OK; i++)
            if (ins[i])
                st = sti_cli_check_out(ins[i], outs[o]);
        for (int i = 0; i < call->operand_count && st == STINT_OK; i++) {
            const char *equal = strchr(call->operands[i], '=');
            const char *path =
                sti_cli_model_path(call, equal ? equal + 1 : call->operands[i]);
            st = path ? sti_cli_check_out(path, outs[o]) : STINT_E_MEMORY;
        }
    }
    return st;
}

static stint_status serve_run(sti_cli_call *call)
{
    const serve_args *args = call->args;
    stint_serve_result result;
    const stint_serve_desc desc = {.models = (const char *const *)call->operands,
                                   .model_count = call->operand_count,
                                   .sla = args->sla,
                                   .listen = args->listen,
                                   .address_file = args->address_file,
                                   .memory_bytes = args->memory_bytes,
                                   .threads = (int)args->threads,
                                   .units = (int)args->units,
                                   .quantile = args->quantile,
                                   .cut = args->serve.cut,
                                   .policy = args->serve.policy,
                                   .admit_all = args->serve.admit == 1,
                                   .serve_late = args->serve.late == 1,
                                   .batch_max = (int)args->serve.batch_max,
                                   .batch_delay_s = args->serve.batch_delay_s,
                                   .traffic = args->traffic,
                                   .tables = args->tables,
                                   .tables_out = args->tables_out,
                                   .max_body_bytes = args->max_body_bytes,
                                   .max_connections = (int)args->max_connections,
                                   .drain_s = args->drain_s,
                                   .ready = tell_ready,
                                   .user = call};
    if (!args->sla)
        return sti_fail(STINT_E_USAGE,
                        "--sla: the time to an answer was wanted, --sla 20ms for one");
    const stint_status good = check_outs(call);
    if (good != STINT_OK)
        return good;
    sti_cli_catch_signals();
    sti_cli_catch_hangup();
    if (args->explain)
        return explain(call, &desc);
    const stint_status st = stint_serve(&desc, &result);
    return st == STINT_OK ? answer(call, &result) : st;
}

const sti_cli_command sti_cmd_serve = {
    .name = "serve",
    .summary = "answer requests over HTTP, each in time or refused at once",
    .operands = "[NAME=]MODEL...",
    .example = "stint serve digits=runs/a --sla 20ms\n"
               "stint serve runs/a --sla 20ms --explain",
    .about =
        "Cuts the CPUs into partitions for the traffic that is expected, measures "
        "how long batches take on each, and sends each request to the smallest one "
        "that answers it in time. SIGTERM and Ctrl-C end it: what was taken is "
        "answered first. SIGHUP loads the models anew.",
    .min_operands = 1,
    .max_operands = STI_SERVE_MODELS,
    STI_CLI_ARGS(serve_rows, serve_args),
    .run = serve_run,
};
