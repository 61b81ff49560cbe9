/* stint svm scale: features brought to one range. */
#include <inttypes.h>

#include "base/fail.h"
#include "base/units.h"
#include "cli/cli.h"
#include "svm/svm_scale.h"

typedef struct scale_args {
    double lower, upper;
    const char *save, *restore, *targets;
    sti_cli_common common;
} scale_args;

#define SCALE_ROW(field, kind, standard, words)                                        \
    .type = (kind), .default_text = (standard), .offset = offsetof(scale_args, field), \
    .flag = true, .help = (words)

static const sti_option scale_rows[] = {
    {.name = "lower",
     .letter = 'l',
     STI_OPTION_NO_BOUND,
     .unit = "X",
     SCALE_ROW(lower, STI_OPTION_FLOAT, "-1",
               "the least value of a feature becomes X")},
    {.name = "upper",
     .letter = 'u',
     STI_OPTION_NO_BOUND,
     .unit = "X",
     SCALE_ROW(upper, STI_OPTION_FLOAT, "1", "the largest value becomes X")},
    {.name = "save",
     .letter = 's',
     .unit = "FILE",
     SCALE_ROW(save, STI_OPTION_PATH, "", "write the ranges found")},
    {.name = "restore",
     .letter = 'r',
     .unit = "FILE",
     SCALE_ROW(restore, STI_OPTION_PATH, "",
               "scale by these ranges, as for test data; -l and -u are the file's")},
    {.name = "targets",
     .letter = 'y',
     .unit = "LO HI",
     SCALE_ROW(targets, STI_OPTION_LIST, "",
               "scale the labels, too: the least becomes LO, the largest HI"),
     .words = 2},
    STI_CLI_COMMON_ROWS(scale_args),
};

/* Two numbers of "LO,HI". */
static stint_status read_bounds(sti_cli_call *call, const char *list, double bounds[2])
{
    const char **word;
    int64_t count;
    stint_status st = sti_option_split(call->arena, list, &word, &count);
    for (int64_t i = 0; st == STINT_OK && count == 2 && i < 2; i++)
        st = sti_parse_float(word[i], &bounds[i]);
    if (st != STINT_OK)
        return sti_fail_context(st, "-y");
    if (count != 2 || !(bounds[0] < bounds[1]))
        return sti_fail(STINT_E_USAGE,
                        "-y %s; two numbers, the lower first, were wanted", list);
    return STINT_OK;
}

static stint_status find_scale(sti_cli_call *call, const double y_bounds[2],
                               const sti_table *table, sti_svm_scale *scale)
{
    const scale_args *args = call->args;
    if (args->restore)
        return sti_svm_scale_read(args->restore, scale);
    stint_status st = sti_svm_scale_of(table, args->lower, args->upper, scale);
    if (st == STINT_OK && args->targets)
        st = sti_svm_scale_targets(table, y_bounds[0], y_bounds[1], scale);
    if (st == STINT_OK && args->save)
        st = sti_svm_scale_write(scale, args->save);
    return st;
}

static stint_status check_args(const sti_cli_call *call)
{
    const scale_args *args = call->args;
    if (args->save && args->restore)
        return sti_fail(STINT_E_USAGE, "--save and --restore: one of them was wanted");
    if (!(args->lower < args->upper))
        return sti_fail(STINT_E_USAGE, "--lower must be less than --upper");
    if (call->common->json)
        return sti_fail(STINT_E_USAGE, "--json: the answer is LIBSVM text on stdout");
    return sti_cli_check_out(call->operands[0], args->save);
}

static stint_status scale_run(sti_cli_call *call)
{
    sti_table table = {0};
    sti_svm_scale scale = {0};
    stint_status st;
    const scale_args *args = call->args;
    double y_bounds[2] = {0, 0};
    STI_TRY(check_args(call));
    if (args->targets)
        STI_TRY(read_bounds(call, args->targets, y_bounds));
    STI_TRY(sti_table_read(&(sti_table_desc){.path = call->operands[0]}, &table));
    STI_TRY(find_scale(call, y_bounds, &table, &scale));
    if (table.x.columns > scale.columns)
        sti_log(STINT_LOG_WARNING,
                "%s: indices beyond %" PRId64 " have no range in the file; they are "
                "left out",
                call->operands[0], scale.columns - 1);
    for (int64_t i = 0; i < table.x.rows && st == STINT_OK; i++) {
        sti_text text = {0};
        sti_svm_scale_row(&scale, &table, i, &text);
        st = sti_cli_write(&text);
    }
out:
    sti_svm_scale_fini(&scale);
    sti_table_fini(&table);
    return st;
}

const sti_cli_command sti_cmd_svm_scale = {
    .name = "svm scale",
    .summary = "bring features to one range, as svm-scale does",
    .operands = "DATA",
    .example = "stint svm scale -l 0 -s ranges train.libsvm > train.scale\n"
               "stint svm scale -r ranges test.libsvm > test.scale",
    .about = "Prints LIBSVM text. A feature with a single value is left out.",
    .min_operands = 1,
    .max_operands = 1,
    STI_CLI_ARGS(scale_rows, scale_args),
    .run = scale_run,
};
