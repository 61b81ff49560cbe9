/* What `stint train`, `plan` and `eval` do where a recipe trains an agent. */
#ifndef STI_CLI_CLI_PLAY_H
#define STI_CLI_CLI_PLAY_H

#include "cli/cli.h"

stint_status sti_cli_play_train(sti_cli_call *call, stint_net *net, bool resume,
                                bool force);
stint_status sti_cli_play_plan(sti_cli_call *call);
/* Of the first operand. episodes, seed 0: the usual; rom NULL: the recipe's. */
stint_status sti_cli_play_eval(sti_cli_call *call, const stint_play_eval_desc *desc);

#endif
