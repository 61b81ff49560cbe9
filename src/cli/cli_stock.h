/* The recipe of a call: a file, or a built-in one by what the data is. */
#ifndef STI_CLI_CLI_STOCK_H
#define STI_CLI_CLI_STOCK_H

#include "cli/cli.h"

/* Sets call->recipe and what is known of it: from the first operand or, without any, by
 * what lies at --data, as flags and environment in call->set say. */
stint_status sti_cli_open_recipe(sti_cli_call *call);

/* What was taken and why, where no recipe was given; else nothing. */
void sti_cli_say_recipe(const sti_cli_call *call);

#endif
