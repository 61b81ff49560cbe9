/* stint diff: where two models or checkpoints differ. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/fail.h"
#include "base/shown.h"
#include "base/units.h"
#include "cli/cli.h"

typedef struct diff_args {
    bool all;
    sti_cli_common common;
} diff_args;

static const sti_option diff_rows[] = {
    {.name = "all",
     .type = STI_OPTION_BOOL,
     .default_text = "false",
     .offset = offsetof(diff_args, all),
     .flag = true,
     .help = "a line for every tensor, also for equal ones"},
    STI_CLI_COMMON_ROWS(diff_args),
};

static void bin_name(int bin, char name[32])
{
    if (bin == STINT_DIFF_BINS - 1)
        snprintf(name, 32, "NaN");
    else if (bin < 2)
        snprintf(name, 32, "%d", bin);
    else if (bin == STINT_DIFF_BINS - 2)
        snprintf(name, 32, "2^%d and more", bin - 1);
    else
        snprintf(name, 32, "%" PRId64 "-%" PRId64, INT64_C(1) << (bin - 1),
                 (INT64_C(1) << bin) - 1);
}

static void add_histogram(const stint_diff_result *r, sti_text *out)
{
    int64_t total[STINT_DIFF_BINS] = {0};
    for (int64_t t = 0; t < r->tensors; t++)
        for (int i = 0; i < STINT_DIFF_BINS; i++)
            total[i] += r->tensor[t].histogram[i];
    sti_text_add(out, "distance in units in the last place\n");
    for (int i = 0; i < STINT_DIFF_BINS; i++) {
        char name[32];
        bin_name(i, name);
        if (total[i])
            sti_text_printf(out, "  %22s  %s element%s\n", name,
                            sti_count_text(total[i]), sti_s(total[i]));
    }
}

static void add_tensor(const stint_diff_tensor *t, sti_text *out)
{
    if (t->count < 0)
        sti_text_printf(out, "%-40s other shape or type\n", sti_shown(t->name));
    else if (t->different == 0)
        sti_text_printf(out, "%-40s equal\n", sti_shown(t->name));
    else
        sti_text_printf(out,
                        "%-40s %" PRId64 " of %" PRId64 " differ, first at %" PRId64
                        ": %.9g, %.9g\n",
                        sti_shown(t->name), t->different, t->count, t->first, t->a,
                        t->b);
}

static void add_words(const diff_args *args, const stint_diff_result *r, sti_text *out)
{
    int64_t shown = 0;
    for (int64_t i = 0; i < r->tensors; i++) {
        const stint_diff_tensor *t = &r->tensor[i];
        const bool differs = t->count < 0 || t->different > 0;
        if (args->all || (differs && shown < 10))
            add_tensor(t, out);
        shown += differs;
    }
    if (!args->all && shown > 10)
        sti_text_printf(out, "... and %" PRId64 " more; --all shows them\n",
                        shown - 10);
    if (r->only_a + r->only_b > 0)
        sti_text_printf(out,
                        "only in the first: %" PRId64 " tensor%s, only in the second: "
                        "%" PRId64 ", such as %s\n",
                        r->only_a, sti_s(r->only_a), r->only_b,
                        sti_shown(r->first_only));
    if (r->different > 0)
        add_histogram(r, out);
    sti_text_printf(out, "%" PRId64 " of %" PRId64 " tensor%s differ\n", r->different,
                    r->tensors, sti_s(r->tensors));
}

static void add_json(const stint_diff_result *r, sti_text *out)
{
    sti_json j;
    sti_cli_json_begin(&j, out);
    sti_json_int(&j, "tensors", r->tensors);
    sti_json_int(&j, "different", r->different);
    sti_json_int(&j, "only_a", r->only_a);
    sti_json_int(&j, "only_b", r->only_b);
    sti_json_begin_array(&j, "differences");
    for (int64_t i = 0; i < r->tensors; i++) {
        const stint_diff_tensor *t = &r->tensor[i];
        if (t->count >= 0 && t->different == 0)
            continue;
        sti_json_begin_object(&j, NULL);
        sti_json_text(&j, "name", t->name);
        sti_json_int(&j, "elements", t->count);
        sti_json_int(&j, "different", t->different);
        sti_json_int(&j, "first", t->first);
        sti_json_float(&j, "a", t->a);
        sti_json_float(&j, "b", t->b);
        sti_json_begin_array(&j, "ulp_histogram");
        for (int b = 0; b < STINT_DIFF_BINS; b++)
            sti_json_int(&j, NULL, t->histogram[b]);
        sti_json_end_array(&j);
        sti_json_end_object(&j);
    }
    sti_json_end_array(&j);
    sti_json_end_object(&j);
}

static stint_status answer(sti_cli_call *call, const stint_diff_result *r)
{
    sti_text text = {0};
    if (call->common->json)
        add_json(r, &text);
    else
        add_words(call->args, r, &text);
    return sti_cli_answer(call, &text);
}

static stint_status diff_run(sti_cli_call *call)
{
    stint_diff_result result;
    const char *a = sti_cli_model_path(call, call->operands[0]);
    const char *b = sti_cli_model_path(call, call->operands[1]);
    if (!a || !b)
        return STINT_E_MEMORY;
    stint_status status = stint_diff_files(a, b, &result);
    if (status != STINT_OK)
        return status;
    const bool same = result.different + result.only_a + result.only_b == 0;
    status = answer(call, &result);
    stint_diff_fini(&result);
    return status == STINT_OK && !same ? sti_fail(STINT_E_FAILED, "the files differ")
                                       : status;
}

const sti_cli_command sti_cmd_diff = {
    .name = "diff",
    .summary = "say where two models differ, to the last bit",
    .operands = "A B",
    .example = "stint diff runs/a runs/b",
    .about = "A and B are model.safetensors files, checkpoints, or folders of runs. "
             "Tensors are compared by name; the exit status is 0 if all bits are the "
             "same and 1 if not.",
    .min_operands = 2,
    .max_operands = 2,
    STI_CLI_ARGS(diff_rows, diff_args),
    .run = diff_run,
};
