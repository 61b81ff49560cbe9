/* stint bench latency: how long models take for a batch, measured in turns. */
#include <inttypes.h>

#include "base/cpu.h"
#include "base/fail.h"
#include "base/shown.h"
#include "base/team.h"
#include "base/units.h"
#include "cli/cli.h"
#include "infer/latency.h"
#include "infer/model_use.h"

typedef struct latency_args {
    int64_t batch, rounds, threads;
    sti_cli_common common;
} latency_args;

static const sti_option latency_rows[] = {
    {.name = "batch",
     .type = STI_OPTION_INT,
     .default_text = "1",
     .min = 1,
     .max = 1 << 20,
     .offset = offsetof(latency_args, batch),
     .flag = true,
     .unit = "N",
     .help = "images at a time"},
    {.name = "rounds",
     .type = STI_OPTION_INT,
     .default_text = "30",
     .min = 5,
     .max = 10000,
     .offset = offsetof(latency_args, rounds),
     .flag = true,
     .unit = "N",
     .help = "turns that each model has"},
    STI_CLI_THREADS_ROW(latency_args),
    STI_CLI_COMMON_ROWS(latency_args),
};

/* Models in use, [count]. */
typedef struct bench {
    stint_model_file **files;
    sti_network *networks;
    sti_infer **infers;
    sti_latency *latency, *kept;
    int count, threads;
    double ratio;
} bench;

static stint_status make_room(bench *b, sti_cli_call *call)
{
    b->count = call->operand_count;
    b->files = sti_alloc_array(b->count, sizeof(stint_model_file *), "models");
    b->networks = sti_alloc_array(b->count, sizeof *b->networks, "models");
    b->infers = sti_alloc_array(b->count, sizeof(sti_infer *), "models");
    b->latency = sti_alloc_array(b->count, sizeof *b->latency, "models");
    b->kept = sti_alloc_array(b->count, sizeof *b->kept, "models");
    return b->files && b->networks && b->infers && b->latency && b->kept
               ? STINT_OK
               : STINT_E_MEMORY;
}

static stint_status prepare(bench *b, int i, const char *path, int64_t batch)
{
    stint_status st;
    STI_TRY(stint_model_open(path, &b->files[i]));
    if (b->files[i]->network.context) {
        st = sti_fail(STINT_E_UNSUPPORTED,
                      "%s: a text model; latencies are of models of images", path);
        goto out;
    }
    if (b->files[i]->network.field.coordinates > 0) {
        st = sti_fail(STINT_E_UNSUPPORTED,
                      "%s: a field; latencies are of models of images", path);
        goto out;
    }
    STI_TRY(sti_model_use(b->files[i], batch, b->threads, 1, &b->networks[i],
                          &b->infers[i]));
    (void)sti_latency_kept(&b->networks[i], b->threads, &b->kept[i]);
out:
    return st;
}

static void bench_fini(bench *b)
{
    for (int i = 0; i < b->count; i++) {
        if (b->latency)
            sti_latency_fini(&b->latency[i]);
        if (b->infers)
            sti_infer_destroy(b->infers[i]);
        if (b->networks)
            sti_network_fini(&b->networks[i]);
        if (b->files)
            stint_model_close(b->files[i]);
    }
    sti_free(b->latency);
    sti_free(b->kept);
    sti_free(b->infers);
    sti_free(b->networks);
    sti_free(b->files);
}

/* ---- what came out ---- */

static void add_model_json(const bench *b, const sti_cli_call *call, int i, sti_json *j)
{
    const sti_latency *l = &b->latency[i];
    sti_json_begin_object(j, NULL);
    sti_json_text(j, "path", call->operands[i]);
    sti_json_float(j, "ms", l->ms);
    sti_json_float(j, "low_ms", l->low_ms);
    sti_json_float(j, "high_ms", l->high_ms);
    if (b->kept[i].ms > 0)
        sti_json_float(j, "kept_ms", b->kept[i].ms);
    sti_json_begin_array(j, "layers");
    for (int k = 0; k < l->layer_count; k++) {
        sti_json_begin_object(j, NULL);
        sti_json_text(j, "name", l->layers[k].name);
        sti_json_text(j, "form", l->layers[k].form);
        sti_json_float(j, "ms", l->layers[k].ms);
        sti_json_end_object(j);
    }
    sti_json_end_array(j);
    sti_json_end_object(j);
}

