/* What the subcommands of `stint seal` share. */
#ifndef STI_CLI_SEAL_H
#define STI_CLI_SEAL_H

#include "cli/cli.h"

/* STINT_E_USAGE where `out` is missing or names the file `in`. */
stint_status sti_cli_seal_check_out(const char *in, const char *out);
/* A circuit that was made at `path`: words, or JSON. */
stint_status sti_cli_seal_facts(sti_cli_call *call, const char *path,
                                const stint_seal_facts *facts);
/* Values as a line, or under "values". Frees json. */
stint_status sti_cli_seal_values(sti_cli_call *call, char *json);

#endif
