/* Words about a plan that more than one subcommand prints. */
#ifndef STI_CLI_CLI_PLAN_H
#define STI_CLI_CLI_PLAN_H

#include "cli/cli.h"

/* One line on stderr: CPU, instruction set, threads and why, lanes, planned peak. */
void sti_cli_start_line(const sti_cli_call *call, const stint_plan_result *plan);

/* By which way the sets of a field's loss get their derivatives, and what either way
 * takes: "derivatives" of the object that is open, or a line a set; of a field alone.
 */
void sti_cli_plan_derivatives_json(const stint_plan_result *plan, sti_json *j);
void sti_cli_plan_derivatives_words(const stint_plan_result *plan, sti_text *out);

#endif
