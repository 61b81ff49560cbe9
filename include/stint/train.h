/* Planning, training, evaluation, prediction.
 *
 * A recipe (stint/recipe.h) says everything that a result depends on;
 * stint_recipe_check() checks it as a whole. Then stint_plan() says what the run will
 * take, stint_train() runs it, and stint_eval() and stint_predict() use the model file
 * that it leaves:
 *
 *   stint_recipe *recipe = NULL;
 *   stint_train_result result;
 *   stint_status st = stint_recipe_load("mine.ini", &recipe);
 *   if (st == STINT_OK)
 *       st = stint_recipe_set(recipe, "run.memory", "150M");
 *   if (st == STINT_OK)
 *       st = stint_train(recipe, &(stint_train_desc){0}, &result);
 *   if (st != STINT_OK)
 *       fprintf(stderr, "%s\n", stint_last_error());
 *   stint_recipe_destroy(recipe);
 *
 * A budget that cannot be met is refused by stint_train() with STINT_E_BUDGET before
 * anything is written; the text of stint_last_error() then names one that can. To know
 * beforehand, call stint_plan() with the same recipe.
 *
 * Calls block. Progress comes by callback on the calling thread. stint_stop() may be
 * called from a signal handler or another thread; it is for the whole process, so one
 * training or evaluation runs at a time. */
#ifndef STINT_TRAIN_H
#define STINT_TRAIN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "stint/data.h"
#include "stint/infer.h"
#include "stint/model.h"
#include "stint/net.h"
#include "stint/recipe.h"
#include "stint/status.h"
#include "stint/stop.h"
#include "stint/store.h"
#include "stint/text.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- recipes ---- */

/** Judge everything that can be judged before data is read: ranges and combinations.
 *
 * All complaints come at once, one a line, with STINT_E_USAGE. stint_plan() and
 * stint_train() begin with it. STINT_E_MEMORY. */
STINT_API stint_status stint_recipe_check(const stint_recipe *recipe);

/* ---- planning ---- */

/** One line of the memory plan; all lines add up to peak_bytes. The texts are constants
 * of the library. */
typedef struct stint_plan_part {
    /* "parameters", "optimiser", "gradients", "saved activations", "workspace", "data
     * pipeline", "process" and the like. */
    const char *name;
    /* A few words, or "". */
    const char *detail;
    size_t bytes;
} stint_plan_part;

/** How an activation gets from the forward to the backward half of a step. Only the
 * last way changes results, within error.tau (docs/memory.md). */
typedef enum stint_plan_form {
    /* As it is. */
    STINT_PLAN_KEPT,
    /* As the few bits that are needed of it. */
    STINT_PLAN_SMALL,
    /* Dropped and made again, to the same bits. */
    STINT_PLAN_RECOMPUTED,
    /* Compressed within an error bound. */
    STINT_PLAN_PACKED
} stint_plan_form;

/** An activation that the backward half of a step reads. */
typedef struct stint_plan_tensor {
    /* Layer and operator: "layer1.0.bn1 batch_norm". */
    char name[96];
    /* What the plan does with it. */
    stint_plan_form form;
    /* Bytes of the tensor (of its bits, where those are what is kept). */
    size_t bytes;
    /* Bytes of what is held of it between the halves. */
    size_t held_bytes;
} stint_plan_tensor;

/** A way to sum the gradients of a step over several processes. */
typedef struct stint_plan_sum {
    /* Bits a value: 32 for float32, else 1 to 8. */
    int bits;
    /* Share of the values that is sent, the largest ones; 1: all. A sum of all in 32
     * bits is exact. */
    double keep;
    /* Bytes that a process sends in a step, mean of all, without headers. */
    double rank_bytes;
    /* Seconds over net.link, work included. NaN: no rate is named, or keep < 1. */
    double seconds;
    /* It fits into net.time. */
    bool fits;
    /* It is the recipe's way. */
    bool own;
} stint_plan_sum;