static void add_json(const bench *b, const sti_cli_call *call, sti_text *out)
{
    const latency_args *args = call->args;
    sti_json j;
    sti_cli_json_begin(&j, out);
    sti_json_text(&j, "cpu", sti_cpu_name());
    sti_json_text(&j, "isa", sti_isa_name(sti_isa_now()));
    sti_json_int(&j, "threads", b->threads);
    sti_json_int(&j, "batch", args->batch);
    sti_json_int(&j, "rounds", args->rounds);
    sti_json_begin_array(&j, "models");
    for (int i = 0; i < b->count; i++)
        add_model_json(b, call, i, &j);
    sti_json_end_array(&j);
    sti_json_float(&j, "ratio", b->ratio);
    sti_json_end_object(&j);
}

static void add_layers_words(const sti_latency *l, sti_text *out)
{
    for (int k = 0; k < l->layer_count; k++)
        sti_text_printf(out, "  %-32s %-24s %9.3f ms\n", sti_shown(l->layers[k].name),
                        l->layers[k].form, l->layers[k].ms);
}

static void add_words(const bench *b, const sti_cli_call *call, sti_text *out)
{
    const latency_args *args = call->args;
    sti_text_printf(out, "%s, %s, %d thread%s, batch %" PRId64 "\n", sti_cpu_name(),
                    sti_isa_name(sti_isa_now()), b->threads, sti_s(b->threads),
                    args->batch);
    for (int i = 0; i < b->count; i++) {
        const sti_latency *l = &b->latency[i];
        sti_text_printf(out, "\n%s: %.3f ms (%.3f to %.3f)",
                        sti_shown(call->operands[i]), l->ms, l->low_ms, l->high_ms);
        if (b->kept[i].ms > 0)
            sti_text_printf(out, ", the last time %.3f ms", b->kept[i].ms);
        sti_text_add(out, "\n");
        add_layers_words(l, out);
    }
    if (b->count > 1)
        sti_text_printf(out, "\nthe last takes %.3f of the first\n", b->ratio);
}

static stint_status answer(const bench *b, sti_cli_call *call)
{
    sti_text text = {0};
    if (call->common->json)
        add_json(b, call, &text);
    else
        add_words(b, call, &text);
    return sti_cli_answer(call, &text);
}

static stint_status latency_run(sti_cli_call *call)
{
    const latency_args *args = call->args;
    bench b = {.count = 0};
    stint_status st = sti_threads_choose((int)args->threads, &b.threads, NULL);
    if (st == STINT_OK)
        st = make_room(&b, call);
    for (int i = 0; i < b.count && st == STINT_OK; i++) {
        const char *path = sti_cli_model_path(call, call->operands[i]);
        st = path ? prepare(&b, i, path, args->batch) : STINT_E_MEMORY;
    }
    if (st == STINT_OK) {
        sti_cli_catch_signals();
        st = sti_latency_measure(b.infers, b.count, (int)args->rounds, b.latency,
                                 &b.ratio);
    }
    for (int i = 0; i < b.count && st == STINT_OK; i++)
        sti_latency_keep(&b.networks[i], b.threads, &b.latency[i]);
    if (st == STINT_OK)
        st = answer(&b, call);
    bench_fini(&b);
    return st;
}

const sti_cli_command sti_cmd_bench_latency = {
    .name = "bench latency",
    .summary = "time models for a batch of images, in turns, layer by layer",
    .operands = "MODEL...",
    .example = "stint bench latency runs/a small.safetensors --batch 1 -j 1",
    .about = "Each round runs every model once, so that what else the machine does "
             "falls on all. The figure is the median, and the interval holds it in 95 "
             "of 100 cases. The last round of measuring goes layer by layer.",
    .min_operands = 1,
    .max_operands = 64,
    STI_CLI_ARGS(latency_rows, latency_args),
    .run = latency_run,
};
