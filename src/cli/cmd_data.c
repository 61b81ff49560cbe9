/* stint data info, stint data check: what data there is, and whether it is sound. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "base/fail.h"
#include "base/file.h"
#include "base/progress.h"
#include "base/shown.h"
#include "base/team.h"
#include "base/units.h"
#include "cli/cli.h"
#include "cli/cli_matrix_info.h"
#include "cli/cli_table_info.h"
#include "data/corpus.h"
#include "data/data.h"

#define FORMATS "auto|folder|tar|idx|cifar|text|csv|libsvm|arff|mtx"
static const char *const format_names[] = {"auto", "folder", "tar",    "idx",  "cifar",
                                           "text", "csv",    "libsvm", "arff", "mtx"};
enum { FORMAT_LIBSVM = 7, FORMAT_ARFF, FORMAT_MATRIX };

/* Options of `data info` and `data check`. */
typedef struct data_args {
    int format;
    int64_t size, channels, threads;
    bool nested;
    sti_cli_common common;
} data_args;

static const sti_option data_rows[] = {
    {.name = "format",
     .type = STI_OPTION_CHOICE,
     .default_text = "auto",
     .choices = FORMATS,
     .offset = offsetof(data_args, format),
     .flag = true,
     .unit = "KIND",
     .help = "how the data is stored"},
    {.name = "size",
     .type = STI_OPTION_INT,
     .default_text = "0",
     .min = 0,
     .max = 4096,
     .offset = offsetof(data_args, size),
     .flag = true,
     .unit = "PIXELS",
     .help = "as data.size of a recipe; 0: all images must be of one size"},
    {.name = "channels",
     .type = STI_OPTION_INT,
     .default_text = "0",
     .min = 0,
     .max = 3,
     .offset = offsetof(data_args, channels),
     .flag = true,
     .unit = "N",
     .help = "1 for grey, 3 for colour; 0: as the first image"},
    {.name = "nested",
     .type = STI_OPTION_BOOL,
     .default_text = "false",
     .offset = offsetof(data_args, nested),
     .flag = true,
     .help = "as data.nested of a recipe: folders within a class belong to it"},
    STI_CLI_THREADS_ROW(data_args),
    STI_CLI_COMMON_ROWS(data_args),
};

/* ---- data info ---- */

/* Where a split is not where its name says: "  (PATH/val)". */
static void add_from(const char *name, const stint_data_info *info, sti_text *out)
{
    const size_t length = strlen(name);
    const char *last = sti_path_name(info->from);
    if (strncmp(last, name, length) != 0 && strcmp(info->from, info->path) != 0)
        sti_text_printf(out, ", from %s", sti_shown(last));
}

/* A split that is there, and whether its images are of more than one size. */
typedef struct info_split {
    stint_data *data; /* NULL: it is not */
    const stint_data_info *info;
    bool mixed;
} info_split;

static void add_split_words(const char *name, const info_split *split, sti_text *out)
{
    const stint_data_info *info = split->info;
    sti_text_printf(out, "%-6s %s image%s of ", name, sti_count_text(info->count),
                    sti_s(info->count));
    if (split->mixed)
        sti_text_add(out, "mixed sizes");
    else
        sti_text_printf(out, "%" PRId64 " x %" PRId64, info->width, info->height);
    sti_text_printf(out, ", %s, %d class%s", info->channels == 1 ? "grey" : "colour",
                    info->classes, info->classes == 1 ? "" : "es");
    add_from(name, info, out);
    sti_text_add(out, "\n");
}

static void add_split_json(sti_json *j, const char *name, const info_split *split)
{
    const stint_data_info *info = split->info;
    sti_json_begin_object(j, name);
    sti_json_int(j, "count", info->count);
    sti_json_int(j, "height", info->height);
    sti_json_int(j, "width", info->width);
    sti_json_bool(j, "mixed_sizes", split->mixed);
    sti_json_int(j, "channels", info->channels);
    sti_json_begin_array(j, "class_names");
    for (int32_t c = 0; c < info->classes; c++)
        sti_json_text(j, NULL, info->class_names[c]);
    sti_json_end_array(j);
    sti_json_end_object(j);
}

