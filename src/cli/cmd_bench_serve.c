/* stint bench serve: load for a server, or for a simulation of one. */
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "base/fail.h"
#include "cli/cli_serve.h"
#include "serve/answer_times_page.h"
#include "serve/load.h"
#include "serve/serve_rehearse.h"

typedef struct bench_args {
    const char *url, *simulate, *model, *arrivals, *batch, *raw, *data, *page;
    double duration_s, quantile;
    int64_t requests, seed;
    int service;
    bool find_rate;
    sti_serve_options serve;
    sti_cli_common common;
} bench_args;

/* clang-format off */
#define BENCH_ROW(field, kind, standard, words)                                        \
    .type = (kind), .default_text = (standard), .offset = offsetof(bench_args, field), \
    .flag = true, .help = (words)
/* clang-format on */

static const sti_option bench_rows[] = {
    {.name = "url",
     .unit = "URL",
     BENCH_ROW(url, STI_OPTION_TEXT, "", "of a server, http://127.0.0.1:8000")},
    {.name = "simulate",
     .unit = "TABLES",
     BENCH_ROW(simulate, STI_OPTION_PATH, "",
               "a file of latency tables in the place of a server")},
    {.name = "model",
     .unit = "NAME",
     BENCH_ROW(model, STI_OPTION_TEXT, "", "that is asked; none: the only one")},
    {.name = "arrivals",
     .unit = "KIND",
     BENCH_ROW(arrivals, STI_OPTION_TEXT, "poisson:10",
               "poisson:RATE in queries a second, or trace:FILE.csv of seconds and "
               "images")},
    {.name = "batch",
     .unit = "KIND",
     BENCH_ROW(batch, STI_OPTION_TEXT, "",
               "images of a query, or tokens of a text: N, lognormal:MU,SIGMA, "
               "dist:1=0.4,2=0.6; none: 1, or as the tables say")},
    {.name = "data",
     .unit = "PATH",
     BENCH_ROW(data, STI_OPTION_PATH, "",
               "a file with a prompt a line, or image files")},
    {.name = "page",
     .unit = "FILE",
     BENCH_ROW(page, STI_OPTION_PATH, "", "gets latencies as a page of HTML")},
    {.name = "raw",
     .unit = "PATH",
     BENCH_ROW(raw, STI_OPTION_TEXT, "", "ask for this path alone, with GET")},
    {.name = "duration",
     .unit = "TIME",
     BENCH_ROW(duration_s, STI_OPTION_TIME, "10s", "for which queries are sent")},
    {.name = "requests",
     .unit = "N",
     .min = 0,
     .max = 1e9,
     BENCH_ROW(requests, STI_OPTION_INT, "0", "queries to send; 0: by --duration")},
    {.name = "service",
     .choices = "table|exponential",
     BENCH_ROW(service, STI_OPTION_CHOICE, "table",
               "times of a simulation: the tables' medians, or drawn around them")},
    {.name = "find-rate",
     BENCH_ROW(find_rate, STI_OPTION_BOOL, "false",
               "the highest simulated rate with --quantile in time")},
    {.name = "seed",
     .unit = "N",
     .min = 0,
     .max = STI_OPTION_COUNT_MAX,
     BENCH_ROW(seed, STI_OPTION_INT, "1", "of arrivals and batches")},
    {.name = "quantile",
     .unit = "SHARE",
     .min = 0.5,
     .max = 0.9999,
     BENCH_ROW(quantile, STI_OPTION_FLOAT, "0.95",
               "of queries that are to be in time: for --find-rate, and the cut")},
    STI_CLI_SERVE_ROWS(bench_args),
    STI_CLI_COMMON_ROWS(bench_args),
};

typedef struct bench_result {
    sti_serve_result result;
    double rate_per_s, bound_per_s; /* NaN: not looked for */
    sti_answer_times times;
} bench_result;