/** What a step sends, for a plan of several processes (docs/network.md). */
typedef struct stint_plan_net {
    /* Processes. 1: nothing is sent, and all below is 0. */
    int ranks;
    /* Shards of rank 0, which is what is planned. */
    int64_t shards;
    /* Values of a sum: gradients, statistics, loss. */
    int64_t values;
    /* How many of them travel as float32 in any way. */
    int64_t float_values;
    /* The recipe chooses bits for each layer as it runs. */
    bool chosen;
    /* What the backward pass hides of a sum costs no time. */
    bool overlap;
    /* net.link in bits a second, and net.time in seconds; 0: no rate is named. */
    double link_bits_per_s, time_s;
    /* [sum_count], most bits first. */
    stint_plan_sum sums[8];
    int sum_count;
    /* The net.keep that fits net.time where no way does; 0: none either. */
    double keep_that_fits;
} stint_plan_net;

/** Steps of one batch. */
typedef struct stint_plan_stage {
    /* Its first epoch, from 1. */
    int64_t epoch;
    /* Images of a batch = train.shards * accumulate micro-batches of `images`. */
    int64_t batch, accumulate, images;
    /* What [schedule]'s learning rate is multiplied by. */
    double lr_factor;
    /* Updates, and bytes that a rank sends for them (0: one process; NaN: how they are
     * coded is chosen under way). */
    int64_t steps;
    double rank_bytes;
} stint_plan_stage;

/** Whether a plan fits the memory that this process can have: that of the machine, or
 * what its control group (version 1 or 2) allows where that is less. */
typedef struct stint_plan_machine {
    /* 0: not known, and then it holds. */
    size_t bytes;
    /* Where that is from: "memory of this machine", "memory.max of its control group".
     * A constant of the library. */
    const char *source;
    /* The peak is within it. What follows is 0 where it is. */
    bool holds;
    /* Largest batch with these shards that is within it; 0: none. */
    int64_t batch_that_fits;
    /* A run.memory that is within it and that the recipe can run in; 0: none. */
    size_t memory_that_fits;
} stint_plan_machine;

/** How the expressions of one set of points of a field's loss get their derivatives. */
typedef struct stint_plan_derivatives {
    /* The key: "inside", "border", "start" or "data". */
    const char *set;
    /* By Taylor series in one forward pass; else by reverse over reverse. */
    bool jets;
    /* Series of d + 2 coefficients: second derivatives stand in Laplacians alone. */
    bool laplacian;
    /* Multiply-adds of matrix products a point and step of either way, with
     * field.by = auto; NaN: not counted, since one was asked for. Infinite: beyond what
     * is built to be compared. */
    double reverse_multiply_adds, jets_multiply_adds;
} stint_plan_derivatives;

/** What a run will take. tensors, stages and svg belong to the result: stint_plan_fini
 * frees them. The same recipe, data and desc give the same plan in every process. */
