/* stint field edit: learn an edit from fields and pictures of what they are to become,
 * or use one on a field. */
#include <inttypes.h>
#include <string.h>

#include "base/fail.h"
#include "base/file.h"
#include "base/memory.h"
#include "base/units.h"
#include "cli/cli_field.h"

enum { EDIT_FIELDS = 64 };

typedef struct edit_args {
    const char *fields, *targets, *edit, *size, *out;
    int64_t order, steps, width, depth, seed, threads;
    sti_cli_common common;
} edit_args;

/* clang-format off */
#define EDIT_ROW(field, kind, standard, words)                                        \
    .type = (kind), .default_text = (standard), .offset = offsetof(edit_args, field), \
    .flag = true, .help = (words)
/* clang-format on */

static const sti_option edit_rows[] = {
    {.name = "fields",
     STI_OPTION_NO_BOUND,
     .unit = "MODEL,...",
     EDIT_ROW(fields, STI_OPTION_TEXT, "", "fields to learn from")},
    {.name = "targets",
     STI_OPTION_NO_BOUND,
     .unit = "PICTURE,...",
     EDIT_ROW(targets, STI_OPTION_TEXT, "",
              "what each of them is to become, at the size that the edit is for")},
    {.name = "order",
     .min = 0,
     .max = 1000,
     .unit = "K",
     EDIT_ROW(order, STI_OPTION_INT, "3", "highest order of the derivatives used")},
    {.name = "steps",
     .min = 1,
     .max = 1e9,
     .unit = "N",
     EDIT_ROW(steps, STI_OPTION_INT, "2000", "steps of 2048 points each")},
    {.name = "depth",
     .min = 0,
     .max = 16,
     .unit = "N",
     EDIT_ROW(depth, STI_OPTION_INT, "2", "hidden layers beside the linear map")},
    {.name = "width",
     .min = 1,
     .max = 4096,
     .unit = "N",
     EDIT_ROW(width, STI_OPTION_INT, "64", "numbers in a hidden layer")},
    {.name = "seed",
     .min = 0,
     .max = 1e15,
     .unit = "N",
     EDIT_ROW(seed, STI_OPTION_INT, "1", "of first weights and of points drawn")},
    {.name = "edit",
     STI_OPTION_NO_BOUND,
     .unit = "FILE",
     EDIT_ROW(edit, STI_OPTION_PATH, "", "use this edit on MODEL")},
    {.name = "size",
     STI_OPTION_NO_BOUND,
     .unit = "WxH",
     EDIT_ROW(size, STI_OPTION_TEXT, "256x256", "pixels of the picture")},
    {.name = "out",
     .letter = 'o',
     STI_OPTION_NO_BOUND,
     .unit = "FILE",
     EDIT_ROW(out, STI_OPTION_PATH, "", "the edit, or with MODEL the picture (.png)")},
    STI_CLI_THREADS_ROW(edit_args),
    STI_CLI_COMMON_ROWS(edit_args),
};

/* ---- learning ---- */

/* Parts of a list by commas, in `text`, which is cut up. */
static int split_list(char *text, const char **part)
{
    int count = 0;
    for (char *at = text; at && count <= EDIT_FIELDS; count++) {
        if (count < EDIT_FIELDS)
            part[count] = at;
        if ((at = strchr(at, ',')))
            *at++ = '\0';
    }
    return count;
}

typedef struct edit_lists {
    char *fields, *targets;
    const char *field[EDIT_FIELDS], *target[EDIT_FIELDS];
    stint_model_file *model[EDIT_FIELDS];
    int count;
} edit_lists;

static stint_status open_lists(sti_cli_call *call, const edit_args *args, edit_lists *l)
{
    stint_status st = STINT_OK;
    l->fields = sti_strdup(args->fields);
    l->targets = sti_strdup(args->targets);
    if (!l->fields || !l->targets)
        return STINT_E_MEMORY;
    const int fields = split_list(l->fields, l->field);
    const int targets = split_list(l->targets, l->target);
    if (fields != targets || fields > EDIT_FIELDS)
        return sti_fail(STINT_E_USAGE,
                        "%d fields and %d targets; each field needs its own, and %d is "
                        "the most",
                        fields, targets, EDIT_FIELDS);
    for (; l->count < fields && st == STINT_OK; l->count++) {
        const char *path = sti_cli_model_path(call, l->field[l->count]);
        st = path ? stint_model_open(path, &l->model[l->count]) : STINT_E_MEMORY;
        if (st == STINT_OK)
            st = sti_cli_check_out(path, args->out);
        if (st == STINT_OK)
            st = sti_cli_check_out(l->target[l->count], args->out);
    }
    return st;
}