/* Are not all images of both splits of one size? */
static bool has_many_sizes(const info_split split[2])
{
    const stint_data_info *a = split[0].info, *b = split[1].info;
    return split[0].mixed || split[1].mixed ||
           (a && b && (a->width != b->width || a->height != b->height));
}

static void add_info(bool json, const info_split split[2], sti_text *out)
{
    static const char *const names[2] = {"train", "test"};
    const stint_data_info *any = split[0].info ? split[0].info : split[1].info;
    sti_json j;
    if (json) {
        sti_cli_json_begin(&j, out);
        sti_json_text(&j, "path", any->path);
        sti_json_text(&j, "format", any->format);
    } else {
        sti_text_printf(out, "%s (%s)\n", sti_shown(any->path), any->format);
    }
    for (int s = 0; s < 2; s++) {
        if (!split[s].info)
            continue;
        if (json)
            add_split_json(&j, names[s], &split[s]);
        else
            add_split_words(names[s], &split[s], out);
    }
    if (json) {
        sti_json_begin_object(&j, "splits");
        for (int s = 0; s < 2; s++)
            if (split[s].info)
                sti_json_text(&j, names[s], split[s].info->from);
        sti_json_end_object(&j);
        sti_json_end_object(&j);
        return;
    }
    sti_text_add(out, "classes");
    for (int32_t c = 0; c < any->classes && c < 100; c++)
        sti_text_printf(out, " %s", sti_shown(any->class_names[c]));
    sti_text_add(out, any->classes > 100 ? " ...\n" : "\n");
    if (has_many_sizes(split))
        sti_text_add(out, "To train on images of more than one size, add `size = 224` "
                          "under [data] (or another; `fit`\nsays how they become so "
                          "large); --size 224 looks at them so\n");
}

static void add_text_info(bool json, const sti_corpus_look *text, sti_text *out)
{
    sti_json j;
    if (!json) {
        sti_text_printf(out, "%s (text)\n%s byte%s in %s file%s, sha256 %s\n",
                        text->path, sti_count_text(text->bytes), sti_s(text->bytes),
                        sti_count_text(text->files), sti_s(text->files), text->sha256);
        if (text->utf8)
            sti_text_printf(out, "UTF-8: %s character%s, %s different\n",
                            sti_count_text(text->characters), sti_s(text->characters),
                            sti_count_text(text->different));
        else
            sti_text_printf(out,
                            "no UTF-8: %s\nFor images give a folder with "
                            "train/<class>/ and test/<class>/, or with train.tar and "
                            "test.tar\n",
                            text->why);
        return;
    }
    sti_cli_json_begin(&j, out);
    sti_json_text(&j, "path", text->path);
    sti_json_text(&j, "format", "text");
    sti_json_int(&j, "files", text->files);
    sti_json_int(&j, "bytes", text->bytes);
    sti_json_text(&j, "sha256", text->sha256);
    sti_json_bool(&j, "utf8", text->utf8);
    sti_json_int(&j, "characters", text->characters);
    sti_json_int(&j, "different", text->different);
    sti_json_end_object(&j);
}

static stint_status text_info(sti_cli_call *call)
{
    sti_corpus_look look;
    sti_text text = {0};
    const stint_status status =
        sti_corpus_look_at(call->operands[0], call->arena, &look);
    if (status != STINT_OK)
        return status;
    add_text_info(call->common->json, &look, &text);
    return sti_cli_answer(call, &text);
}

/* Asked for as text, or text and no images. */
static bool looks_like_text(const char *path, const char *format, bool nested)
{
    if (strcmp(format, "text") == 0)
        return true;
    return strcmp(format, "auto") == 0 &&
           !sti_data_has_part(path, format, STINT_DATA_TRAIN, nested) &&
           !sti_data_has_part(path, format, STINT_DATA_TEST, nested) &&
           sti_data_packed(path, STINT_DATA_TRAIN) == STINT_OK &&
           sti_corpus_is_text(path);
}

/* The test split with the classes and colours of the training one, but of any size:
 * what does not go together for a training is still there to be described. */
