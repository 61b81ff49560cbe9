/* What `stint data info` says about a Matrix Market file. */
#ifndef STI_CLI_CLI_MATRIX_INFO_H
#define STI_CLI_CLI_MATRIX_INFO_H

#include "cli/cli.h"

/* Reads all of it and answers. */
stint_status sti_cli_matrix_info(sti_cli_call *call, int threads);

#endif
