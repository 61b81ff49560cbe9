/* stint finetune: a trained model goes on with other data, all of it or a part. */
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "base/fail.h"
#include "base/shown.h"
#include "base/units.h"
#include "cli/cli_train.h"
#include "stint/finetune.h"
#include "train/run_section.h"
#include "train/update_section.h"

typedef struct finetune_args {
    int what;
    const char *step_time, *gains;
    bool plan, resume, force;
    sti_cli_common common;
} finetune_args;

#define AT(field) .offset = offsetof(finetune_args, field)

enum { AUTO, SPARSE, FULL, BIAS, LAST, LORA };

static const sti_option finetune_rows[] = {
    {.name = "what",
     .type = STI_OPTION_CHOICE,
     .default_text = "auto",
     .choices = "auto|sparse|full|bias|last|lora",
     AT(what),
     .flag = true,
     .unit = "WORD",
     .help = "what is trained; sparse: what fits --memory and --step-time best; "
             "lora: adapters of a text model; auto: sparse with either, else full"},
    {.name = "step-time",
     .type = STI_OPTION_TEXT,
     .default_text = "",
     AT(step_time),
     .flag = true,
     .unit = "TIME",
     .help = "longest step: 0.6x the full one, or 250ms"},
    {.name = "gains",
     .type = STI_OPTION_TEXT,
     .default_text = "fisher",
     AT(gains),
     .flag = true,
     .unit = "WORD|FILE",
     .help = "fisher, measured (short trainings, kept in OUT) or a gains.json"},
    {.name = "plan",
     .type = STI_OPTION_BOOL,
     .default_text = "false",
     AT(plan),
     .flag = true,
     .help = "say what would be trained, and what it takes"},
    {.name = "resume",
     .type = STI_OPTION_BOOL,
     .default_text = "false",
     AT(resume),
     .flag = true,
     .help = "go on from the newest checkpoint, to the same bits"},
    {.name = "force",
     .type = STI_OPTION_BOOL,
     .default_text = "false",
     AT(force),
     .flag = true,
     .help = "replace a finished run in the out folder"},
    STI_CLI_COMMON_ROWS(finetune_args),
};

/* ---- answers ---- */

static void json_scheme(const stint_finetune_scheme *s, sti_json *j)
{
    sti_json_begin_array(j, "scheme");
    for (int i = 0; i < s->tensor_count; i++) {
        const stint_finetune_tensor *t = &s->tensors[i];
        sti_json_begin_object(j, NULL);
        sti_json_text(j, "tensor", t->tensor);
        sti_json_float(j, "share", t->share);
        sti_json_float(j, "gain", t->gain);
        sti_json_int(j, "bytes", t->bytes);
        sti_json_end_object(j);
    }
    sti_json_end_array(j);
    sti_json_int(j, "trained_parameters", s->trained_parameters);
    sti_json_float(j, "step_share", s->step_share);
    sti_json_int(j, "full_peak_bytes", (int64_t)s->full_peak_bytes);
    sti_json_int(j, "smallest_bytes", (int64_t)s->smallest_bytes);
    sti_json_text(j, "start_sha256", s->start_sha256);
}

static void words_scheme(const stint_finetune_scheme *s, sti_text *out)
{
    sti_text_printf(out,
                    "%s of %s parameters trained, in %d tensor%s; a step is %.2f of "
                    "the arithmetic of training all\n",
                    sti_count_text(s->trained_parameters),
                    sti_count_text(s->parameters), s->tensor_count,
                    sti_s(s->tensor_count), s->step_share);
    sti_text_printf(out, "planned peak %s; of training all %s; the least %s\n",
                    sti_bytes_text(s->peak_bytes), sti_bytes_text(s->full_peak_bytes),
                    sti_bytes_text(s->smallest_bytes));
}