static stint_status open_info(const stint_data_desc *wanted,
                              const stint_data_info *train, info_split *out)
{
    stint_data_desc desc = *wanted;
    stint_data_info like = {0};
    if (train) {
        like = *train;
        like.width = like.height = 0;
        desc.like = &like;
    }
    stint_status status = stint_data_open(&desc, &out->data);
    if (status != STINT_OK)
        return status;
    out->info = stint_data_describe(out->data);
    return desc.size > 0 ? STINT_OK : sti_data_find_mixed(out->data, &out->mixed);
}

/* Is it a table, by the format given or by its name? */
static bool is_table(const sti_cli_call *call, sti_table_format *format_out)
{
    const data_args *args = call->args;
    const char *ending = sti_path_extension(call->operands[0]);
    const bool open = args->format == 0 && sti_path_is_file(call->operands[0]);
    const bool arff =
        args->format == FORMAT_ARFF || (open && strcasecmp(ending, ".arff") == 0);
    *format_out = arff ? STI_TABLE_ARFF : STI_TABLE_LIBSVM;
    return arff || args->format == FORMAT_LIBSVM ||
           (open &&
            (strcasecmp(ending, ".libsvm") == 0 || strcasecmp(ending, ".svm") == 0));
}

/* All of a table is read to be described, so a check is the same and ends likewise. */
static stint_status table_info(sti_cli_call *call, sti_table_format format)
{
    const sti_table_desc desc = {.path = call->operands[0], .format = format};
    sti_table table;
    sti_text text = {0};
    stint_status status = sti_table_read(&desc, &table);
    if (status != STINT_OK)
        return status;
    sti_cli_add_table(desc.path, &table, call->common->json, &text);
    sti_table_fini(&table);
    return sti_cli_answer(call, &text);
}

/* Is it a Matrix Market file? */
static bool is_matrix(const sti_cli_call *call)
{
    const data_args *args = call->args;
    const char *ending = sti_path_extension(call->operands[0]);
    return args->format == FORMAT_MATRIX ||
           (args->format == 0 && strcasecmp(ending, ".mtx") == 0 &&
            sti_path_is_file(call->operands[0]));
}

static stint_status matrix_info(sti_cli_call *call)
{
    const data_args *args = call->args;
    int threads = 1;
    const stint_status st = sti_threads_choose((int)args->threads, &threads, NULL);
    return st == STINT_OK ? sti_cli_matrix_info(call, threads) : st;
}

static stint_status info_run(sti_cli_call *call)
{
    const data_args *args = call->args;
    sti_table_format format;
    if (is_matrix(call))
        return matrix_info(call);
    if (is_table(call, &format))
        return table_info(call, format);
    if (looks_like_text(call->operands[0], format_names[args->format], args->nested))
        return text_info(call);
    info_split split[2] = {{.data = NULL}};
    stint_status status = STINT_OK;
    for (int s = 0; s < 2 && status == STINT_OK; s++) {
        stint_data_desc desc = {.path = call->operands[0],
                                .split = s == 0 ? STINT_DATA_TRAIN : STINT_DATA_TEST,
                                .format = format_names[args->format],
                                .size = args->size,
                                .channels = (int)args->channels,
                                .nested = args->nested};
        bool other = s == 0 ? sti_data_has_part(desc.path, desc.format, STINT_DATA_TEST,
                                                desc.nested)
                            : split[0].data != NULL;
        if (!other ||
            sti_data_has_part(desc.path, desc.format, desc.split, desc.nested))
            status = open_info(&desc, split[0].info, &split[s]);
    }
    if (status == STINT_OK) {
        sti_text text = {0};
        add_info(call->common->json, split, &text);
        status = sti_cli_answer(call, &text);
    }
    stint_data_close(split[0].data);
    stint_data_close(split[1].data);
    return status;
}

const sti_cli_command sti_cmd_data_info = {
    .name = "data info",
    .summary = "say what images a folder holds, or what a text is",
    .operands = "PATH",
    .example = "stint data info ~/cifar10",
    .about = "Looks at names and sizes only; `stint data check` reads every image.",
    .min_operands = 1,
    .max_operands = 1,
    STI_CLI_ARGS(data_rows, data_args),
    .run = info_run,
};

