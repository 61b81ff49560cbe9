/* stint bench embedding: hit ratios of cache policies on a trace, or the random reads
 * of the disk. */
#include <inttypes.h>

#include "base/fail.h"
#include "base/units.h"
#include "cli/cli.h"
#include "recommend/cache_trace.h"
#include "recommend/disk_rate.h"

typedef struct bench_args {
    const char *folder;
    int policy, io;
    int64_t cache, lookahead, batch;
    sti_cli_common common;
} bench_args;

#define BENCH_ROW(field, kind, standard, words)                                        \
    .type = (kind), .default_text = (standard), .offset = offsetof(bench_args, field), \
    .flag = true, .help = (words)

static const sti_option bench_rows[] = {
    {.name = "cache",
     .min = 1,
     .max = 1e9,
     .unit = "N",
     BENCH_ROW(cache, STI_OPTION_INT, "1000", "ids that the cache holds")},
    {.name = "policy",
     .choices = "future|static|lfu|lru",
     .unit = "NAME",
     BENCH_ROW(policy, STI_OPTION_CHOICE, "future", "as embedding.policy of a recipe")},
    {.name = "lookahead",
     .min = 0,
     .max = 1e9,
     .unit = "N",
     BENCH_ROW(lookahead, STI_OPTION_INT, "0",
               "batches that future sees beforehand; 0: all")},
    {.name = "batch",
     .min = 1,
     .max = 1e7,
     .unit = "N",
     BENCH_ROW(batch, STI_OPTION_INT, "1",
               "requests at a time; an id that a batch has twice counts once")},
    {.name = "folder",
     .unit = "DIR",
     BENCH_ROW(folder, STI_OPTION_PATH, ".",
               "without a trace: on whose disk a file of 64 MiB is made and read")},
    {.name = "io",
     .choices = "auto|uring|threads",
     .unit = "HOW",
     BENCH_ROW(io, STI_OPTION_CHOICE, "auto", "without a trace: how it is read")},
    STI_CLI_COMMON_ROWS(bench_args),
};

static stint_status bench_trace(sti_cli_call *call)
{
    const bench_args *args = call->args;
    sti_cache_trace trace = {.rank = NULL};
    sti_cache_ratio r = {0, 0, 0};
    sti_text text = {0};
    sti_json j;
    stint_status st;
    STI_TRY(sti_cache_trace_read(call->operands[0], &trace));
    STI_TRY(sti_cache_trace_run(&trace, args->cache, (sti_cache_policy)args->policy,
                                args->lookahead, args->batch, &r));
    const double ratio = 1 - (double)r.misses / (double)r.requests;
    if (call->common->json) {
        sti_cli_json_begin(&j, &text);
        sti_json_text(&j, "policy",
                      sti_cache_policy_name((sti_cache_policy)args->policy));
        sti_json_int(&j, "cache", args->cache);
        sti_json_int(&j, "batches", r.batches);
        sti_json_int(&j, "requests", r.requests);
        sti_json_int(&j, "distinct", trace.distinct);
        sti_json_int(&j, "misses", r.misses);
        sti_json_float(&j, "hit_ratio", ratio);
        sti_json_end_object(&j);
    } else {
        sti_text_printf(&text, "%s requests of ", sti_count_text(r.requests));
        sti_text_printf(&text, "%s ids; ", sti_count_text(trace.distinct));
        sti_text_printf(&text,
                        "%s with %" PRId64 " in the cache: %s misses, hit ratio "
                        "%.4f\n",
                        sti_cache_policy_name((sti_cache_policy)args->policy),
                        args->cache, sti_count_text(r.misses), ratio);
    }
    st = sti_cli_answer(call, &text);
out:
    sti_cache_trace_fini(&trace);
    return st;
}

static stint_status bench_disk(sti_cli_call *call)
{
    enum { DEPTHS = 7 };
    const bench_args *args = call->args;
    double per_s[DEPTHS];
    sti_disk_probe probe;
    sti_text text = {0};
    sti_json j;
    stint_status st = sti_disk_probe_open(args->folder, &probe);
    if (st != STINT_OK)
        return st;
    for (int i = 0; i < DEPTHS && st == STINT_OK; i++)
        st = sti_disk_probe_reads(&probe, (sti_async_way)args->io, 1 << i, 0.3,
                                  &per_s[i]);
    const bool direct = probe.file.direct;
    sti_disk_probe_close(&probe);
    if (st != STINT_OK)
        return st;
    if (call->common->json) {
        sti_cli_json_begin(&j, &text);
        sti_json_bool(&j, "direct", direct);
        sti_json_begin_array(&j, "reads");
        for (int i = 0; i < DEPTHS; i++) {
            sti_json_begin_object(&j, NULL);
            sti_json_int(&j, "depth", 1 << i);
            sti_json_float(&j, "per_s", per_s[i]);
            sti_json_end_object(&j);
        }
        sti_json_end_array(&j);
        sti_json_end_object(&j);
    } else {
        sti_text_printf(&text, "random reads of 4 KiB%s\n",
                        direct ? ", past the page cache" : " (O_DIRECT was refused)");
        for (int i = 0; i < DEPTHS; i++)
            sti_text_printf(&text, "  depth %2d  %8.0f a second\n", 1 << i, per_s[i]);
    }
    return sti_cli_answer(call, &text);
}

static stint_status bench_run(sti_cli_call *call)
{
    return call->operand_count > 0 ? bench_trace(call) : bench_disk(call);
}

const sti_cli_command sti_cmd_bench_embedding = {
    .name = "bench embedding",
    .summary = "hit ratios of embedding caches on a trace, or what the disk reads",
    .operands = "[TRACE]",
    .example = "stint bench embedding requests.txt --cache 1000 --policy future",
    .about = "TRACE is text with an id a line, or libCacheSim's oracleGeneral (.bin); "
             "static begins with the most frequent ids, future with those that come "
             "first, lfu and lru empty. "
             "Without it, random reads of the disk at depths 1 to 64.",
    .min_operands = 0,
    .max_operands = 1,
    STI_CLI_ARGS(bench_rows, bench_args),
    .run = bench_run,
};
