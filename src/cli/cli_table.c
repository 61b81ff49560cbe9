/* The subcommands: one line each, in the order of `stint help`. */
#include <string.h>

#include "cli/cli.h"

extern const sti_cli_command sti_cmd_train, sti_cmd_eval, sti_cmd_run, sti_cmd_plan,
    sti_cmd_info, sti_cmd_data_info, sti_cmd_data_check, sti_cmd_data_glyphs,
    sti_cmd_data_get, sti_cmd_data_tokens, sti_cmd_topk, sti_cmd_report,
    sti_cmd_bench_step, sti_cmd_bench_gemm, sti_cmd_bench_conv, sti_cmd_bench_topk,
    sti_cmd_help, sti_cmd_completion;

const sti_cli_command *const sti_cli_commands[] = {&sti_cmd_train,
                                                   &sti_cmd_eval,
                                                   &sti_cmd_run,
                                                   &sti_cmd_plan,
                                                   &sti_cmd_info,
                                                   &sti_cmd_data_info,
                                                   &sti_cmd_data_check,
                                                   &sti_cmd_data_glyphs,
                                                   &sti_cmd_data_get,
                                                   &sti_cmd_data_tokens,
                                                   &sti_cmd_topk,
                                                   &sti_cmd_report,
                                                   &sti_cmd_bench_step,
                                                   &sti_cmd_bench_gemm,
                                                   &sti_cmd_bench_conv,
                                                   &sti_cmd_bench_topk,
                                                   &sti_cmd_help,
                                                   &sti_cmd_completion,
                                                   NULL};

const sti_cli_command *sti_cli_find(const char *name)
{
    for (int i = 0; sti_cli_commands[i]; i++)
        if (strcmp(sti_cli_commands[i]->name, name) == 0)
            return sti_cli_commands[i];
    return NULL;
}