/* ---- data check ---- */

typedef struct check_view {
    sti_cli_call *call;
    sti_progress bar;
    sti_text text;
    sti_json json;
} check_view;

static void on_found(void *user, stint_data_level level, const char *text)
{
    check_view *view = user;
    const char *word = level == STINT_DATA_PROBLEM ? "problem" : "note";
    if (view->call->common->json) {
        sti_json_begin_object(&view->json, NULL);
        sti_json_text(&view->json, "level", word);
        sti_json_text(&view->json, "text", text);
        sti_json_end_object(&view->json);
        return;
    }
    sti_progress_clear(&view->bar);
    sti_text_printf(&view->text, "%s: ", word);
    sti_text_add_shown(&view->text, text, "");
    sti_text_add(&view->text, "\n");
    sti_cli_print(&view->text);
}

static void on_check_progress(void *user, int64_t done, int64_t total)
{
    check_view *view = user;
    sti_cli_data_progress(&view->bar, done, total);
}

static stint_status check_answer(check_view *view, const stint_data_check_result *r)
{
    sti_json *j = &view->json;
    if (!view->call->common->json) {
        sti_text_printf(&view->text,
                        "%s training and %s test image%s of %" PRId64 " x %" PRId64
                        ", %d class%s: %" PRId64 " problem%s, %" PRId64 " note%s\n",
                        sti_count_text(r->train_count), sti_count_text(r->test_count),
                        sti_s(r->test_count), r->width, r->height, r->classes,
                        r->classes == 1 ? "" : "es", r->problems, sti_s(r->problems),
                        r->notes, sti_s(r->notes));
        return sti_cli_print(&view->text);
    }
    sti_json_end_array(j);
    sti_json_int(j, "problems", r->problems);
    sti_json_int(j, "notes", r->notes);
    sti_json_int(j, "train_count", r->train_count);
    sti_json_int(j, "test_count", r->test_count);
    sti_json_int(j, "classes", r->classes);
    sti_json_int(j, "height", r->height);
    sti_json_int(j, "width", r->width);
    sti_json_int(j, "channels", r->channels);
    sti_json_end_object(j);
    return sti_cli_answer(view->call, &view->text);
}

static stint_status check_run(sti_cli_call *call)
{
    const data_args *args = call->args;
    check_view view = {.call = call};
    sti_table_format format;
    int threads = 1;
    if (is_matrix(call))
        return matrix_info(call);
    if (is_table(call, &format))
        return table_info(call, format);
    if (looks_like_text(call->operands[0], format_names[args->format], args->nested))
        return sti_fail(STINT_E_USAGE,
                        "%s holds no images; `stint data info` reads all of it and "
                        "says whether it is text",
                        call->operands[0]);
    stint_status status = sti_threads_choose((int)args->threads, &threads, NULL);
    if (status != STINT_OK)
        return status;
    if (call->common->json) {
        sti_cli_json_begin(&view.json, &view.text);
        sti_json_begin_array(&view.json, "findings");
    }
    sti_progress_begin(&view.bar, "check", "images", 0, call->common->quiet);
    stint_data_check_result result = {0};
    status =
        stint_data_check(&(stint_data_check_desc){.path = call->operands[0],
                                                  .format = format_names[args->format],
                                                  .size = args->size,
                                                  .channels = (int)args->channels,
                                                  .nested = args->nested,
                                                  .threads = threads,
                                                  .found = on_found,
                                                  .progress = on_check_progress,
                                                  .user = &view},
                         &result);
    sti_progress_clear(&view.bar);
    stint_status printed = check_answer(&view, &result);
    return status != STINT_OK ? status : printed;
}

const sti_cli_command sti_cmd_data_check = {
    .name = "data check",
    .summary = "read every image and list all problems",
    .operands = "PATH",
    .example = "stint data check photos --size 64",
    .about =
        "Names each broken, mislabelled or wrong-sized file; exit code 4 when there "
        "is any problem.",
    .min_operands = 1,
    .max_operands = 1,
    STI_CLI_ARGS(data_rows, data_args),
    .run = check_run,
};