typedef struct stint_plan_result {
    /* Resident memory of the whole process at its highest. */
    size_t peak_bytes;
    /* run.memory; 0: no budget. */
    size_t budget_bytes;
    /* The peak is within the budget. */
    bool fits;
    /* Threads, and shards that run side by side. */
    int threads, lanes;
    /* Images (or sequences) of a batch, its parts, and trained values. */
    int64_t batch, shards, parameters;
    /* Floating-point operations of the forward pass of one image or sequence. */
    double forward_flop;
    /* Tokens of a sequence; 0: images, or points of a field where that is true. */
    int64_t context;
    bool of_field;
    /* [derivative_count]: sets of a field with derivatives in their expressions. */
    stint_plan_derivatives derivatives[4];
    int derivative_count;
    /* The least that this recipe can run in. */
    size_t smallest_bytes;
    /* Expected time of a step against the fastest way without a budget; 1: the same. */
    double slowdown;
    /* What goes from the forward to the backward half of one shard, in the order in
     * which it is made: [tensor_count]; may be NULL. */
    stint_plan_tensor *tensors;
    int tensor_count;
    /* The operator at which a step's memory is highest, and how much of it are its
     * operands, results and scratch, which no rewriting can part. */
    char peak_at[96];
    size_t peak_at_bytes;
    /* Largest batch with these shards under the budget; 0: none. */
    int64_t batch_that_fits;
    /* Shards that this batch would fit the budget with; 0: none. */
    int64_t shards_that_fit;
    /* A later stage of growing batches has larger micro-batches (grow.images), of which
     * the peak is: images of those that do not fit, and of the largest that do; 0: all
     * do. */
    int64_t stage_too_large, images_that_fit;
    /* Lines of the plan, [part_count]. */
    stint_plan_part parts[20];
    int part_count;
    /* Memory of the whole process over one step: the step cut into timeline_count even
     * slices of its operators, the highest of each slice. 0: not known. */
    size_t timeline_bytes[64];
    int timeline_count;
    /* Picture of one step, NUL-terminated, if it was asked for; else NULL. */
    char *svg;
    /* What a step sends between stint_plan_desc's ranks. */
    stint_plan_net net;
    /* [stage_count], one where batches do not grow; may be NULL. */
    stint_plan_stage *stages;
    int stage_count;
    /* What a rank sends in the whole run, and would if all its batches were like the
     * first; as a stage's. */
    double run_rank_bytes, run_rank_bytes_fixed;
    /* What there is of memory here, whatever run.memory says. */
    stint_plan_machine machine;
} stint_plan_result;

/** What to plan. All zero: one process, no picture. */
typedef struct stint_plan_desc {
    /* Draw result.svg. */
    bool svg;
    /* Processes that share out the shards, each on a host of its own (with net.scheme =
     * two-level, net.group of them on each host): the plan is that of rank 0. 0 or 1:
     * one process. */
    int ranks;
} stint_plan_desc;

/** Plan a run. Data is opened for its sizes, but not read, and no rank is started.
 *
 * desc NULL: all zero. STINT_OK also when the plan does not fit: see `fits`, and for
 * the memory of this machine, of which a warning is logged, `machine`. The caller frees
 * the result by stint_plan_fini. What stint_train() refuses is refused with the same
 * words, ranks included: STINT_E_USAGE for a recipe that is not sound, more ranks than
 * shards, or several with train.batch = auto; STINT_E_UNSUPPORTED for several ranks
 * where only packing with errors fits the budget; STINT_E_INPUT and STINT_E_IO for
 * data; STINT_E_MEMORY. */
STINT_API stint_status stint_plan(const stint_recipe *recipe,
                                  const stint_plan_desc *desc,
                                  stint_plan_result *result_out);

/** Free what a plan points to. A result that is all zero is fine; so is a second call.
 */
STINT_API void stint_plan_fini(stint_plan_result *result);

/* ---- training ---- */

/** Times of the operators of a step; opaque. Only the program `stint` makes one, for
 * `stint train --profile`; its maker owns and frees it. */
typedef struct sti_profile stint_profile;

/** How to train. All zero is the usual. */
typedef struct stint_train_desc {
    /* Go on from the newest sound checkpoint in the out folder. */
    bool resume;
    /* A finished run in the out folder may be replaced. */
    bool force;
    /* Train though the plan exceeds what this process can have (stint_plan_machine). */
    bool force_memory;
    /* May be NULL. */
    stint_train_progress_fn *progress;
    /* Called once, with the plan of a run that is about to begin; may be NULL. The plan
     * holds during the call only. */
    void (*planned)(void *user, const stint_plan_result *plan);
    /* Passed through to both. */
    void *user;
    /* Ranks that train together (net.h); NULL: this process alone. Borrowed. */
    stint_net *net;
    /* Where operators are timed; NULL, for all but the program: nowhere. Borrowed. */
    stint_profile *profile;
} stint_train_desc;