static void words_tensors(const stint_finetune_scheme *s, sti_text *out)
{
    sti_text_printf(out, "\n  %-40s %13s\n", "tensor", "trained with");
    for (int i = 0; i < s->tensor_count; i++)
        sti_text_printf(out, "  %-40s %13s\n", sti_shown(s->tensors[i].tensor),
                        sti_bytes_text((size_t)s->tensors[i].bytes));
}

static void json_budgets(const stint_finetune_scheme *s, sti_json *j)
{
    sti_json_begin_array(j, "budgets");
    for (int i = 0; i < s->budget_count; i++) {
        sti_json_begin_object(j, NULL);
        sti_json_int(j, "budget_bytes", (int64_t)s->budgets[i].budget_bytes);
        sti_json_int(j, "planned_peak_bytes", (int64_t)s->budgets[i].peak_bytes);
        sti_json_float(j, "step_share", s->budgets[i].step_share);
        sti_json_float(j, "gain", s->budgets[i].gain);
        sti_json_int(j, "trained_parameters", s->budgets[i].trained_parameters);
        sti_json_end_object(j);
    }
    sti_json_end_array(j);
}

static void words_budgets(const stint_finetune_scheme *s, sti_text *out)
{
    if (s->budget_count > 0)
        sti_text_printf(out, "\n  %13s %13s %8s %10s %10s\n", "--memory", "peak",
                        "step x", "gain", "trained");
    for (int i = 0; i < s->budget_count; i++)
        sti_text_printf(out, "  %13s %13s %8.2f %10.3g %10s\n",
                        sti_bytes_text(s->budgets[i].budget_bytes),
                        sti_bytes_text(s->budgets[i].peak_bytes),
                        s->budgets[i].step_share, s->budgets[i].gain,
                        sti_count_text(s->budgets[i].trained_parameters));
}

static stint_status run_plan(sti_cli_call *call, const stint_finetune_desc *desc)
{
    stint_finetune_scheme scheme;
    sti_text text = {0};
    sti_json j;
    stint_status st = stint_finetune_plan(call->recipe, desc, &scheme);
    if (st == STINT_OK && call->common->json) {
        sti_cli_json_begin(&j, &text);
        json_scheme(&scheme, &j);
        sti_json_int(&j, "parameters", scheme.parameters);
        sti_json_int(&j, "planned_peak_bytes", (int64_t)scheme.peak_bytes);
        json_budgets(&scheme, &j);
        sti_json_end_object(&j);
    } else if (st == STINT_OK) {
        words_scheme(&scheme, &text);
        words_tensors(&scheme, &text);
        words_budgets(&scheme, &text);
    }
    if (st == STINT_OK)
        st = sti_cli_answer(call, &text);
    stint_finetune_scheme_fini(&scheme);
    return st;
}

static stint_status answer(sti_cli_call *call, const stint_finetune_result *r)
{
    sti_text text = {0};
    sti_json j;
    if (!call->common->json) {
        sti_cli_train_words(&r->train, &text);
        words_scheme(&r->scheme, &text);
        return sti_cli_answer(call, &text);
    }
    sti_cli_json_begin(&j, &text);
    sti_cli_train_json(call, &r->train, &j);
    json_scheme(&r->scheme, &j);
    sti_json_float(&j, "step_s", r->step_s);
    sti_json_end_object(&j);
    return sti_cli_answer(call, &text);
}

/* From --what to the recipe and the search. A list, or a key that was set, says by
 * itself what is trained. */
