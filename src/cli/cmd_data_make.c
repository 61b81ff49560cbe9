/* stint data glyphs, stint data get: two ways to come by images. */
#include "base/progress.h"
#include "base/team.h"
#include "base/units.h"
#include "cli/cli.h"
#include "data/data.h"

/* ---- data glyphs ---- */

typedef struct glyphs_args {
    const char *out, *fonts;
    int64_t train, test, size, min_faces, seed, threads;
    sti_cli_common common;
} glyphs_args;

static const sti_option glyphs_rows[] = {
    {.name = "out",
     .letter = 'o',
     .type = STI_OPTION_PATH,
     .default_text = "out/glyphs",
     .offset = offsetof(glyphs_args, out),
     .flag = true,
     .unit = "DIR",
     .help = "folder that gets train.tar and test.tar"},
    {.name = "train",
     .type = STI_OPTION_INT,
     .default_text = "20160",
     .min = 36,
     .max = 36000000,
     .offset = offsetof(glyphs_args, train),
     .flag = true,
     .unit = "N",
     .help = "training images, rounded up to a multiple of 36"},
    {.name = "test",
     .type = STI_OPTION_INT,
     .default_text = "3600",
     .min = 36,
     .max = 36000000,
     .offset = offsetof(glyphs_args, test),
     .flag = true,
     .unit = "N",
     .help = "test images"},
    {.name = "size",
     .type = STI_OPTION_INT,
     .default_text = "32",
     .min = 8,
     .max = 256,
     .offset = offsetof(glyphs_args, size),
     .flag = true,
     .unit = "PIXELS",
     .help = "pixels a side"},
    {.name = "fonts",
     .type = STI_OPTION_TEXT,
     .default_text = "",
     .offset = offsetof(glyphs_args, fonts),
     .flag = true,
     .unit = "DIR[:DIR...]",
     .help = "font folders instead of the system's"},
    {.name = "min-faces",
     .type = STI_OPTION_INT,
     .default_text = "100",
     .min = 2,
     .max = 100000,
     .offset = offsetof(glyphs_args, min_faces),
     .flag = true,
     .unit = "N",
     .help = "fewest font faces to be content with"},
    {.name = "seed",
     .type = STI_OPTION_INT,
     .default_text = "1",
     .min = 0,
     .max = 1e15,
     .offset = offsetof(glyphs_args, seed),
     .flag = true,
     .unit = "N",
     .help = "of the choice of fonts and their jitter"},
    STI_CLI_THREADS_ROW(glyphs_args),
    STI_CLI_COMMON_ROWS(glyphs_args),
};

static stint_status glyphs_answer(sti_cli_call *call, const stint_data_glyphs_result *r)
{
    const glyphs_args *args = call->args;
    sti_text text = {0};
    if (!call->common->json) {
        sti_text_printf(&text, "%s training images from %d faces of %d families\n",
                        sti_count_text(r->train_count), r->train_faces,
                        r->train_families);
        sti_text_printf(&text, "%s test images from %d faces of %d other families\n",
                        sti_count_text(r->test_count), r->test_faces, r->test_families);
        sti_text_printf(&text, "%s/train.tar, %s/test.tar\n", args->out, args->out);
        return sti_cli_print(&text);
    }
    sti_json j;
    sti_cli_json_begin(&j, &text);
    sti_json_text(&j, "out", args->out);
    sti_json_int(&j, "train_count", r->train_count);
    sti_json_int(&j, "test_count", r->test_count);
    sti_json_int(&j, "train_faces", r->train_faces);
    sti_json_int(&j, "test_faces", r->test_faces);
    sti_json_int(&j, "train_families", r->train_families);
    sti_json_int(&j, "test_families", r->test_families);
    sti_json_int(&j, "rejected_faces", r->rejected_faces);
    sti_json_end_object(&j);
    return sti_cli_answer(call, &text);
}

static stint_status glyphs_run(sti_cli_call *call)
{
    const glyphs_args *args = call->args;
    int threads = 1;
    stint_status status = sti_threads_choose((int)args->threads, &threads, NULL);
    if (status != STINT_OK)
        return status;
    sti_progress bar;
    sti_progress_begin(&bar, "render", "images", 0, call->common->quiet);
    stint_data_glyphs_result result = {0};
    status =
        stint_data_glyphs(&(stint_data_glyphs_desc){.folder = args->out,
                                                    .fonts = args->fonts,
                                                    .train_count = args->train,
                                                    .test_count = args->test,
                                                    .size = args->size,
                                                    .min_faces = (int)args->min_faces,
                                                    .seed = (uint64_t)args->seed,
                                                    .threads = threads,
                                                    .progress = sti_cli_data_progress,
                                                    .user = &bar},
                          &result);
    sti_progress_clear(&bar);
    return status == STINT_OK ? glyphs_answer(call, &result) : status;
}

const sti_cli_command sti_cmd_data_glyphs = {
    .name = "data glyphs",
    .summary = "render letters and digits from the fonts installed here",
    .operands = "",
    .example = "stint data glyphs --out out/glyphs",
    .about =
        "Images of 36 classes, grey; whole font families are kept for the test set, "
        "so that its letters are of shapes never seen.",
    .min_operands = 0,
    .max_operands = 0,
    STI_CLI_ARGS(glyphs_rows, glyphs_args),
    .run = glyphs_run,
};

/* ---- data get ---- */

typedef struct get_args {
    const char *out, *mirror;
    sti_cli_common common;
} get_args;

static const sti_option get_rows[] = {
    {.name = "out",
     .letter = 'o',
     .type = STI_OPTION_PATH,
     .default_text = "",
     .offset = offsetof(get_args, out),
     .flag = true,
     .unit = "DIR",
     .help = "folder that gets the files; default: out/NAME"},
    {.name = "mirror",
     .type = STI_OPTION_TEXT,
     .default_text = "",
     .offset = offsetof(get_args, mirror),
     .flag = true,
     .unit = "URL",
     .help = "where to download from instead of the publisher's address"},
    STI_CLI_COMMON_ROWS(get_args),
};

static stint_status get_run(sti_cli_call *call)
{
    const get_args *args = call->args;
    const char *name = call->operands[0];
    const char *out =
        args->out ? args->out : sti_arena_printf(call->arena, "out/%s", name);
    if (!out)
        return STINT_E_MEMORY;
    sti_progress bar;
    sti_progress_begin(&bar, "download", "B", 0, call->common->quiet);
    stint_status status =
        stint_data_get(&(stint_data_get_desc){.name = name,
                                              .folder = out,
                                              .mirror = args->mirror,
                                              .progress = sti_cli_data_progress,
                                              .user = &bar});
    sti_progress_clear(&bar);
    if (status != STINT_OK)
        return status;
    sti_text text = {0};
    if (!call->common->json) {
        sti_text_printf(&text, "%s\n", out);
        return sti_cli_print(&text);
    }
    sti_json j;
    sti_cli_json_begin(&j, &text);
    sti_json_text(&j, "out", out);
    sti_json_end_object(&j);
    return sti_cli_answer(call, &text);
}

const sti_cli_command sti_cmd_data_get = {
    .name = "data get",
    .summary = "download a public image set",
    .operands = "cifar10|mnist|fashion-mnist",
    .example = "stint data get cifar10 --out ~/cifar10",
    .about = "By HTTPS; every file's SHA-256 is checked, and a file that is there "
             "already is kept.",
    .min_operands = 1,
    .max_operands = 1,
    STI_CLI_ARGS(get_rows, get_args),
    .run = get_run,
};
