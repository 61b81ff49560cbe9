/* A recommendation model under way: its dense part as a session (stint/session.h), its
 * rows in a store beside the graph, and the feed of samples.
 *
 * A step: the store has the batch's rows in memory; the session's shards gather them
 * into their inputs, and leave the gradients of these inputs in one block of the whole
 * batch; then each row takes the sum of its gradients in the order of the batch. So the
 * bits follow from the recipe and the data, whatever is in memory and whoever computes
 * what. Of several ranks each has a part of the rows (row_share.h). */
#ifndef STI_RECOMMEND_LEARNER_H
#define STI_RECOMMEND_LEARNER_H

#include "base/recipe.h"
#include "base/team.h"
#include "embed/row_store.h"
#include "kernel/row/row_update.h"
#include "recommend/embedding_section.h"
#include "recommend/row_share.h"
#include "stint/model.h"
#include "stint/session.h"

/* Bytes by which what is resident may differ from one look to the next. */
#define STI_LEARNER_VARIES ((size_t)128 << 10)

typedef struct sti_learner_desc {
    const stint_recipe *recipe;
    const char *ranks;  /* the file of samples by rank */
    const char *folder; /* of the rows */
    stint_net *net;     /* NULL: this process alone */
    bool plan_only;     /* no memory is taken */
    bool resume;        /* the rows are there */
} sti_learner_desc;

typedef struct sti_learner {
    const stint_recipe *recipe;
    sti_embedding_values embedding;
    sti_clicks clicks;
    stint_click_model_desc model;
    int64_t batch, shards, steps;
    uint64_t seed;
    sti_row_store_desc rows; /* as planned */
    sti_row_store *store;    /* NULL: only planned, or there are no ids */
    sti_feed_desc feed_desc;
    sti_feed feed;
    int rank, ranks;
    sti_row_share share; /* of several ranks; of one it is zeroed */
    stint_session *session;
    stint_plan_result plan;       /* of a plan_only one */
    size_t graph_bytes;           /* weights and activations of the graph in use */
    size_t dense_bytes;           /* of all but the rows */
    float *gradient;              /* [own samples, fields, width] */
    int64_t own_first, own_count; /* samples of a batch that are this rank's */
    int64_t eval_parts;           /* shards of a batch of the test part, and its */
    int eval_rings;               /* batches in memory */
    float *row_scratch;           /* [threads][width] */
    int threads;
    sti_team team;
    /* The batch at hand. */
    const sti_feed_slot *now;
    const sti_row_batch *by_row, *owned; /* of own samples; of all, this rank's rows */
    float *const *row, *const *record;   /* where they are, of each */
    sti_row_update update;
    stint_session_result last;
    char folder[1100];
} sti_learner;

/* Sizes of [model]: layers as lists. STINT_E_USAGE. */
stint_status sti_learner_model(const stint_recipe *recipe, stint_click_model_desc *out);
/* Batches of a run. */
int64_t sti_learner_steps(const stint_recipe *recipe, const sti_clicks *clicks);
/* One line that says what rows are of. */
void sti_learner_identity(const sti_clicks *clicks, int rule, char line_out[160]);
/* The graph of `samples` samples for training or use: inputs "dense", "rows" and (of
 * training) "label", as many as there are; *logits_out [samples, 1]. */
stint_status sti_learner_graph(const stint_click_model_desc *model,
                               const sti_clicks *clicks, int64_t samples,
                               stint_graph *graph, stint_value *logits_out,
                               stint_value *loss_out);
/* Names of these inputs, in their order; returns how many. */
int sti_learner_inputs(const sti_clicks *clicks, bool training,
                       const char *names_out[3]);

/* Numbers and rows of samples [first, first + count) of a batch into a graph's inputs,
 * in their order; returns how many inputs that were. Samples beyond the batch's are
 * zeros. */
int sti_learner_gather(const sti_clicks *clicks, const sti_feed_slot *slot,
                       const sti_row_batch *by_row, float *const *row, int64_t width,
                       int64_t first, int64_t count, void *const *input);

/* STINT_E_BUDGET: it does not fit run.memory (plan_only tells by plan.fits instead). */
stint_status sti_learner_open(const sti_learner_desc *desc, sti_learner *learner);
void sti_learner_close(sti_learner *learner); /* also of a zeroed one */
/* From this step on: the store's course. */
stint_status sti_learner_begin(sti_learner *learner, int64_t step);
/* One step. STINT_E_FAILED: loss or gradient is not finite, rows stay. */
stint_status sti_learner_step(sti_learner *learner);

/* Rows that batches [first, batches) miss with such a store: the policy's own run,
 * without rows. 0 where all rows are in memory. */
stint_status sti_learner_plan_misses(const sti_learner *learner,
                                     const sti_row_store_desc *rows, int64_t first,
                                     int64_t batches, int64_t *missed_out);

/* The fewest rows in memory that batches [first, batches) can be run with. */
stint_status sti_learner_least_rows(const sti_learner *learner, int64_t first,
                                    int64_t batches, int64_t *rows_out);

/* At the end of a training by several ranks, behind a flush: all rows into the table
 * `folder` of rank 0, whose store is then that, for reading alone. Collective. */
stint_status sti_learner_join(sti_learner *learner, sti_comm *comm, const char *folder);
/* Bytes that this takes while the rank's own store is there. */
size_t sti_learner_join_bytes(const sti_learner *learner);

/* Memory that holds so many rows, with what lies beside them. */
size_t sti_learner_rows_budget(const sti_learner *learner, int64_t rows);

/* SHA-256 of the dense part and all rows' weights; the rows must be flushed. */
stint_status sti_learner_sha256(sti_learner *learner, char hex_out[65]);

#endif