static stint_status answer(sti_cli_call *call, const bench_result *r, const char *kind)
{
    sti_text text = {0};
    sti_json j;
    if (call->common->json) {
        sti_cli_json_begin(&j, &text);
        sti_cli_serve_json(&r->result, kind, &j);
        sti_json_float(&j, "max_rate_per_s", r->rate_per_s);
        sti_json_float(&j, "bound_per_s", r->bound_per_s);
        sti_json_end_object(&j);
        return sti_cli_answer(call, &text);
    }
    if (r->rate_per_s >= 0)
        sti_text_printf(&text, "highest rate that holds: %.4g queries/s\n",
                        r->rate_per_s);
    if (r->bound_per_s >= 0)
        sti_text_printf(&text, "bound of any scheduler without merging: %.4g/s\n",
                        r->bound_per_s);
    sti_cli_serve_words(&r->result, kind, &text);
    return sti_cli_answer(call, &text);
}

/* Arrivals and batches; the tables' own shares where none are given. */
static stint_status make_traffic(const bench_args *args, const sti_serve_model *m,
                                 sti_traffic *traffic)
{
    stint_status st;
    traffic->seed = (uint64_t)args->seed;
    STI_TRY(sti_traffic_arrivals(args->arrivals, traffic));
    if (args->batch || !m) {
        STI_TRY(sti_traffic_batches(args->batch ? args->batch : "1",
                                    m ? m->batch_most : (int)args->serve.batch_max,
                                    traffic));
        goto out;
    }
    traffic->batch_most = m->batch_most;
    for (int b = 0; b < m->batch_most; b++)
        traffic->share[b] = m->share[b] + (b ? traffic->share[b - 1] : 0);
    traffic->share[m->batch_most - 1] = 1;
out:
    return st;
}

static stint_status check_trace(const sti_traffic *traffic, const sti_serve_model *m)
{
    for (int64_t i = 0; i < traffic->count; i++)
        if (traffic->batch[i] > m->batch_most)
            return sti_fail(
                STINT_E_INPUT,
                "the trace has a query of %d images, the tables of %s go to "
                "%d",
                traffic->batch[i], m->name, m->batch_most);
    return STINT_OK;
}

static stint_status find_model(const bench_args *args, const sti_serve_tables *tables,
                               int *model_out)
{
    *model_out = args->model ? sti_serve_find_model(tables, args->model) : 0;
    if (*model_out < 0 || (!args->model && tables->models > 1))
        return sti_fail(STINT_E_USAGE,
                        "--model: one of the tables' models was wanted, "
                        "%s for one",
                        tables->model[0].name);
    return STINT_OK;
}

/* The machine's partitions serve all models; the traffic is of one, whose shares of
 * batches the cut is made for. */
static stint_status simulate(sti_cli_call *call, sti_serve_tables *tables,
                             bench_result *r)
{
    const bench_args *args = call->args;
    sti_traffic traffic = {.rate_per_s = 0};
    sti_serve_plan plan;
    sti_simulate_desc desc = {.exponential = args->service == 1,
                              .queries = args->requests,
                              .times = args->page ? &r->times : NULL,
                              .duration_s = args->requests ? 0 : args->duration_s};
    stint_status st;
    STI_TRY(find_model(args, tables, &desc.model));
    sti_serve_model *m = &tables->model[desc.model];
    STI_TRY(make_traffic(args, m, &traffic));
    STI_TRY(check_trace(&traffic, m));
    sti_traffic_shares(&traffic, m->batch_most, m->share);
    tables->late = STI_SERVE_LATE_OF * (1 - args->quantile);
    desc.traffic = &traffic;
    sti_cli_catch_signals();
    if (args->find_rate) {
        st = sti_serve_rehearse(
            &args->serve, tables, &desc, args->quantile, (uint64_t)args->seed,
            &(sti_serve_rehearsed){&r->rate_per_s, &r->bound_per_s, &r->result});
        goto out;
    }
    STI_TRY(sti_serve_plan_make(&args->serve, tables, &plan));
    desc.scheduler = plan.scheduler;
    r->bound_per_s = plan.bound_per_s;
    desc.scheduler.seed = (uint64_t)args->seed;
    st = sti_simulate(&desc, &r->result);
out:
    sti_traffic_fini(&traffic);
    return st;
}

