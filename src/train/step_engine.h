/* The lanes of a run and all memory they work in.
 *
 * A step's batch is `shards` equal parts. Lane i works through its own consecutive
 * shards: it decodes the images of one straight into the graph's input, runs the graph,
 * and joins its result block with earlier ones along the shard tree (shard_tree.h).
 * A shard may be several micro-batches (train.accumulate, [grow]): the graph runs once
 * for each, and the lane adds their results into one block, first to last, before the
 * tree sees it. So tree, ranks and exchange do not change with the size of a batch.
 * Of a Bayesian network each micro-batch is decoded once and run `samples` times, with
 * other weights each time; its graph adds up its runs itself (sti_network.adds).
 * With one lane all threads work inside each kernel; with several, each lane is one
 * thread. Neither changes a bit of the sum. With several ranks each has its own
 * consecutive shards, and net/tree_sum.h joins what they leave.
 *
 * Nothing is allocated after sti_step_engine_create (or _rebuild). */
#ifndef STI_TRAIN_STEP_ENGINE_H
#define STI_TRAIN_STEP_ENGINE_H

#include "data/corpus.h"
#include "data/data.h"
#include "exec/exec.h"
#include "infer/evaluate.h"
#include "model/network.h"
#include "net/tree_sum.h"
#include "op/op_update.h"
#include "train/exchange.h"
#include "train/mixup.h"
#include "train/optimizer_section.h"
#include "train/overlap_thread.h"
#include "train/pack_watch.h"
#include "train/profile.h"

/* Images and labels of a micro-batch, by its number in the batch, from somewhere else
 * than a dataset. */
typedef void sti_step_fill_fn(void *user, int64_t micro, float *images,
                              int32_t *labels);

/* Whatever a graph of the caller's own is fed with, into the lane's inputs
 * (sti_exec_address). */
typedef stint_status sti_step_load_fn(void *user, int64_t micro, sti_exec *exec);

typedef struct sti_step_engine_desc {
    const sti_network *train;     /* planned for the threads of a lane; NULL: none */
    const sti_network *eval;      /* likewise */
    const stint_data *train_data; /* NULL: none */
    const stint_data *test_data;
    const stint_data *validation_data; /* images of train_data's files */
    const sti_corpus *text;            /* in place of both; NULL: images */
    const sti_field_points *field,
        *field_test; /* likewise, trained on and tested with */
    int threads, lanes;
    int64_t shards;     /* of the whole batch */
    int64_t accumulate; /* micro-batches of each, where a batch names none; 0: 1 */
    bool grows;         /* batches may name more */
    int64_t samples;    /* runs of each micro-batch, of a Bayesian network; 0: 1 */
    sti_comm
        *comm; /* ranks that share them out; NULL: this process has all. Borrowed */
    sti_exchange_desc net; /* how they are joined over ranks */
    int moments;           /* blocks of optimiser state: 0, 1 or 2 */
    bool masked;           /* with a mask of the parameters, see prune.h */
    bool masks_all;        /* of biases and normalisations, too */
    int shadows; /* further blocks laid out as the parameters, see penalty.h: 0 to 3 */
    bool averaged;          /* with averages of parameters and states, see average.h */
    sti_step_fill_fn *fill; /* in place of train_data; called by all lanes at once */
    void *fill_user;
    sti_step_load_fn *load; /* in place of all of them, likewise */
    void *load_user;
    sti_step_load_fn *take; /* with load: what leaves a micro-batch's run beside its
                               results (sti_exec_address); NULL: nothing does */
} sti_step_engine_desc;

/* Bytes of each kind of block, and how many there are. */
typedef struct sti_step_engine_sizes {
    size_t params, states, results, arena, fetch; /* of one */
    size_t fixed, mask;
    size_t kept;    /* made once, of frozen values */
    size_t moments; /* of one block of optimiser state, see moments.h */
    size_t shadows; /* of all of them */
    size_t average; /* of both blocks */
    size_t net;     /* for the sum over ranks */
    int slots;      /* result blocks, */
    int spares;     /* the last of which are those that a lane's further micro-batches
                       are run into: one a lane, or none */
    size_t total;   /* of all of these together */
} sti_step_engine_sizes;
void sti_step_engine_measure(const sti_step_engine_desc *desc,
                             sti_step_engine_sizes *sizes_out);

typedef struct sti_lane {
    void *arena, *fetch;
    sti_exec *train;
    sti_shard_stack stack;
    int first_slot;
    int64_t done_ns;        /* with a profile: when its part of a step was done */
    sti_lane_status status; /* of its part of the last step */
    const char *block;      /* that its last run was to leave results in */
    bool overflow;          /* in a run of this step: for a compressed sum */
} sti_lane;

typedef struct sti_step_engine {
    sti_step_engine_desc desc;
    sti_step_engine_sizes sizes;
    sti_shard_range local;  /* the shards of this rank */
    sti_tree_sum *sum;      /* over the ranks; NULL: there are no others, or ... */
    sti_exchange *exchange; /* where it is compressed; else NULL */
    sti_pack_watch watch;   /* with an exchange: of its packed blocks */
    sti_overlap_thread
        *overlap_thread; /* runs either beside the lanes; NULL: after them */
    sti_team team, lane_team;
    void *params, *states, *moments[2];
    void *fixed; /* tensors of a reference model; NULL: none */
    void *kept;  /* made once, by the first step, of frozen values; NULL: nothing */
    bool kept_made;
    uint8_t *mask;    /* NULL: not masked */
    void *shadow[3];  /* [desc.shadows] */
    void *average[2]; /* of parameters, of states; NULL: not asked for */
    char *results;    /* [slots] */
    sti_lane *lanes;
    sti_infer_lanes eval; /* in the memory of these lanes; zeroed without desc.eval */
    sti_data_decoders **train_decoders, **test_decoders; /* [lanes]; NULL: no images */
    sti_profile *profile; /* NULL, or begun for these lanes: steps are timed */
    double *partial;      /* sums of squares a piece */
    int64_t partial_count;
    int32_t *leaf; /* [shards]: the shard at each leaf of the tree */
    int64_t runs;  /* of the graph that the last step's results are the sum of */
    /* What the lanes of one call work on. */
    const struct sti_step_batch *batch;
} sti_step_engine;

