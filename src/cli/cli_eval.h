/* stint eval: what its two halves share, one network and several. */
#ifndef STI_CLI_CLI_EVAL_H
#define STI_CLI_CLI_EVAL_H

#include "base/progress.h"
#include "cli/cli.h"
#include "stint/infer.h"

typedef struct sti_eval_args {
    const char *data, *adapter, *ood, *ensemble, *page, *rom, *scores;
    int split, format;
    int64_t batch, threads, samples, episodes, seed;
    size_t memory_bytes;
    bool confusion;
    sti_cli_common common;
} sti_eval_args;

typedef struct sti_eval_view {
    sti_progress bar;
    const char *unit;
    int64_t start_ns;
    bool begun, quiet;
} sti_eval_view;

/* A stint_train_progress_fn; user: a view. */
void sti_cli_eval_progress(void *user, const stint_train_progress *progress);

/* What is said of an evaluation, as words or as the members of a JSON object that is
 * begun already. */
void sti_cli_eval_words(const sti_eval_args *args, const stint_model_facts *facts,
                        const stint_eval_result *result, sti_text *out);
void sti_cli_eval_json(const sti_eval_args *args, const stint_model_facts *facts,
                       const stint_eval_result *result, sti_json *j);

/* With a budget: the peak beside the plan, among the messages. */
void sti_cli_eval_say_peak(const sti_cli_call *call, const stint_eval_result *result);

/* --samples or --ensemble: several networks about the images of data, which path's
 * model begins. */
stint_status sti_cli_eval_several(sti_cli_call *call, const char *path,
                                  const stint_model_facts *facts,
                                  const stint_data_desc *data);

#endif
