/* Recommendation models whose tables of embeddings may be larger than memory: a recipe
 * with model.name = dlrm is trained, planned and judged here.
 *
 *   stint_recipe *recipe = NULL;
 *   stint_embed_result result;
 *   stint_status st = stint_recipe_load("dlrm-criteo.ini", &recipe);
 *   if (st == STINT_OK && stint_embed_wanted(recipe))
 *       st = stint_embed_train(recipe, &(stint_embed_desc){0}, &result);
 *   stint_recipe_destroy(recipe);
 *
 * Text is read once and leaves a file of samples in which ids are ranks by frequency.
 * The dense part of the model is trained as any graph (stint/session.h); rows of the
 * table stand beside it, in pages of a file, and those of the batches at hand in
 * memory. run.memory bounds the whole process, embedding.cache the rows alone. What is
 * in memory, which policy chose it, how pages are read, threads, lanes, ranks and a
 * resume change no bit of the result: one record counts, and its gradients are summed
 * in the order of the batch.
 *
 * The folder of a run holds model.safetensors (dense weights, recipe), embeddings/ (the
 * rows, their ids, and journals of old pages), log.jsonl, recipe.ini, report.html and
 * checkpoints/. Model file and embeddings/ together are the model.
 *
 * Calls block. stint_stop() (stint/stop.h) ends a training after the step under way,
 * with its checkpoint saved. One training runs at a time in a process; two on one
 * folder of rows are refused. */
#ifndef STINT_EMBED_H
#define STINT_EMBED_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "stint/net.h"
#include "stint/recipe.h"
#include "stint/status.h"
#include "stint/train.h"

