/* Words about a plan that more than one subcommand prints. */
#ifndef STI_CLI_CLI_PLAN_H
#define STI_CLI_CLI_PLAN_H

#include "cli/cli.h"

/* One line on stderr: CPU, instruction set, threads and why, lanes, planned peak. */
void sti_cli_start_line(const sti_cli_call *call, const stint_plan_result *plan);

#endif
