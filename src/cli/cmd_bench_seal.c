/* stint bench seal: encrypted gates a second on this machine. */
#include "base/cpu.h"
#include "base/units.h"
#include "cli/cli.h"
#include "stint/seal.h"

typedef struct seal_args {
    int64_t threads;
    double seconds;
    sti_cli_common common;
} seal_args;

static const sti_option rows[] = {
    STI_CLI_THREADS_ROW(seal_args),
    {.name = "seconds",
     .type = STI_OPTION_FLOAT,
     .default_text = "2",
     .min = 0.01,
     .max = 600,
     .offset = offsetof(seal_args, seconds),
     .flag = true,
     .unit = "S",
     .help = "time spent on each parameter set"},
    STI_CLI_COMMON_ROWS(seal_args),
};

static void add_words(const char *name, const stint_seal_bench_result *r, sti_text *out)
{
    sti_text_printf(out, "%-6s %8.1f bootstraps a second on %d thread%s, ", name,
                    r->bootstraps_per_s, r->threads, sti_s(r->threads));
    sti_text_printf(out, "%.2f ms each on one; ",
                    1e3 * r->threads / r->bootstraps_per_s);
    sti_text_printf(out, "%.2f ms alone\n", 1e3 * r->single_s);
}

static void add_json(const char *name, const stint_seal_bench_result *r, sti_json *j)
{
    sti_json_begin_object(j, NULL);
    sti_json_text(j, "set", name);
    sti_json_float(j, "bootstraps_per_s", r->bootstraps_per_s);
    sti_json_float(j, "bootstraps_per_s_a_core", r->bootstraps_per_s / r->threads);
    sti_json_float(j, "single_s", r->single_s);
    sti_json_end_object(j);
}

static stint_status seal_run(sti_cli_call *call)
{
    const seal_args *args = call->args;
    stint_seal_set set;
    stint_seal_bench_result r = {0};
    sti_text text = {0};
    sti_json j;
    stint_status st = STINT_OK;
    if (call->common->json) {
        sti_cli_json_begin(&j, &text);
        sti_json_text(&j, "cpu", sti_cpu_name());
        sti_json_text(&j, "isa", sti_isa_name(sti_isa_now()));
        sti_json_begin_array(&j, "sets");
    }
    for (int i = 0; st == STINT_OK && stint_seal_set_at(i, &set); i++) {
        st = stint_seal_bench(set.name, args->seconds, (int)args->threads, &r);
        if (st == STINT_OK && call->common->json)
            add_json(set.name, &r, &j);
        else if (st == STINT_OK)
            add_words(set.name, &r, &text);
    }
    if (st != STINT_OK) {
        sti_text_fini(&text);
        return st;
    }
    if (call->common->json) {
        sti_json_end_array(&j);
        sti_json_int(&j, "threads", r.threads);
        sti_json_end_object(&j);
    }
    return sti_cli_answer(call, &text);
}

const sti_cli_command sti_cmd_bench_seal = {
    .name = "bench seal",
    .summary = "time encrypted gates of each parameter set",
    .operands = "",
    .example = "stint bench seal -j 1 --seconds 5",
    .about = "Gates in full calls of eight on all threads, and one alone, with keys "
             "that are made for it and thrown away.",
    STI_CLI_ARGS(rows, seal_args),
    .run = seal_run,
};
