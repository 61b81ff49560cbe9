/* stint shrink: a trained model made as small or as fast as is asked for. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/fail.h"
#include "base/progress.h"
#include "base/shown.h"
#include "base/units.h"
#include "cli/cli.h"

typedef struct shrink_args {
    const char *size, *latency, *method;
    double drop, mismatch;
    int objective, search;
    int64_t samples, batch;
    bool plan, resume, force;
    sti_cli_common common;
} shrink_args;

#define AT(field) .offset = offsetof(shrink_args, field)

static const sti_option shrink_rows[] = {
    {.name = "size",
     .type = STI_OPTION_TEXT,
     .default_text = "",
     AT(size),
     .flag = true,
     .unit = "SIZE",
     .help = "most bytes of the whole file, as 200K"},
    {.name = "latency",
     .type = STI_OPTION_TEXT,
     .default_text = "",
     AT(latency),
     .flag = true,
     .unit = "TIME",
     .help = "longest time of a batch: 5ms, or 0.5x the model's"},
    {.name = "accuracy-drop",
     .type = STI_OPTION_FLOAT,
     .default_text = "-1",
     STI_OPTION_RANGE(-1, 100),
     AT(drop),
     .flag = true,
     .unit = "POINTS",
     .help = "most images of 100 that may be lost; -1: any"},
    {.name = "mismatch",
     .type = STI_OPTION_FLOAT,
     .default_text = "-1",
     STI_OPTION_RANGE(-1, 1),
     AT(mismatch),
     .flag = true,
     .unit = "SHARE",
     .help = "most answers that may change; -1: any"},
    {.name = "method",
     .type = STI_OPTION_TEXT,
     .default_text = "",
     AT(method),
     .flag = true,
     .unit = "WORD",
     .help = "how accuracy is won back: direct (not at all), fine-tune, rewind or lc "
             "(the default)"},
    {.name = "objective",
     .type = STI_OPTION_CHOICE,
     .default_text = "auto",
     .choices = "auto|size|latency",
     AT(objective),
     .flag = true,
     .unit = "WORD",
     .help = "what is made least within an accuracy"},
    {.name = "search",
     .type = STI_OPTION_CHOICE,
     .default_text = "bisect",
     .choices = "bisect|bayes|grid",
     AT(search),
     .flag = true,
     .unit = "WORD",
     .help = "for the share that a scheme leaves as auto"},
    {.name = "samples",
     .type = STI_OPTION_INT,
     .default_text = "10",
     STI_OPTION_RANGE(1, 100),
     AT(samples),
     .flag = true,
     .unit = "N",
     .help = "most trainings of the search"},
    {.name = "batch",
     .type = STI_OPTION_INT,
     .default_text = "1",
     STI_OPTION_RANGE(1, 1 << 20),
     AT(batch),
     .flag = true,
     .unit = "N",
     .help = "images of a batch whose latency counts"},
    {.name = "plan",
     .type = STI_OPTION_BOOL,
     .default_text = "false",
     AT(plan),
     .flag = true,
     .help = "say what would be tried; train nothing"},
    {.name = "resume",
     .type = STI_OPTION_BOOL,
     .default_text = "false",
     AT(resume),
     .flag = true,
     .help = "go on with the samples in the out folder"},
    {.name = "force",
     .type = STI_OPTION_BOOL,
     .default_text = "false",
     AT(force),
     .flag = true,
     .help = "replace what is in the out folder"},
    STI_CLI_COMMON_ROWS(shrink_args),
};

/* ---- limits ---- */

/* No limit is what no option says; of none at all there is no model. */
static stint_status refuse_nothing(const char *option, const char *text)
{
    return sti_fail(STINT_E_USAGE,
                    "--%s %s: nothing is that %s; give more, or leave it out: for the "
                    "least within an accuracy give --accuracy-drop alone",
                    option, text, strcmp(option, "size") == 0 ? "small" : "fast");
}

static stint_status parse_size(const char *text, stint_shrink_desc *desc)
{
    if (!text || strcmp(text, "auto") == 0)
        return STINT_OK;
    const stint_status st = sti_parse_bytes(text, &desc->size_bytes);
    if (st != STINT_OK)
        return sti_fail_context(st, "--size");
    return desc->size_bytes > 0 ? STINT_OK : refuse_nothing("size", text);
}