/** What a training came to. It is a plain value, with nothing to free; `stint train
 * --json` prints it. */
typedef struct stint_train_result {
    /* Mean over the last epoch's training batches. */
    double train_loss;
    /* Accuracy is a share; both are NaN without a test split. */
    double test_loss, test_accuracy;
    /* Over the classes that have test images: the mean of the shares answered right,
     * the lowest of them, and the name of its class; NaN and "" without test images. */
    double balanced_accuracy, lowest_recall;
    char lowest_class[256];
    /* Speed of the training end to end, evaluation and checkpoints left out. */
    double images_per_s;
    /* The same in tokens of a text; 0: images. */
    double tokens_per_s;
    /* Signal to noise of a field: 10 log10(4 / test_loss), for values from -1 to 1; NaN
     * otherwise. Images, above, are points then. */
    double psnr;
    /* With field.exact: the root of test_loss over the root of the solution's mean
     * square; NaN otherwise. psnr is NaN then. */
    double relative_l2;
    /* The test_loss of a text (nats a token) in bits a byte; NaN for images. */
    double bits_per_byte;
    /* Wall time of the call. */
    double seconds;
    /* Announced beforehand, and measured when all is done, the report too. */
    size_t planned_peak_bytes, peak_rss_bytes;
    /* SHA-256 of all parameters and states in the order of the model file; 64 hex
     * digits. Two runs with one value have the same weights. */
    char weights_sha256[65];
    /* What the recipe came to, once everything was chosen. */
    uint64_t seed;
    int threads, lanes;
    int64_t batch, shards, steps, epochs, parameters;
    /* Images of the first step; `batch` is that of the last, which [grow] makes larger.
     */
    int64_t batch_first;
    /* Batch at which the noise of gradients is as large as they are, at the end of a
     * run that grows by it; NaN: not known. */
    double noise_scale;
    /* Divergence of a Bayesian network's weights ([bayes]) from their prior, nats
     * summed over the weights, and the deviations that 5, 50 and 95 % of them are
     * below, after the last step; NaN: of any other network. */
    double kl, sigma[3];
    /* With train.select: the epoch, from 1, whose weights the model has; else 0. */
    int64_t chosen_epoch;
    /* What it was chosen by, shares of the held-out images; NaN where not asked for,
     * and of text. */
    double validation_accuracy, validation_mismatch;
    /* The chosen epoch's loss on what is held out, nats an image or a token; NaN. */
    double validation_loss;
    /* With a reference: hard, pairing and soft part of the last step's loss, and what
     * they were multiplied by; 0: not there. */
    double loss_part[3], loss_weight[3];
    /* Processes that trained. */
    int ranks;
    /* Sent by all ranks together. */
    int64_t net_messages, net_bytes;
    /* The folder, absolute. */
    char out[1024];
} stint_train_result;

/** Train as the recipe says.
 *
 * Leaves model.safetensors, log.jsonl, recipe.ini, report.html and checkpoints in the
 * out folder. *result_out is filled with STINT_OK only.
 *
 * STINT_E_USAGE: the recipe is not sound, or does not fit the run to resume;
 * STINT_E_BUDGET, before anything is written: the plan exceeds run.memory, or what
 * there is here; STINT_E_FAILED: the loss turns to NaN (the first bad tensor is named,
 * the last good checkpoint stays); STINT_E_INPUT and STINT_E_IO: data, models,
 * checkpoints, the out folder; STINT_E_MEMORY; STINT_E_INTERRUPTED or _TERMINATED after
 * stint_stop(), with the checkpoint saved.
 *
 * With ranks, all call it with the same recipe and data, and all get the same result;
 * rank 0 writes the files. What makes one rank fail is what all return, and
 * STINT_E_PEER when one is lost. */
STINT_API stint_status stint_train(const stint_recipe *recipe,
                                   const stint_train_desc *desc,
                                   stint_train_result *result_out);

#ifdef __cplusplus
}
#endif

#endif
