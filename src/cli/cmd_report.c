/* stint report: rebuild a run's report.html from its log. */
#include "base/fail.h"
#include "base/file.h"
#include "cli/cli.h"
#include "train/report.h"

typedef struct report_args {
    sti_cli_common common;
} report_args;

static const sti_option report_rows[] = {STI_CLI_COMMON_ROWS(report_args)};

static stint_status report_run(sti_cli_call *call)
{
    const char *run = call->operands[0];
    stint_status status = stint_embed_is_run(run)  ? stint_embed_report(run)
                          : stint_play_is_run(run) ? stint_play_report(run)
                                                   : sti_report_write(run);
    if (status != STINT_OK)
        return status;
    const char *path = sti_path_join(call->arena, call->operands[0], "report.html");
    path = path ? sti_path_absolute(call->arena, path) : NULL;
    if (!path)
        return STINT_E_MEMORY;
    sti_text text = {0};
    if (!call->common->json) {
        sti_text_printf(&text, "%s\n", path);
        return sti_cli_print(&text);
    }
    sti_json j;
    sti_cli_json_begin(&j, &text);
    sti_json_text(&j, "report", path);
    sti_json_end_object(&j);
    return sti_cli_answer(call, &text);
}

const sti_cli_command sti_cmd_report = {
    .name = "report",
    .summary = "rebuild report.html in a run's folder",
    .operands = "DIR",
    .example = "stint report runs/cifar10-resnet20",
    .about = "Training writes the same page at its end; this also works on a run that "
             "was stopped or is still going on.",
    .min_operands = 1,
    .max_operands = 1,
    STI_CLI_ARGS(report_rows, report_args),
    .run = report_run,
};
