/* stint compare of two models of text. Private to cmd_compare.c. */
#ifndef STI_CLI_COMPARE_TEXT_H
#define STI_CLI_COMPARE_TEXT_H

#include "cli/cli.h"
#include "stint/compare_text.h"

/* What a comparison came to, as words or as one JSON object. */
stint_status sti_cli_compare_text_answer(sti_cli_call *call,
                                         const stint_text_fidelity *fidelity);

#endif
