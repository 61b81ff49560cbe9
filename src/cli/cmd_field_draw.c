/* stint field draw: a field as a picture. */
#include <inttypes.h>

#include "base/fail.h"
#include "base/file.h"
#include "cli/cli_field.h"

typedef struct draw_args {
    const char *size, *out;
    int show;
    int64_t threads;
    sti_cli_common common;
} draw_args;

static const sti_option draw_rows[] = {
    {.name = "size",
     .type = STI_OPTION_TEXT,
     STI_OPTION_NO_BOUND,
     .default_text = "256x256",
     .offset = offsetof(draw_args, size),
     .flag = true,
     .unit = "WxH",
     .help = "pixels of the picture"},
    {.name = "show",
     .type = STI_OPTION_CHOICE,
     STI_OPTION_NO_BOUND,
     .default_text = "value",
     .choices = "value|gradient|laplacian|normals",
     .offset = offsetof(draw_args, show),
     .flag = true,
     .unit = "WHAT",
     .help = "values; the length of the gradient; the Laplacian; the direction of the "
             "first output's gradient"},
    {.name = "out",
     .letter = 'o',
     .type = STI_OPTION_PATH,
     STI_OPTION_NO_BOUND,
     .default_text = "field.png",
     .offset = offsetof(draw_args, out),
     .flag = true,
     .unit = "FILE.png",
     .help = "picture to write"},
    STI_CLI_THREADS_ROW(draw_args),
    STI_CLI_COMMON_ROWS(draw_args),
};

static stint_status draw_run(sti_cli_call *call)
{
    const draw_args *args = call->args;
    stint_model_file *model = NULL;
    int64_t width = 0, height = 0;
    sti_text text = {0};
    stint_status st;
    STI_TRY(
        sti_cli_field_open_drawn(call, args->size, args->out, &model, &width, &height));
    sti_cli_catch_signals();
    STI_TRY(stint_field_draw(model, width, height, (stint_field_show)args->show,
                             (int)args->threads, args->out));
    sti_text_printf(&text, call->common->json ? "%s" : "%s\n", args->out);
    st = sti_cli_answer_text(call, "out", &text);
out:
    stint_model_close(model);
    return st;
}

const sti_cli_command sti_cmd_field_draw = {
    .name = "field draw",
    .summary = "draw a field of two coordinates",
    .operands = "MODEL",
    .example = "stint field draw runs/photo --size 1024x1024 --show gradient --out "
               "gradient.png",
    .about = "MODEL is a model.safetensors or a run's folder of the networks siren and "
             "field. A field has no resolution of its own: any size is drawn.",
    .min_operands = 1,
    .max_operands = 1,
    STI_CLI_ARGS(draw_rows, draw_args),
    .run = draw_run,
};
