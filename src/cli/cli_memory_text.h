/* stint trust memory on a text. Private to cmd_trust_memory.c. */
#ifndef STI_CLI_MEMORY_TEXT_H
#define STI_CLI_MEMORY_TEXT_H

#include "cli/cli.h"
#include "stint/memory_text.h"

/* What a study came to, as words or as one JSON object. */
stint_status sti_cli_memory_text_answer(sti_cli_call *call,
                                        const stint_memory_text *memory);

#endif
