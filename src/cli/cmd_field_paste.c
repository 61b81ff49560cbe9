/* stint field paste: the folder that a pasting without seams is trained on. */
#include <inttypes.h>

#include "base/fail.h"
#include "base/units.h"
#include "cli/cli_field.h"

typedef struct paste_args {
    const char *under, *over, *mask, *out;
    int64_t size, fine;
    sti_cli_common common;
} paste_args;

/* clang-format off */
#define PASTE_ROW(field, kind, standard, words)                                        \
    .type = (kind), .default_text = (standard), .offset = offsetof(paste_args, field), \
    .flag = true, .help = (words)
/* clang-format on */

static const sti_option paste_rows[] = {
    {.name = "under",
     STI_OPTION_NO_BOUND,
     .unit = "PICTURE",
     PASTE_ROW(under, STI_OPTION_PATH, "", "picture that is pasted into")},
    {.name = "over",
     STI_OPTION_NO_BOUND,
     .unit = "PICTURE",
     PASTE_ROW(over, STI_OPTION_PATH, "", "picture that is pasted")},
    {.name = "mask",
     STI_OPTION_NO_BOUND,
     .unit = "PICTURE",
     PASTE_ROW(mask, STI_OPTION_PATH, "", "bright where it is pasted")},
    {.name = "size",
     .min = 0,
     .max = 16384,
     .unit = "PIXELS",
     PASTE_ROW(size, STI_OPTION_INT, "0",
               "a side that all three are resampled to; 0: their own")},
    {.name = "fine",
     .min = 1,
     .max = 8,
     .unit = "N",
     PASTE_ROW(fine, STI_OPTION_INT, "1", "points a pixel in each direction")},
    {.name = "out",
     .letter = 'o',
     STI_OPTION_NO_BOUND,
     .unit = "FOLDER",
     PASTE_ROW(out, STI_OPTION_PATH, "pasted",
               "folder to write: points.npy and values.npy")},
    STI_CLI_COMMON_ROWS(paste_args),
};

static stint_status paste_run(sti_cli_call *call)
{
    const paste_args *args = call->args;
    const stint_field_paste_desc desc = {.under = args->under,
                                         .over = args->over,
                                         .mask = args->mask,
                                         .size = args->size,
                                         .fine = args->fine};
    sti_text text = {0};
    int64_t points = 0;
    sti_json j;
    if (!args->under || !args->over || !args->mask)
        return sti_fail(STINT_E_USAGE, "a pasting is made of three pictures; give "
                                       "--under, --over and --mask");
    const stint_status st = stint_field_paste(&desc, args->out, &points);
    if (st != STINT_OK)
        return st;
    if (!call->common->json) {
        sti_text_printf(&text,
                        "%s points in %s; next: stint train recipes/field-paste.ini "
                        "--data %s\n",
                        sti_count_text(points), args->out, args->out);
        return sti_cli_answer(call, &text);
    }
    sti_cli_json_begin(&j, &text);
    sti_json_int(&j, "points", points);
    sti_json_text(&j, "out", args->out);
    sti_json_end_object(&j);
    return sti_cli_answer(call, &text);
}

const sti_cli_command sti_cmd_field_paste = {
    .name = "field paste",
    .summary = "make the folder that a pasting without seams is trained on",
    .operands = "",
    .example = "stint field paste --under sky.png --over bird.png --mask where.png "
               "--out pasted",
    .about = "Where the mask is bright the field gets the gradient of one picture, "
             "elsewhere the values of the other, as recipes/field-paste.ini has it. "
             "Pictures are taken as grey.",
    STI_CLI_ARGS(paste_rows, paste_args),
    .run = paste_run,
};