static stint_status parse_latency(const char *text, stint_shrink_desc *desc)
{
    stint_status st = STINT_OK;
    if (!text)
        return STINT_OK;
    st = sti_parse_latency(text, &desc->latency_s, &desc->latency_share);
    if (st != STINT_OK)
        return sti_fail_context(st, "--latency");
    return desc->latency_s > 0 || desc->latency_share > 0
               ? STINT_OK
               : refuse_nothing("latency", text);
}

static stint_status describe(const shrink_args *args, stint_shrink_desc *desc)
{
    *desc = (stint_shrink_desc){
        .limits_drop = args->drop >= 0,
        .accuracy_drop = args->drop / 100,
        .limits_mismatch = args->mismatch >= 0,
        .mismatch = args->mismatch,
        .objective = (stint_shrink_objective)args->objective,
        .search = (stint_shrink_search)args->search,
        .samples = (int)args->samples,
        .batch = args->batch,
        .resume = args->resume,
        .force = args->force,
    };
    if ((args->drop < 0 && args->drop != -1) ||
        (args->mismatch < 0 && args->mismatch != -1))
        return sti_fail(STINT_E_USAGE, "--accuracy-drop and --mismatch: 0 or more, or "
                                       "-1 for any, was wanted");
    const stint_status st = parse_size(args->size, desc);
    return st == STINT_OK ? parse_latency(args->latency, desc) : st;
}

/* ---- progress ---- */

typedef struct shrink_view {
    const sti_cli_call *call;
    sti_progress bar;
    char title[32];
    bool begun; /* the bar of the sample under way */
    int samples;
} shrink_view;

static void on_progress(void *user, const stint_train_progress *p)
{
    shrink_view *v = user;
    char words[128];
    if (p->steps <= 0 || p->evaluating)
        return;
    if (!v->begun) {
        snprintf(v->title, sizeof v->title, "sample %d", v->samples + 1);
        sti_progress_begin(&v->bar, v->title, NULL, p->steps, v->call->common->quiet);
    }
    v->begun = true;
    snprintf(words, sizeof words, "loss %.4f", p->loss);
    sti_progress_update(&v->bar, p->step, words);
}

static void on_sample(void *user, const stint_shrink_sample *s)
{
    shrink_view *v = user;
    v->samples++;
    if (v->begun)
        sti_progress_clear(&v->bar);
    v->begun = false;
    sti_cli_say(v->call, "sample %d  share %.4f  accuracy %.2f %%  %s%s%s", v->samples,
                s->sparsity, 100 * s->accuracy, sti_bytes_text((size_t)s->bytes),
                s->met ? "  keeps every limit" : "",
                s->reused ? "  (was there already)" : "");
}

/* ---- answers ---- */

static void json_samples(sti_json *j, const stint_shrink_result *r)
{
    sti_json_begin_array(j, "samples");
    for (int i = 0; i < r->sample_count; i++) {
        const stint_shrink_sample *s = &r->samples[i];
        sti_json_begin_object(j, NULL);
        sti_json_float(j, "sparsity", s->sparsity);
        sti_json_int(j, "seed", (int64_t)s->seed);
        sti_json_float(j, "accuracy", s->accuracy);
        sti_json_float(j, "mismatch_rate", s->mismatch_rate);
        sti_json_int(j, "bytes", s->bytes);
        sti_json_float(j, "latency_ms", s->latency_ms);
        sti_json_bool(j, "met", s->met);
        sti_json_end_object(j);
    }
    sti_json_end_array(j);
}

static void json_layers(sti_json *j, const stint_shrink_result *r)
{
    sti_json_begin_array(j, "layers");
    for (int i = 0; i < r->layer_count; i++) {
        const stint_shrink_layer *l = &r->layers[i];
        sti_json_begin_object(j, NULL);
        sti_json_text(j, "name", l->name);
        sti_json_text(j, "form", l->form);
        sti_json_int(j, "weights", l->weights);
        sti_json_int(j, "nonzeros", l->nonzeros);
        sti_json_float(j, "bytes", l->bytes);
        sti_json_float(j, "ms", l->ms);
        sti_json_float(j, "base_ms", l->base_ms);
        sti_json_end_object(j);
    }
    sti_json_end_array(j);
}

