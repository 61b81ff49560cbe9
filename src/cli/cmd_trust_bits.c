/* stint trust bits: are the bits the same, however a recipe is run? */
#include <inttypes.h>
#include <stdio.h>

#include "base/fail.h"
#include "base/shown.h"
#include "base/units.h"
#include "cli/cli_trust.h"
#include "train/recipe_view.h"

enum { STEPS_DEFAULT = 20 };

typedef struct bits_args {
    const char *with;
    bool ref;
    int64_t chance;
    sti_cli_common common;
} bits_args;

static const sti_option bits_rows[] = {
    {.name = "with",
     .type = STI_OPTION_LIST,
     STI_OPTION_NO_BOUND,
     .default_text = "",
     .offset = offsetof(bits_args, with),
     .flag = true,
     .unit = "KEY=VALUE[,...]",
     .help = "one more run for each of these recipe settings: do they change a bit, "
             "and from where on?"},
    {.name = "ref",
     .type = STI_OPTION_BOOL,
     .default_text = "false",
     .offset = offsetof(bits_args, ref),
     .flag = true,
     .help = "also run plain scalar code: hours for large networks"},
    {.name = "chance",
     .type = STI_OPTION_INT,
     .min = 1,
     .max = 1e15,
     .default_text = "1",
     .offset = offsetof(bits_args, chance),
     .flag = true,
     .unit = "SEED",
     .help = "decides where a run is killed and when workers sleep"},
    STI_CLI_COMMON_ROWS(bits_args),
};

static void add_words(const stint_bits_result *r, const char *out, sti_text *text)
{
    sti_text_printf(text, "%-28s %-20s %s\n", "run", "first difference",
                    "SHA-256 of weights and optimiser");
    for (int64_t i = 0; i < r->runs; i++) {
        const stint_bits_run *run = &r->run[i];
        char where[32] = "none";
        if (run->first_step >= 0)
            snprintf(where, sizeof where, "step %" PRId64, run->first_step);
        sti_text_printf(text, "%-28s %-20s %s\n", run->name, where, run->sha256);
        if (run->first_step >= 0)
            sti_text_printf(text, "%-28s %s\n%-28s stint diff %s/%s %s/%s\n", "",
                            *run->first_tensor ? sti_shown(run->first_tensor)
                                               : "(other tensors)",
                            "", out, r->run[0].folder, out, run->folder);
    }
    sti_text_printf(text,
                    "%" PRId64 " value%s in %" PRId64 " run%s of %" PRId64 " step%s\n",
                    r->distinct, sti_s(r->distinct), r->runs, sti_s(r->runs), r->steps,
                    sti_s(r->steps));
}

static void add_json(const stint_bits_result *r, const char *out, sti_text *text)
{
    sti_json j;
    sti_cli_json_begin(&j, text);
    sti_json_bool(&j, "same", r->same);
    sti_json_int(&j, "distinct", r->distinct);
    sti_json_int(&j, "steps", r->steps);
    sti_json_text(&j, "out", out);
    sti_json_begin_array(&j, "runs");
    for (int64_t i = 0; i < r->runs; i++) {
        const stint_bits_run *run = &r->run[i];
        sti_json_begin_object(&j, NULL);
        sti_json_text(&j, "name", run->name);
        sti_json_text(&j, "folder", run->folder);
        sti_json_text(&j, "sha256", run->sha256);
        sti_json_bool(&j, "same", run->same);
        if (run->first_step >= 0) {
            sti_json_int(&j, "first_step", run->first_step);
            sti_json_text(&j, "first_tensor", run->first_tensor);
        }
        sti_json_end_object(&j);
    }
    sti_json_end_array(&j);
    sti_json_end_object(&j);
}

static stint_status answer(sti_cli_call *call, const stint_bits_result *r,
                           const char *out)
{
    sti_text text = {0};
    if (call->common->json)
        add_json(r, out, &text);
    else
        add_words(r, out, &text);
    return sti_cli_answer(call, &text);
}

static stint_status bits_run(sti_cli_call *call)
{
    const bits_args *args = call->args;
    const sti_recipe_view v = sti_recipe_view_of(call->recipe);
    sti_cli_trust_view view = {.title = "bits", .quiet = call->common->quiet};
    stint_bits_result result = {0};
    const char **with;
    stint_bits_desc desc = {.out = sti_cli_trust_out(call, "-bits"),
                            .steps =
                                v.train->steps > 0 ? v.train->steps : STEPS_DEFAULT,
                            .hash_every = v.run->hash_every > 0 ? v.run->hash_every : 1,
                            .seed = (uint64_t)args->chance,
                            .reference_isa = args->ref,
                            .progress = sti_cli_trust_progress,
                            .user = &view};
    stint_status st = desc.out ? sti_cli_program(call, &desc.program) : STINT_E_MEMORY;
    if (st == STINT_OK)
        st = sti_option_split(call->arena, args->with, &with, &desc.withs);
    if (st != STINT_OK)
        return st;
    desc.with = with;
    sti_cli_catch_signals();
    st = stint_trust_bits(call->recipe, &desc, &result);
    if (view.begun)
        sti_progress_clear(&view.bar);
    if (st == STINT_OK)
        st = answer(call, &result, desc.out);
    const bool same = result.same;
    stint_bits_fini(&result);
    return st == STINT_OK && !same ? sti_fail(STINT_E_FAILED, "the bits differ") : st;
}

const sti_cli_command sti_cmd_trust_bits = {
    .name = "trust bits",
    .summary = "prove that a recipe gives the same bits, however it is run",
    .operands = "RECIPE",
    .example = "stint trust bits recipes/cifar10-resnet20.ini --data ~/cifar10",
    .about =
        "Trains the recipe for --steps steps (20 if it says none) on 1, 2 and 3 "
        "threads, with shards in sequence and side by side, on each instruction set, "
        "in a generous and in the smallest memory budget without loss, with workers "
        "that sleep at random, killed and resumed, and on 2 and 3 processes; a table "
        "of embeddings in five budgets, by each policy and way of I/O, too; "
        "run.hash_every says how often weights and optimiser state are hashed. Exit "
        "status 0: one value; 1: the table says which step and tensor differ first. "
        "--threads and --memory are the matrix's own business.",
    .min_operands = 1,
    .max_operands = 1,
    .recipe = true,
    STI_CLI_ARGS(bits_rows, bits_args),
    .run = bits_run,
};
