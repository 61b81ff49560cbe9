/* stint trust noise: how much of a result is luck, and where from? */
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "base/fail.h"
#include "base/shown.h"
#include "base/units.h"
#include "cli/cli_trust.h"
#include "trust/noise_page.h"

enum { IMPL_ORDER, IMPL_ULP };

typedef struct noise_args {
    int64_t runs, jobs;
    const char *vary, *groups;
    int impl;
    sti_cli_common common;
} noise_args;

static const sti_option noise_rows[] = {
    {.name = "runs",
     .type = STI_OPTION_INT,
     .min = 2,
     .max = 10000,
     .default_text = "10",
     .offset = offsetof(noise_args, runs),
     .flag = true,
     .unit = "K",
     .help = "runs of each arm"},
    {.name = "vary",
     .type = STI_OPTION_LIST,
     STI_OPTION_NO_BOUND,
     .default_text = "",
     .offset = offsetof(noise_args, vary),
     .flag = true,
     .unit = "WHAT[,WHAT...]",
     .help = "one arm in which these vary: init, order, augment, dropout, impl; "
             "without it ALGO+IMPL, ALGO, IMPL and CONTROL"},
    {.name = "impl",
     .type = STI_OPTION_CHOICE,
     STI_OPTION_NO_BOUND,
     .default_text = "order",
     .choices = "order|ulp",
     .offset = offsetof(noise_args, impl),
     .flag = true,
     .unit = "KIND",
     .help = "implementation noise: shards summed in shuffled order, or the last bit "
             "of one initial weight flipped"},
    {.name = "jobs",
     .type = STI_OPTION_INT,
     .min = 0,
     .max = 1024,
     .default_text = "0",
     .offset = offsetof(noise_args, jobs),
     .flag = true,
     .unit = "N",
     .help = "runs at once; 0: as many as --threads and --memory have room for"},
    {.name = "groups",
     .type = STI_OPTION_PATH,
     STI_OPTION_NO_BOUND,
     .default_text = "",
     .offset = offsetof(noise_args, groups),
     .flag = true,
     .unit = "FILE",
     .help = "a name a line, one for each test image in the order of the data"},
    STI_CLI_COMMON_ROWS(noise_args),
};

/* ---- words ---- */

static double widest(const stint_noise_part *part, int64_t count)
{
    double most = 0;
    for (int64_t i = 0; i < count; i++)
        most = fmax(most, part[i].accuracy_spread); /* fmax passes NaN over */
    return most;
}

static void add_arm(const stint_noise_arm *a, int32_t classes, sti_text *out)
{
    sti_text_printf(out,
                    "%-12s %4" PRId64 "  %7.3f %%  %6.3f %%  %6.3f %%  %9.5g  %9.5g  "
                    "%6.2f  ",
                    a->name, a->runs, 100 * a->accuracy_mean, 100 * a->accuracy_stdev,
                    100 * a->churn, a->distance, a->distance_normalised,
                    widest(a->class_part, classes));
    if (a->onset_step < 0)
        sti_text_add(out, "never\n");
    else
        sti_text_printf(out, "step %" PRId64 ", %s\n", a->onset_step,
                        sti_shown(a->onset_tensor));
}

static void add_parts(const stint_noise_result *r, bool groups, sti_text *out)
{
    const int64_t count = groups ? r->groups : r->classes;
    sti_text_printf(out, "\n%-20s %8s", groups ? "group" : "class", "inputs");
    for (int a = 0; a < r->arms; a++)
        sti_text_printf(out, " %12s", r->arm[a].name);
    sti_text_add(out, "   (deviation of accuracy over that of all)\n");
    for (int64_t i = 0; i < count; i++) {
        const stint_noise_part *first =
            groups ? &r->arm[0].group_part[i] : &r->arm[0].class_part[i];
        sti_text_printf(out, "%-20s %8" PRId64, sti_shown(first->name), first->count);
        for (int a = 0; a < r->arms; a++) {
            const stint_noise_part *part =
                groups ? &r->arm[a].group_part[i] : &r->arm[a].class_part[i];
            if (isnan(part->accuracy_spread))
                sti_text_printf(out, " %12s", "none");
            else
                sti_text_printf(out, " %12.2f", part->accuracy_spread);
        }
        sti_text_add(out, "\n");
    }
}

static void add_words(const stint_noise_result *r, const char *out, sti_text *text)
{
    sti_text_printf(text, "%-12s %4s  %9s  %8s  %8s  %9s  %9s  %6s  %s\n", "varies",
                    "runs", "accuracy", "stdev", "churn", "distance", "unit len",
                    "class", "first difference");
    for (int a = 0; a < r->arms; a++)
        add_arm(&r->arm[a], r->classes, text);
    add_parts(r, false, text);
    if (r->groups > 0)
        add_parts(r, true, text);
    sti_text_printf(text,
                    "\n%" PRId64 " run%s made, %" PRId64
                    " there before\npage %s/noise.html\n",
                    r->made, sti_s(r->made), r->kept, out);
}

/* ---- JSON ---- */

