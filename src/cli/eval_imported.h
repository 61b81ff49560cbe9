/* stint eval of a network that another program made. */
#ifndef STI_CLI_EVAL_IMPORTED_H
#define STI_CLI_EVAL_IMPORTED_H

#include "cli/cli.h"

stint_status sti_cli_imported_eval(sti_cli_call *call, const char *path);

#endif
