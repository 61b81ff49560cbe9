/* A recommendation model in use: scores of samples, in the order of a file. */
#ifndef STI_RECOMMEND_SCORER_H
#define STI_RECOMMEND_SCORER_H

#include "recommend/learner.h"
#include "stint/embed.h"

typedef struct sti_scorer {
    const sti_clicks *clicks;
    int64_t width, batch, part; /* samples of a batch, and of a run of the graph */
    sti_row_store *store;       /* borrowed; NULL: there are no ids */
    stint_use *use;             /* owned */
    sti_feed feed;
    float *probability; /* [batch] */
    float *logit;       /* [samples], of those asked for */
    uint8_t *label;
    /* The batch at hand. */
    int64_t first; /* its first sample */
    const sti_feed_slot *now;
    const sti_row_batch *by_row;
    float *const *row;
} sti_scorer;

/* The graph in use, without weights. */
stint_status sti_scorer_open(const stint_click_model_desc *model,
                             const sti_clicks *clicks, int64_t batch, int64_t parts,
                             int threads, sti_scorer *scorer);
void sti_scorer_close(sti_scorer *scorer); /* also of a zeroed one */
/* Samples [first, first + count) of the file through the model: rows by `store`, ring
 * slots as that has them. */
stint_status sti_scorer_run(sti_scorer *scorer, sti_row_store *store, int rings,
                            int64_t first, int64_t count,
                            const stint_embed_eval_desc *desc,
                            stint_embed_scores *scores_out);

#endif
