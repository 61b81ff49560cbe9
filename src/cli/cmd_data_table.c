/* stint data table: labelled rows from LIBSVM text, ARFF or images, as LIBSVM text or
 * ARFF. */
#include <inttypes.h>
#include <string.h>
#include <strings.h>

#include "base/fail.h"
#include "base/file.h"
#include "base/shown.h"
#include "base/units.h"
#include "cli/cli.h"
#include "cli/cli_table_info.h"
#include "data/data_table.h"

typedef struct table_args {
    const char *out;
    int split;
    int64_t count, seed;
    sti_cli_common common;
} table_args;

#define TABLE_ROW(field, kind, standard, words)                                        \
    .type = (kind), .default_text = (standard), .offset = offsetof(table_args, field), \
    .flag = true, .help = (words)

static const sti_option table_rows[] = {
    {.name = "out",
     .letter = 'o',
     .unit = "FILE",
     TABLE_ROW(out, STI_OPTION_PATH, "",
               "what to write: ARFF where the name ends in .arff, else LIBSVM text")},
    {.name = "split",
     .choices = "train|test",
     .unit = "NAME",
     TABLE_ROW(split, STI_OPTION_CHOICE, "train", "images: which of them")},
    {.name = "count",
     .min = 0,
     .max = 1e9,
     .unit = "N",
     TABLE_ROW(count, STI_OPTION_INT, "0",
               "images: so many, drawn at random and in their order; 0: all")},
    {.name = "seed",
     .min = 0,
     .max = STI_OPTION_COUNT_MAX,
     .unit = "N",
     TABLE_ROW(seed, STI_OPTION_INT, "0", "of that draw")},
    STI_CLI_COMMON_ROWS(table_args),
};

void sti_cli_add_table(const char *path, const sti_table *table, bool json,
                       sti_text *out)
{
    static const char *const formats[] = {"auto", "libsvm", "arff", "images"};
    const int64_t features = table->x.columns - table->first;
    const int64_t values = table->x.start[table->x.rows];
    const char *labels = !table->y ? "none" : table->names ? "words" : "numbers";
    sti_json j;
    if (!json) {
        sti_text_printf(out, "%s (%s)\n%s row%s of %s feature%s, %s value%s not 0, ",
                        sti_shown(path), formats[table->format],
                        sti_count_text(table->x.rows), sti_s(table->x.rows),
                        sti_count_text(features), sti_s(features),
                        sti_count_text(values), sti_s(values));
        if (table->names)
            sti_text_printf(out, "labels: %s words\n",
                            sti_count_text(table->name_count));
        else
            sti_text_printf(out, "labels: %s\n", labels);
        return;
    }
    sti_cli_json_begin(&j, out);
    sti_json_text(&j, "path", path);
    sti_json_text(&j, "format", formats[table->format]);
    sti_json_int(&j, "rows", table->x.rows);
    sti_json_int(&j, "features", features);
    sti_json_int(&j, "nonzeros", values);
    sti_json_int(&j, "first_index", table->first);
    sti_json_text(&j, "labels", labels);
    sti_json_begin_array(&j, "label_names");
    for (int64_t i = 0; i < table->name_count; i++)
        sti_json_text(&j, NULL, table->names[i]);
    sti_json_end_array(&j);
    sti_json_end_object(&j);
}

static stint_status table_run(sti_cli_call *call)
{
    const table_args *args = call->args;
    const char *in = call->operands[0];
    const sti_table_desc desc = {.path = in,
                                 .split = args->split == 0 ? STINT_DATA_TRAIN
                                                           : STINT_DATA_TEST,
                                 .count = args->count,
                                 .seed = (uint64_t)args->seed};
    sti_table table = {0};
    sti_text text = {0};
    stint_status st;
    if (!args->out)
        return sti_fail(STINT_E_USAGE, "--out FILE.libsvm or FILE.arff is wanted");
    if (args->count > 0 && sti_table_format_of(in) != STI_TABLE_IMAGES)
        return sti_fail(STINT_E_USAGE, "--count draws from images; %s is a table", in);
    STI_TRY(sti_cli_check_out(in, args->out));
    STI_TRY(sti_table_read(&desc, &table));
    STI_TRY(sti_table_write(&table, args->out));
    table.format = sti_table_format_of(args->out);
    sti_cli_add_table(args->out, &table, call->common->json, &text);
    st = sti_cli_answer(call, &text);
out:
    sti_table_fini(&table);
    return st;
}

const sti_cli_command sti_cmd_data_table = {
    .name = "data table",
    .summary = "turn LIBSVM text, ARFF or images into a table of rows",
    .operands = "PATH",
    .example = "stint data table out/glyphs --count 2000 --out glyphs.libsvm\n"
               "stint data table iris.arff --out iris.libsvm",
    .about =
        "A folder holds images, whose rows are pixels / 255; a file whose name ends "
        "in .arff is ARFF, any other LIBSVM text. Numbers are written in a form "
        "that reads back as the same.",
    .min_operands = 1,
    .max_operands = 1,
    STI_CLI_ARGS(table_rows, table_args),
    .run = table_run,
};
