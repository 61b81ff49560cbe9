/* What `stint train`, `plan`, `eval`, `run` and `report` do where a recipe, or a model,
 * is of clicks. */
#ifndef STI_CLI_CLI_EMBED_H
#define STI_CLI_CLI_EMBED_H

#include "cli/cli.h"

stint_status sti_cli_embed_train(sti_cli_call *call, stint_net *net, bool resume,
                                 bool force);
stint_status sti_cli_embed_plan(sti_cli_call *call, const char *svg);
/* The model is the first operand. scores: a .npy file of probabilities, or NULL. */
stint_status sti_cli_embed_eval(sti_cli_call *call, const stint_embed_eval_desc *desc,
                                const char *scores);
/* STINT_E_USAGE where `out` is a file of the model or lies in its table's folder. */
stint_status sti_cli_embed_check_out(sti_cli_call *call, const char *model,
                                     const char *out);
/* Probabilities of the samples of FILE.csv, the second operand, a line each. */
stint_status sti_cli_embed_run(sti_cli_call *call, int threads, size_t memory_bytes);

#endif