/* Allocates and touches every page, so that what is planned is taken at once. */
stint_status sti_step_engine_create(const sti_step_engine_desc *desc,
                                    sti_step_engine **engine_out);
void sti_step_engine_destroy(sti_step_engine *engine); /* NULL is fine */
/* Go on with other networks of the same parameters, or other lanes: parameters, states
 * and moments stay, all else is made anew. After a failure only destroying is left. */
stint_status sti_step_engine_rebuild(sti_step_engine *engine,
                                     const sti_step_engine_desc *desc);
/* Free what would be made anew, before there is room for anything else. */
void sti_step_engine_release(sti_step_engine *engine);

/* A batch of samples, `images` of the network a micro-batch. Micro-batch k of shard s
 * is number s * accumulate + k of the batch: that is where its samples begin, and which
 * random numbers it draws. */
typedef struct sti_step_batch {
    const int32_t *samples; /* [shards * accumulate * images] */
    int64_t accumulate;     /* micro-batches a shard; 0: those of the engine */
    const sti_data_augment *augment;
    const sti_mixup *mixup; /* NULL: images are not mixed */
    const sti_data_norm *norm;
    const float *bounds; /* of packed tensors, for the network's input; NULL: zeros */
    const float *loss_weights;  /* [STI_LOSS_PARTS], if asked for; NULL: zeros */
    const float *class_weights; /* [classes], likewise */
    float kl_weight;            /* what KL counts, likewise */
    uint64_t seed;
    uint64_t noise; /* shuffles the order in which shards are summed; 0: their own */
    int64_t step;
    /* How a graph that updates its parameters does so (sti_step_engine_update_step).
     * NULL: they stay as they are. */
    const sti_update_step *update;
    bool trial; /* of which only bounds are taken: a compressed sum owes nothing */
} sti_step_batch;

/* Has a block of a lane (user: the engine) been too small in this step, up to the run
 * that has just packed? Called by the lane. */
bool sti_step_lane_overflows(void *user, int lane);

/* Micro-batches of each of its shards. */
int64_t sti_step_accumulate(const sti_step_engine *engine, const sti_step_batch *batch);

typedef struct sti_step_result {
    char *block;          /* the sum over shards, a RESULT block */
    double loss, correct; /* mean of the micro-batches; right answers, of text NaN */
    double squares;       /* mean |g|^2 of the micro-batches; NaN: not asked for */
    double part[STI_LOSS_PARTS]; /* of a loss against a reference, means; NaN */
} sti_step_result;

/* Forward and backward over all shards, and their sum. A failure is that of the lowest
 * shard. */
stint_status sti_step_engine_run(sti_step_engine *engine, const sti_step_batch *batch,
                                 sti_step_result *result_out);
/* After a result that is not finite: find the first bad tensor. Always a failure. */
stint_status sti_step_engine_diagnose(sti_step_engine *engine,
                                      const sti_step_batch *batch);
/* A scalar metric of the training graph in a result block, summed over micro-batches.
 */
double sti_step_engine_metric(const sti_step_engine *engine, const char *block,
                              stint_value value);
/* Sum of squares of the gradients in a result block, in double by a fixed order. */
double sti_step_engine_gradient_squares(sti_step_engine *engine, const char *block);
/* Which of the engine's images are evaluated. */
typedef enum sti_evaluation_of {
    STI_EVALUATE_TEST, /* of text: its test part */
    STI_EVALUATE_TRAIN,
    STI_EVALUATE_VALIDATION
} sti_evaluation_of;

/* sti_evaluate by desc.eval, in the memory that steps work in. */
stint_status sti_step_engine_evaluate(sti_step_engine *engine, sti_evaluation_of of,
                                      const sti_data_norm *norm,
                                      sti_evaluation *evaluation,
                                      sti_evaluation_progress_fn *progress, void *user);

/* Blocks of optimiser state that a recipe needs: 0, 1 or 2. */
int sti_update_moments(const sti_optimizer_values *optimizer);
/* What a gradient of this norm is multiplied by, for optimizer.clip: 1 or less. */
double sti_update_clip(const sti_optimizer_values *optimizer, double norm);
/* The operator that updates a parameter within a run (sti_graph_update_at_once). */
const sti_op *sti_update_op(const sti_optimizer_values *optimizer);
/* What such a run applies, of one micro-batch and without clipping; `seen`, which is
 * cleared, outlives the run. */
sti_update_step sti_step_engine_update_step(const sti_step_engine *engine,
                                            const sti_optimizer_values *optimizer,
                                            double lr, int64_t step,
                                            sti_update_seen *seen);
/* One optimiser step of n numbers without decay; first and second: their moments. */
void sti_update_numbers(const sti_optimizer_values *optimizer, double lr, int64_t step,
                        int64_t n, float *x, const float *gradient, float *first,
                        float *second);
/* One optimiser step (unless the run made it) and the new running statistics; `step`
 * counts from 0. The mean of
 * the gradients of the last step's micro-batches is taken `clip` times (1: as it is).
 */
void sti_step_engine_update(sti_step_engine *engine,
                            const sti_optimizer_values *optimizer, double lr,
                            double clip, int64_t step, const char *block);

#endif
