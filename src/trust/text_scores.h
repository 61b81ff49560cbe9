/* The scores that a model of text gives every next token of some windows. */
#ifndef STI_TRUST_TEXT_SCORES_H
#define STI_TRUST_TEXT_SCORES_H

#include "infer/lanes.h"
#include "store/model_file.h"

/* Rows whose scores exist at a time. */
enum { STI_TEXT_SCORES_ROWS = 64 };

typedef struct sti_text_scores {
    sti_network net;
    sti_infer *infer;
    const float *table; /* [vocabulary, width], of the network's parameters */
    int64_t width, vocabulary;
    const float *x; /* [windows * context, width] of the last run */
    void *scratch;
} sti_text_scores;

/* A model of text for runs of so many windows of `context` tokens, at most the model's.
 * Also after a failure sti_text_scores_close is to be called. */
stint_status sti_text_scores_open(const stint_model_file *model, int64_t windows,
                                  int64_t context, int threads,
                                  sti_text_scores *scores_out);
void sti_text_scores_close(sti_text_scores *scores); /* a zeroed one is fine */

/* Read tokens [windows, context]. */
void sti_text_scores_run(sti_text_scores *scores, const int32_t *tokens);
/* Scores [rows, vocabulary] of rows first .. first + rows - 1 of the last run, at most
 * STI_TEXT_SCORES_ROWS of them. */
void sti_text_scores_take(const sti_text_scores *scores, int64_t first, int64_t rows,
                          float *logits_out);

#endif
