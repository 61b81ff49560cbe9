/* What stint train and what trains like it say: progress, and the answer. */
#ifndef STI_CLI_CLI_TRAIN_H
#define STI_CLI_CLI_TRAIN_H

#include "base/progress.h"
#include "cli/cli.h"

typedef struct sti_cli_train_view {
    const sti_cli_call *call;
    sti_progress bar;
    bool begun, quiet;
} sti_cli_train_view;

/* Callbacks of a training; user: a view, whose bar is to be cleared if it has begun. */
void sti_cli_train_planned(void *user, const stint_plan_result *plan);
void sti_cli_train_progress(void *user, const stint_train_progress *p);

/* The members of the JSON object, and the words. */
void sti_cli_train_json(const sti_cli_call *call, const stint_train_result *r,
                        sti_json *j);
void sti_cli_train_words(const stint_train_result *r, sti_text *out);

#endif
