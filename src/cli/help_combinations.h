/* What goes with what: `stint help combinations`, and docs/combinations.md. */
#ifndef STI_CLI_HELP_COMBINATIONS_H
#define STI_CLI_HELP_COMBINATIONS_H

#include "base/json.h"
#include "base/text.h"

void sti_cli_combinations_text(sti_text *out);
void sti_cli_combinations_markdown(sti_text *out);
/* The keys "features" and "refused". */
void sti_cli_combinations_json(sti_json *j);

#endif
