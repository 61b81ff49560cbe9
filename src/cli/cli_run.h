/* stint run: what its two halves share. */
#ifndef STI_CLI_CLI_RUN_H
#define STI_CLI_CLI_RUN_H

#include "cli/cli.h"

typedef struct sti_run_args {
    int64_t top; /* of images: classes to name */
    const char *prompt, *prompt_file, *prompt_ids, *adapter;
    int64_t tokens, top_k, seed, threads;
    int64_t samples; /* of images: networks; 0: the model as it is */
    double temperature, top_p;
    size_t memory_bytes;
    const char *input, *out; /* of imported networks: NAME=FILE,...; the .npz */
    int weights;             /* of text: auto, f32, bf16, q8, q4 */
    sti_cli_common common;
} sti_run_args;

/* Was a prompt given, in one form or another? */
bool sti_run_has_prompt(const sti_run_args *args);
/* Go on with a prompt. */
stint_status sti_run_text(sti_cli_call *call);
/* Run an imported network once. */
stint_status sti_run_imported(sti_cli_call *call, const char *path);

#endif