static stint_status choose(sti_cli_call *call, stint_finetune_desc *desc)
{
    static const char *const words[] = {"full", "full", "full", "bias", "last", "lora"};
    const finetune_args *args = call->args;
    const sti_update_values *update = sti_update_section_of(call->recipe);
    const bool list = update->tensors || update->what != STI_UPDATE_FULL;
    const bool limited =
        sti_run_section_of(call->recipe)->memory_bytes > 0 || args->step_time;
    stint_status st = STINT_OK;
    if (list && args->what != AUTO)
        return sti_fail(STINT_E_USAGE,
                        "--what and %s: either says what is trained; give one of the "
                        "two",
                        update->tensors ? "--tensors" : "update.what");
    desc->search = !list && (args->what == SPARSE || (args->what == AUTO && limited));
    if (args->step_time && !desc->search)
        return sti_fail(STINT_E_USAGE,
                        "--step-time: is for a search; leave out %s, or this",
                        update->tensors ? "--tensors"
                        : list          ? "update.what"
                                        : "--what");
    if (args->step_time)
        st = sti_parse_latency(args->step_time, &desc->step_s, &desc->step_share);
    if (st != STINT_OK)
        return sti_fail_context(st, "--step-time");
    if (args->step_time && !(desc->step_s > 0) && !(desc->step_share > 0))
        return sti_fail(STINT_E_USAGE, "--step-time %s: no step is that short",
                        args->step_time);
    return list ? STINT_OK
                : stint_recipe_set(call->recipe, "update.what", words[args->what]);
}

static stint_status choose_gains(const char *word, stint_finetune_desc *desc)
{
    desc->measured = strcmp(word, "measured") == 0;
    if (strcmp(word, "fisher") == 0)
        return STINT_OK;
    if (!desc->measured)
        desc->gains = word;
    return desc->search ? STINT_OK
                        : sti_fail(STINT_E_USAGE, "--gains: is for a search; give "
                                                  "--memory or --step-time, too");
}

static stint_status finetune_run(sti_cli_call *call)
{
    const finetune_args *args = call->args;
    sti_cli_train_view view = {.call = call, .quiet = call->common->quiet};
    stint_finetune_result result = {.step_s = 0};
    stint_finetune_desc desc = {.resume = args->resume,
                                .force = args->force,
                                .progress = sti_cli_train_progress,
                                .planned = sti_cli_train_planned,
                                .user = &view};
    stint_status st = choose(call, &desc);
    if (st == STINT_OK)
        st = choose_gains(args->gains, &desc);
    if (st != STINT_OK)
        return st;
    sti_cli_catch_signals();
    if (args->plan)
        return run_plan(call, &desc);
    st = stint_finetune(call->recipe, &desc, &result);
    if (view.begun)
        sti_progress_clear(&view.bar);
    if (st == STINT_OK)
        st = answer(call, &result);
    stint_finetune_fini(&result);
    return st;
}

static const sti_cli_model_flag flags[] = {
    {.key = "data.path"},
    {.key = "data.window"},
    {.key = "update.tensors"},
    {.key = "update.rank"},
    {.key = "update.alpha"},
    {.key = "update.frozen"},
    {.key = "run.memory"},
    {.key = "train.epochs", .default_text = "3"},
    {.key = "train.steps"},
    {.key = "train.batch",
     .default_text = "32",
     .help = "images a step (of text 8 sequences); auto: fastest"},
    {.key = "train.shards"},
    {.key = "optimizer.lr",
     .default_text = "0.02",
     .help = "learning rate, at first; of text 3e-4"},
    {.key = "train.seed"},
    {.key = "run.threads"},
    {.key = "run.out", .help = "the run's folder; default: runs/<network>-tuned"},
    {.key = NULL}};

const sti_cli_command sti_cmd_finetune = {
    .name = "finetune",
    .summary = "train a model on, all of it or a part, in less memory",
    .operands = "MODEL",
    .example = "stint finetune runs/a --data photos --what bias --out runs/b\n"
               "stint finetune gpt2 --data notes.txt --tensors 'h.8-11.attn.*' --plan",
    .about =
        "Network, sizes, tokeniser and normalisation are MODEL's, a file, a run, an "
        "imported network or a folder in Hugging Face's layout; other classes get a "
        "new classifier. What is frozen has no gradient and saves no activations.",
    .min_operands = 1,
    .max_operands = 1,
    .recipe = true,
    .of_model = stint_finetune_recipe,
    .model_flags = flags,
    STI_CLI_ARGS(finetune_rows, finetune_args),
    .run = finetune_run,
};