#ifdef __cplusplus
extern "C" {
#endif

/** Does this recipe train a recommendation model? */
STINT_API bool stint_embed_wanted(const stint_recipe *recipe);

/** How far a training is. */
typedef struct stint_embed_progress {
    /* Steps done, of all. */
    int64_t step, steps;
    /* Samples a second so far, and the loss of the last step. */
    double examples_per_s, loss;
    /* Share of the rows that batches had that was in memory already; rows that a batch
     * has several times count once. */
    double hit_ratio;
    /* Resident memory now; 0: not known. */
    size_t rss_bytes;
    /* Estimate of what is left, from the mean time of a step so far; the evaluation at
     * the end is not in it. */
    double seconds_left;
} stint_embed_progress;

/** Receives progress on the calling thread; *progress holds during the call only. It is
 * called a few times a second, should return soon, and may call stint_stop(). */
typedef void stint_embed_progress_fn(void *user, const stint_embed_progress *progress);

/** How to train. All zero is the usual. */
typedef struct stint_embed_desc {
    /* Go on from the newest sound checkpoint of the folder: rows are taken back to it.
     * Replace a run that is there. Without either a folder that holds one is refused.
     */
    bool resume, force;
    /* Called between steps; may be NULL. */
    stint_embed_progress_fn *progress;
    /* Called once with the plan of a run that is about to begin; may be NULL. */
    void (*planned)(void *user, const stint_plan_result *plan);
    /* Passed on to both. */
    void *user;
    /* Ranks that share the shards out; NULL: this process alone. Borrowed. */
    stint_net *net;
} stint_embed_desc;

/** Answers of a model against labels. */
typedef struct stint_embed_scores {
    /* Samples, and those of label 1. */
    int64_t count, positives;
    /* Area under the ROC curve, exact, ties half; NaN where all labels are one. */
    double auc;
    /* Mean negative log-likelihood, in nats; NaN of no sample. */
    double log_loss;
    /* Share of p > 1/2 that is right; mean p over the share of ones. */
    double accuracy, calibration;
} stint_embed_scores;

/** What a training came to. It is a plain value, with nothing to free; `stint train
 * --json` prints it. */
typedef struct stint_embed_result {
    /* Answers on the test part, at the end. */
    stint_embed_scores test;
    /* Mean loss of the last steps (100 at most). */
    double train_loss;
    /* Samples a second in training, and wall time. */
    double examples_per_s, seconds;
    /* Rows of the table, bytes of one with its optimiser's state, and of all on disk;
     * rows in memory. */
    int64_t rows, row_bytes, table_bytes, cache_rows;
    /* Different rows that batches had; of these not in memory, and as planned; rows
     * that gave way, and of those changed. Of this process. */
    int64_t rows_touched, rows_missed, rows_missed_planned, rows_given,
        rows_given_dirty;
    /* Pages read and written, the size of one, bytes of journals and of the dense
     * parts' checkpoints. */
    int64_t pages_read, pages_written, page_bytes, checkpoint_bytes;
    /* Seconds that steps waited for rows; the rest of the reading went on beside
     * them. */
    double waited_s;
    /* Announced beforehand, and measured at the end. */
    size_t planned_peak_bytes, peak_rss_bytes;
    /* Threads; shards that ran side by side; processes. */
    int threads, lanes, ranks;
    /* What the recipe and the data came to: batches done, samples of one and its parts,
     * trained values of the dense part, samples there are and those trained on. */
    int64_t steps, batch, shards, parameters, samples, train_samples;
    /* The recipe's train.seed. */
    uint64_t seed;
    /* How pages went: "uring", "threads" or "mmap". */
    char io[16];
    /* SHA-256 of the dense weights and all rows; runs with one value learned the same.
     */
    char weights_sha256[65];
    /* The folder, absolute. */
    char out[1024];
} stint_embed_result;

/** Train a recommendation model as the recipe says.
 *
 * STINT_E_USAGE: the recipe is not sound, or not that of the run to resume;
 * STINT_E_INPUT: the data (file, line and column are named), or rows of other data;
 * STINT_E_BUDGET: it does not fit run.memory, or a batch has more rows than fit beside
 * it; STINT_E_FAILED: the loss is not finite; STINT_E_IO: a disk that is full leaves
 * the last checkpoint sound; STINT_E_INTERRUPTED, _TERMINATED after stint_stop(). */
STINT_API stint_status stint_embed_train(const stint_recipe *recipe,
                                         const stint_embed_desc *desc,
                                         stint_embed_result *result_out);

/** A point of the curve of cache sizes. */
typedef struct stint_embed_point {
    /* Memory for rows, and how many it holds. */
    int64_t cache_bytes, cache_rows;
    /* Rows that an epoch's batches miss, exactly; pages to be read for them at most. */
    int64_t rows_missed, pages_read;
    /* Seconds of a step: the larger of the dense part and the pages' time. */
    double step_s;
} stint_embed_point;

/** What a training would take. */
typedef struct stint_embed_plan {
    /* Memory, part by part; freed by stint_plan_fini(&plan.memory). */
    stint_plan_result memory;
    /* As in a result; rows that the run's batches will miss. */
    int64_t rows, row_bytes, table_bytes, cache_rows, cache_bytes, rows_missed;
    /* Likewise: batches of the run, samples of one, all there are, those trained on. */
    int64_t steps, batch, samples, train_samples;
    /* Seconds of a step, as planned, and of its dense part, as measured. */
    double step_s, dense_step_s;
    /* Reads of a page a second that the disk gave at the usual depth; 0: not measured,
     * all rows are in memory. */
    double reads_per_s;
    /* The curve, from few rows in memory to all: [point_count]. */
    stint_embed_point point[8];
    int point_count;
} stint_embed_plan;

/** Plan a training: the order of the batches is run through the policy, some steps are
 * made for their time, and the disk is asked how fast it is. Errors as above; a plan
 * that does not fit is STINT_OK with memory.fits false. */
STINT_API stint_status stint_embed_plan_of(const stint_recipe *recipe,
                                           stint_embed_plan *plan_out);

/** Which samples of a file. */
typedef enum stint_embed_split {
    /* Those behind the training part (data.validation). */
    STINT_EMBED_TEST,
    STINT_EMBED_TRAIN,
    STINT_EMBED_ALL
} stint_embed_split;

/** How to judge, or use, a model. */
typedef struct stint_embed_eval_desc {
    /* Text of the format that the model was trained on, or the very file of ranks.
     * Required. */
    const char *data;
    /* Which samples of it. */
    stint_embed_split split;
    /* Memory for rows; 0: all rows, but at most 1 GiB. Threads; 0: every CPU. */
    size_t cache_bytes;
    int threads;
    /* A label column need not be there: labels are 0 then. */
    bool unlabelled;
    /* Called for each run of samples in the order of the file: probabilities of a click
     * [count], the first of which is sample `first` of those asked for. May be NULL. A
     * status other than STINT_OK ends the call with it. */
    stint_status (*scores)(void *user, int64_t first, int64_t count,
                           const float *probability);
    void *user;
} stint_embed_eval_desc;

/** Run a model (a run's folder, or its model file beside embeddings/) over data. Rows
 * are opened for reading alone: any number of processes may do so at once.
 * STINT_E_INPUT: no such model, or data of other columns; STINT_E_IO; STINT_E_MEMORY.
 */
STINT_API stint_status stint_embed_eval(const char *model,
                                        const stint_embed_eval_desc *desc,
                                        stint_embed_scores *scores_out);

/** Is this folder a run of a recommendation model, or this file its model? False, too,
 * where it cannot be read. */
STINT_API bool stint_embed_is_run(const char *path);

/** Write a model's rows with their ids to a safetensors file, as they stream by:
 * tensors "embeddings" [rows, width] f32, "field" [rows] i32, "id_start" [rows + 1] i64
 * and "ids" [bytes] u8, where the id of row r is the bytes from id_start[r] on; the row
 * of rare and unseen ids of a field has an empty id and the field -1 - field. Fields'
 * names are in the metadata. STINT_E_INPUT, STINT_E_IO, STINT_E_MEMORY. */
STINT_API stint_status stint_embed_export(const char *model, const char *path);

/** Write report.html of such a run anew, from its log. STINT_E_INPUT: no such run;
 * STINT_E_IO; STINT_E_MEMORY. */
STINT_API stint_status stint_embed_report(const char *run);

#ifdef __cplusplus
}
#endif

#endif