static void json_answer(sti_json *j, const stint_shrink_result *r)
{
    sti_json_text(j, "scheme", r->scheme);
    sti_json_text(j, "method", r->method);
    sti_json_float(j, "sparsity", r->sparsity);
    sti_json_int(j, "bytes", r->bytes);
    sti_json_int(j, "base_bytes", r->base_bytes);
    sti_json_float(j, "size_ratio", (double)r->base_bytes / (double)r->bytes);
    sti_json_float(j, "latency_ms", r->latency_ms);
    sti_json_float(j, "base_ms", r->base_ms);
    sti_json_float(j, "latency_ratio", r->latency_ms / r->base_ms);
    sti_json_float(j, "accuracy", r->accuracy);
    sti_json_float(j, "base_accuracy", r->base_accuracy);
    sti_json_float(j, "accuracy_drop", r->accuracy_drop);
    sti_json_float(j, "test_accuracy", r->test_accuracy);
    sti_json_float(j, "base_test_accuracy", r->base_test_accuracy);
    sti_json_float(j, "mismatch_rate", r->mismatch_rate);
    sti_json_text(j, "judged_by", r->judged_by);
    sti_json_int(j, "judged", r->judged);
    sti_json_bool(j, "met", r->met);
    sti_json_int(j, "weights", r->weights);
    sti_json_int(j, "nonzeros", r->nonzeros);
    sti_json_begin_array(j, "bracket");
    sti_json_float(j, NULL, r->bracket[0]);
    sti_json_float(j, NULL, r->bracket[1]);
    sti_json_end_array(j);
    sti_json_text(j, "weights_sha256", r->weights_sha256);
    sti_json_text(j, "out", r->out);
    json_samples(j, r);
    json_layers(j, r);
}

static void words_answer(const stint_shrink_result *r, sti_text *out)
{
    sti_text_printf(out, "scheme %s, method %s\n", sti_shown(r->scheme), r->method);
    sti_text_printf(out, "%s in all, %.1f times smaller than float32\n",
                    sti_bytes_text((size_t)r->bytes),
                    (double)r->base_bytes / (double)r->bytes);
    sti_text_printf(out,
                    "accuracy %.2f %%, %.2f points below the model's, %.2f %% of the "
                    "answers changed\n  (of %" PRId64 " images: %s)\n",
                    100 * r->accuracy, 100 * r->accuracy_drop, 100 * r->mismatch_rate,
                    r->judged, r->judged_by);
    if (isfinite(r->test_accuracy))
        sti_text_printf(out,
                        "test accuracy %.2f %%, the model's %.2f %% (of images that "
                        "decided nothing)\n",
                        100 * r->test_accuracy, 100 * r->base_test_accuracy);
    sti_text_printf(out, "a batch takes %.3g ms, the model's %.3g ms\n", r->latency_ms,
                    r->base_ms);
    sti_text_printf(out, "%" PRId64 " of %" PRId64 " weights are not zero\n",
                    r->nonzeros, r->weights);
    sti_text_printf(out, "model  %s/model.safetensors\nreport %s/shrink.html\n",
                    sti_shown(r->out), sti_shown(r->out));
}

/* ---- plan ---- */

static void json_plan(sti_json *j, const stint_shrink_plan_result *p)
{
    sti_json_text(j, "scheme", p->scheme);
    sti_json_text(j, "method", p->method);
    sti_json_int(j, "base_bytes", p->base_bytes);
    sti_json_int(j, "samples", p->samples);
    sti_json_int(j, "sample_steps", p->sample_steps);
    sti_json_float(j, "sample_s", p->sample_s);
    sti_json_begin_array(j, "shares");
    for (int i = 0; i < p->guess_count; i++) {
        sti_json_begin_object(j, NULL);
        sti_json_float(j, "sparsity", p->guesses[i].sparsity);
        sti_json_int(j, "bytes", p->guesses[i].bytes);
        sti_json_int(j, "nonzeros", p->guesses[i].nonzeros);
        sti_json_float(j, "latency_ms", p->guesses[i].latency_ms);
        sti_json_float(j, "base_ms", p->guesses[i].base_ms);
        sti_json_end_object(j);
    }
    sti_json_end_array(j);
}

