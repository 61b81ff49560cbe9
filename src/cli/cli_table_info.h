/* What is said about a table by `stint data table` and `stint data info`. */
#ifndef STI_CLI_CLI_TABLE_INFO_H
#define STI_CLI_CLI_TABLE_INFO_H

#include "cli/cli.h"
#include "data/data_table.h"

/* Two lines, or one JSON object. */
void sti_cli_add_table(const char *path, const sti_table *table, bool json,
                       sti_text *out);

#endif