static stint_status load(sti_cli_call *call, bench_result *r)
{
    const bench_args *args = call->args;
    sti_traffic traffic = {.rate_per_s = 0};
    stint_status st;
    STI_TRY(make_traffic(args, NULL, &traffic));
    sti_cli_catch_signals();
    STI_TRY(sti_serve_load(&(sti_load_desc){.url = args->url,
                                            .model = args->model,
                                            .raw = args->raw,
                                            .data = args->data,
                                            .times = args->page ? &r->times : NULL,
                                            .traffic = &traffic,
                                            .queries = args->requests,
                                            .duration_s = args->duration_s},
                           &r->result));
out:
    sti_traffic_fini(&traffic);
    return st;
}

/* The file of arrivals; NULL: they are drawn. */
static const char *trace_of(const char *arrivals)
{
    return strncmp(arrivals, "trace:", 6) == 0 ? arrivals + 6 : NULL;
}

static stint_status bench_run(sti_cli_call *call)
{
    const bench_args *args = call->args;
    sti_serve_tables tables = {.models = 0};
    bench_result r = {.rate_per_s = (double)NAN, .bound_per_s = (double)NAN};
    const char *kind = args->simulate ? "sim" : "real";
    stint_status st;
    if (!args->url == !args->simulate)
        return sti_fail(STINT_E_USAGE, "one of --url and --simulate was wanted");
    if (args->find_rate && !args->simulate)
        return sti_fail(STINT_E_UNSUPPORTED,
                        "--find-rate is of simulations; for a server call once for "
                        "each rate");
    if (args->data && (args->simulate || args->raw))
        return sti_fail(STINT_E_USAGE, "--data: is sent to a model of a server; a "
                                       "simulation sends nothing, and --raw a GET");
    for (int i = 0; args->page && i < 3; i++) {
        const char *in[] = {args->simulate, args->data, trace_of(args->arrivals)};
        if (in[i])
            STI_TRY(sti_cli_check_out(in[i], args->page));
    }
    if (args->simulate) {
        STI_TRY(sti_serve_tables_read(args->simulate, &tables));
        if (tables.holes > 0)
            sti_log(STINT_LOG_WARNING,
                    "%s: %d times that were not measured are "
                    "interpolated",
                    args->simulate, tables.holes);
        STI_TRY(simulate(call, &tables, &r));
    } else {
        STI_TRY(load(call, &r));
    }
    if (args->page)
        STI_TRY(sti_answer_times_page(
            args->page, &r.times, &r.result,
            &(sti_answer_times_about){
                .kind = kind, .subject = args->simulate ? args->simulate : args->url}));
    STI_TRY(answer(call, &r, kind));
out:
    sti_answer_times_fini(&r.times);
    sti_serve_result_fini(&r.result);
    sti_serve_tables_fini(&tables);
    return st;
}

const sti_cli_command sti_cmd_bench_serve = {
    .name = "bench serve",
    .summary = "send queries to a server, or to a simulation of one",
    .operands = "",
    .example = "stint bench serve --url http://127.0.0.1:8000 --arrivals poisson:200\n"
               "stint bench serve --simulate tables.json --batch lognormal:1.4,0.9 "
               "--find-rate",
    .about =
        "Queries are sent at the times that were drawn for them, whether earlier "
        "ones have been answered or not, and latencies count from then. A "
        "simulation runs the scheduler of `stint serve` on latency tables, also of "
        "other machines.",
    STI_CLI_ARGS(bench_rows, bench_args),
    .run = bench_run,
};