static void json_parts(sti_json *j, const char *key, const stint_noise_part *part,
                       int64_t count)
{
    sti_json_begin_array(j, key);
    for (int64_t i = 0; i < count; i++) {
        sti_json_begin_object(j, NULL);
        sti_json_text(j, "name", part[i].name);
        sti_json_int(j, "inputs", part[i].count);
        sti_json_float(j, "accuracy", part[i].accuracy_mean);
        sti_json_float(j, "accuracy_stdev", part[i].accuracy_stdev);
        sti_json_float(j, "fpr_stdev", part[i].fpr_stdev);
        sti_json_float(j, "fnr_stdev", part[i].fnr_stdev);
        sti_json_float(j, "accuracy_spread", part[i].accuracy_spread);
        sti_json_float(j, "fpr_spread", part[i].fpr_spread);
        sti_json_float(j, "fnr_spread", part[i].fnr_spread);
        sti_json_end_object(j);
    }
    sti_json_end_array(j);
}

static void json_arm(sti_json *j, const stint_noise_arm *a, const stint_noise_result *r)
{
    sti_json_begin_object(j, NULL);
    sti_json_text(j, "varies", a->name);
    sti_json_int(j, "runs", a->runs);
    sti_json_float(j, "accuracy", a->accuracy_mean);
    sti_json_float(j, "accuracy_stdev", a->accuracy_stdev);
    sti_json_float(j, "fpr_stdev", a->fpr_stdev);
    sti_json_float(j, "fnr_stdev", a->fnr_stdev);
    sti_json_float(j, "churn", a->churn);
    sti_json_float(j, "churn_least", a->churn_least);
    sti_json_float(j, "distance", a->distance);
    sti_json_float(j, "distance_normalised", a->distance_normalised);
    sti_json_int(j, "onset_step", a->onset_step);
    sti_json_text(j, "onset_tensor", a->onset_tensor);
    sti_json_begin_array(j, "accuracies");
    for (int64_t i = 0; i < a->runs; i++)
        sti_json_float(j, NULL, a->accuracy[i]);
    sti_json_end_array(j);
    json_parts(j, "per_class", a->class_part, r->classes);
    if (r->groups > 0)
        json_parts(j, "per_group", a->group_part, r->groups);
    sti_json_end_object(j);
}

static void add_json(const stint_noise_result *r, const char *out, sti_text *text)
{
    sti_json j;
    sti_cli_json_begin(&j, text);
    sti_json_int(&j, "inputs", r->inputs);
    sti_json_int(&j, "made", r->made);
    sti_json_int(&j, "kept", r->kept);
    sti_json_bool(&j, "control_zero", r->control_zero);
    sti_json_text(&j, "out", out);
    sti_json_begin_array(&j, "arms");
    for (int a = 0; a < r->arms; a++)
        json_arm(&j, &r->arm[a], r);
    sti_json_end_array(&j);
    sti_json_end_object(&j);
}

/* ---- the call ---- */

static stint_status answer(sti_cli_call *call, const stint_noise_result *r,
                           const char *out)
{
    sti_text text = {0};
    if (call->common->json)
        add_json(r, out, &text);
    else
        add_words(r, out, &text);
    return sti_cli_answer(call, &text);
}

static stint_status work(sti_cli_call *call, stint_noise_desc *desc,
                         sti_cli_trust_view *view)
{
    stint_noise_result result;
    sti_cli_catch_signals();
    stint_status st = stint_trust_noise(call->recipe, desc, &result);
    if (view->begun)
        sti_progress_clear(&view->bar);
    if (st != STINT_OK)
        return st;
    char *title = sti_arena_printf(call->arena, "%s, %" PRId64 " runs of each kind",
                                   call->operands[0], desc->runs);
    st = title ? sti_noise_page(&result, title, desc->out) : STINT_E_MEMORY;
    if (st == STINT_OK)
        st = answer(call, &result, desc->out);
    const bool zero = result.control_zero;
    stint_noise_fini(&result);
    return st == STINT_OK && !zero
               ? sti_fail(STINT_E_FAILED, "CONTROL is not zero: runs that should be "
                                          "the same are not")
               : st;
}

static stint_status noise_run(sti_cli_call *call)
{
    const noise_args *args = call->args;
    sti_cli_trust_view view = {.title = "noise", .quiet = call->common->quiet};
    stint_noise_desc desc = {.out = sti_cli_trust_out(call, "-noise"),
                             .runs = args->runs,
                             .vary = args->vary,
                             .ulp = args->impl == IMPL_ULP,
                             .jobs = args->jobs,
                             .progress = sti_cli_trust_progress,
                             .user = &view};
    void *held = NULL;
    stint_status st = desc.out ? sti_cli_program(call, &desc.program) : STINT_E_MEMORY;
    if (st == STINT_OK && args->groups)
        st = sti_cli_read_groups(call, args->groups, &held, &desc.group,
                                 &desc.group_count);
    if (st == STINT_OK)
        st = work(call, &desc, &view);
    sti_free(held);
    return st;
}

const sti_cli_command sti_cmd_trust_noise = {
    .name = "trust noise",
    .summary = "measure how much of a result is luck, and where it comes from",
    .operands = "RECIPE",
    .example = "stint trust noise recipes/cifar10-smallcnn.ini --runs 10 --steps 400",
    .about =
        "Trains the recipe K times for each arm, the seeds of one kind of chance going "
        "up by one from run to run: ALGO varies weights, order, augmentation and "
        "dropout; IMPL the rounding of sums; CONTROL nothing, and must come out as "
        "exactly 0 (exit status 1 if not). Leaves all runs, noise.svg and noise.html; "
        "finished runs are not made again, others go on. --memory is for all together.",
    .min_operands = 1,
    .max_operands = 1,
    .recipe = true,
    STI_CLI_ARGS(noise_rows, noise_args),
    .run = noise_run,
};