static void words_plan(const stint_shrink_plan_result *p, sti_text *out)
{
    sti_text_printf(out, "scheme %s, method %s\n", sti_shown(p->scheme), p->method);
    sti_text_printf(out,
                    "at most %d sample%s of %" PRId64 " training step%s, about %s each "
                    "here\n\n",
                    p->samples, sti_s(p->samples), p->sample_steps,
                    sti_s(p->sample_steps), sti_time_text(p->sample_s));
    sti_text_add(out, "share removed  file, untrained  times smaller  time of a batch  "
                      "of the model's\n");
    for (int i = 0; i < p->guess_count; i++) {
        const stint_shrink_guess *g = &p->guesses[i];
        sti_text_printf(
            out, "%13.3f  %15s  %13.1f  %15s  %13.2fx\n", g->sparsity,
            sti_bytes_text((size_t)g->bytes), (double)p->base_bytes / (double)g->bytes,
            sti_time_text(1e-3 * g->latency_ms), g->latency_ms / g->base_ms);
    }
}

static stint_status run_plan(sti_cli_call *call, const stint_shrink_desc *desc)
{
    stint_shrink_plan_result plan;
    sti_text text = {0};
    sti_json j;
    const stint_status st = stint_shrink_plan(call->recipe, desc, &plan);
    if (st != STINT_OK)
        return st;
    if (!call->common->json) {
        words_plan(&plan, &text);
        return sti_cli_answer(call, &text);
    }
    sti_cli_json_begin(&j, &text);
    json_plan(&j, &plan);
    sti_json_end_object(&j);
    return sti_cli_answer(call, &text);
}

/* ---- the call ---- */

static stint_status answer(sti_cli_call *call, const stint_shrink_result *result)
{
    sti_text text = {0};
    sti_json j;
    if (!call->common->json) {
        words_answer(result, &text);
        return sti_cli_answer(call, &text);
    }
    sti_cli_json_begin(&j, &text);
    json_answer(&j, result);
    sti_json_end_object(&j);
    return sti_cli_answer(call, &text);
}

static stint_status shrink_run(sti_cli_call *call)
{
    const shrink_args *args = call->args;
    shrink_view view = {.call = call};
    stint_shrink_result result;
    stint_shrink_desc desc;
    stint_status st = describe(args, &desc);
    if (st == STINT_OK && args->method)
        st = stint_recipe_set(call->recipe, "shrink.method", args->method);
    if (st != STINT_OK)
        return st;
    sti_cli_catch_signals();
    if (args->plan)
        return run_plan(call, &desc);
    desc.progress = on_progress;
    desc.sampled = on_sample;
    desc.user = &view;
    st = stint_shrink(call->recipe, &desc, &result);
    if (view.begun)
        sti_progress_clear(&view.bar);
    /* What came nearest to limits that nothing keeps is an answer, too. */
    if (st == STINT_OK || (st == STINT_E_BUDGET && *result.out)) {
        const stint_status said = answer(call, &result);
        st = st == STINT_OK ? said : st;
    }
    stint_shrink_fini(&result);
    return st;
}

/* The recipe's other keys are about a training from new weights. */
static const sti_cli_model_flag flags[] = {
    {.key = "data.path", .help = "images (folder, tar, IDX, CIFAR)"},
    {.key = "train.seed"},
    {.key = "shrink.scheme",
     .help = "compression of weights, as prune(0.9); default: prune(auto)+quantise"
             "(int8), or what a latency takes"},
    {.key = "run.out",
     .help = "folder for model, samples and page; default: runs/<network>-shrunk"},
    {.key = "run.threads"},
    {.key = "run.memory"},
    {.key = NULL}};

const sti_cli_command sti_cmd_shrink = {
    .name = "shrink",
    .summary = "make a trained model as small or as fast as you ask",
    .operands = "MODEL",
    .example = "stint shrink runs/a --data cifar10.tar --size 200K\n"
               "stint shrink runs/a --data cifar10.tar --accuracy-drop 0.3",
    .about =
        "Compresses weights by a scheme and trains to win the accuracy back. With "
        "--size "
        "or --latency: the best accuracy within it. With --accuracy-drop or "
        "--mismatch: "
        "the smallest model within that. Both: exit status 3 unless both are kept. The "
        "out folder gets model.safetensors, which every subcommand reads, samples/ and "
        "shrink.html.",
    .min_operands = 1,
    .max_operands = 1,
    .recipe = true,
    .of_model = stint_shrink_recipe,
    .model_flags = flags,
    STI_CLI_ARGS(shrink_rows, shrink_args),
    .run = shrink_run,
};