static void close_lists(edit_lists *l)
{
    for (int i = 0; i < l->count; i++)
        stint_model_close(l->model[i]);
    sti_free(l->fields);
    sti_free(l->targets);
}

static stint_status answer_learnt(sti_cli_call *call, const stint_field_edit_result *r)
{
    const edit_args *args = call->args;
    sti_text text = {0};
    sti_json j;
    if (!call->common->json) {
        sti_text_printf(&text,
                        "%s points, %" PRId64 " features: mean square beside the "
                        "targets %.4g, of the fields as they were %.4g; %s in %s\n",
                        sti_count_text(r->points), r->features, r->loss, r->unedited,
                        args->out, sti_time_text(r->seconds));
        return sti_cli_answer(call, &text);
    }
    sti_cli_json_begin(&j, &text);
    sti_json_int(&j, "points", r->points);
    sti_json_int(&j, "features", r->features);
    sti_json_float(&j, "loss", r->loss);
    sti_json_float(&j, "unedited", r->unedited);
    sti_json_float(&j, "seconds", r->seconds);
    sti_json_text(&j, "out", args->out);
    sti_json_end_object(&j);
    return sti_cli_answer(call, &text);
}

static stint_status learn(sti_cli_call *call)
{
    const edit_args *args = call->args;
    edit_lists l = {.count = 0};
    stint_field_edit_result r = {.points = 0};
    stint_status st;
    if (!args->fields || !args->targets || args->edit)
        return sti_fail(STINT_E_USAGE,
                        "give --fields A,B --targets A.png,B.png to learn an edit, or "
                        "MODEL --edit FILE to use one");
    STI_TRY(open_lists(call, args, &l));
    const stint_field_edit_desc desc = {.field =
                                            (const stint_model_file *const *)l.model,
                                        .target = l.target,
                                        .count = l.count,
                                        .order = (int)args->order,
                                        .depth = args->depth,
                                        .width = args->width,
                                        .steps = args->steps,
                                        .seed = args->seed,
                                        .threads = (int)args->threads};
    sti_cli_catch_signals();
    STI_TRY(stint_field_edit_train(&desc, args->out, &r));
    st = answer_learnt(call, &r);
out:
    close_lists(&l);
    return st;
}

/* ---- using ---- */

static stint_status use(sti_cli_call *call)
{
    const edit_args *args = call->args;
    stint_model_file *model = NULL;
    int64_t width = 0, height = 0;
    sti_text text = {0};
    stint_status st;
    if (!args->edit || args->fields || args->targets)
        return sti_fail(STINT_E_USAGE,
                        "MODEL is edited by --edit FILE; --fields and --targets are "
                        "what a new one is learnt from, without MODEL");
    STI_TRY(sti_cli_check_out(args->edit, args->out));
    STI_TRY(
        sti_cli_field_open_drawn(call, args->size, args->out, &model, &width, &height));
    sti_cli_catch_signals();
    STI_TRY(stint_field_edit_draw(model, args->edit, width, height, (int)args->threads,
                                  args->out));
    sti_text_printf(&text, call->common->json ? "%s" : "%s\n", args->out);
    st = sti_cli_answer_text(call, "out", &text);
out:
    stint_model_close(model);
    return st;
}

static stint_status edit_run(sti_cli_call *call)
{
    const edit_args *args = call->args;
    if (!args->out)
        return sti_fail(STINT_E_USAGE, "no file to write; give --out FILE");
    return call->operand_count > 0 ? use(call) : learn(call);
}

const sti_cli_command sti_cmd_field_edit = {
    .name = "field edit",
    .summary = "learn an edit of fields from edited pictures, or use one",
    .operands = "[MODEL]",
    .example = "stint field edit runs/photo --edit blur.safetensors --size 256x256 "
               "--out blurred.png",
    .about =
        "Without MODEL an edit is learnt: a small network from a field's values and "
        "derivatives at a point to the value that the target has there. With MODEL "
        "it is used, on fields that it was not learnt from as well.",
    .min_operands = 0,
    .max_operands = 1,
    STI_CLI_ARGS(edit_rows, edit_args),
    .run = edit_run,
};
