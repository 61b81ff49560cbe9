/* Recipes, planning, training, evaluation, prediction.
 *
 * A recipe (stint/recipe.h) says everything a result depends on; stint_recipe_check()
 * checks it as a whole. Then: stint_plan() says what the run will take, stint_train()
 * runs it, stint_eval() and stint_predict() use the model file it leaves. Calls block;
 * progress comes by callback on the calling thread; stint_stop() may be called from a
 * signal handler. */
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

/** Everything that can be judged before data is read: ranges, combinations. All at
 * once. */
STINT_API stint_status stint_recipe_check(const stint_recipe *recipe);

/* ---- planning ---- */

/** One line of the memory plan; parts add up to peak_bytes. */
typedef struct stint_plan_part {
    const char *name;   /* "parameters", "optimiser", "gradients", "saved activations",
                           "workspace", "data pipeline", "process" */
    const char *detail; /* a few words, or "" */
    size_t bytes;
} stint_plan_part;

/** How an activation gets from the forward to the backward half of a step. */
typedef enum stint_plan_form {
    STINT_PLAN_KEPT,       /* as it is */
    STINT_PLAN_SMALL,      /* as the few bits that are needed of it */
    STINT_PLAN_RECOMPUTED, /* dropped and made again, to the same bits */
    STINT_PLAN_PACKED      /* compressed within an error bound */
} stint_plan_form;

typedef struct stint_plan_tensor {
    char name[96]; /* layer and operator: "layer1.0.bn1 batch_norm" */
    stint_plan_form form;
    size_t bytes;      /* of the tensor (of its bits, where those are what is kept) */
    size_t held_bytes; /* of what is held of it between the halves */
} stint_plan_tensor;

/** A way to sum the gradients of a step over several processes. */
typedef struct stint_plan_sum {
    int bits;          /* a value: 32: float32, else 1 to 8 */
    double keep;       /* share of the values that is sent, the largest; 1: all, of
                          which a sum in 32 bits is exact */
    double rank_bytes; /* sent by a process a step, mean of all; without headers */
    double seconds;    /* over net.link, work included; NaN: no rate, or keep < 1 */
    bool fits;         /* in net.time */
    bool own;          /* the recipe's way */
} stint_plan_sum;

/** What a step sends. */
typedef struct stint_plan_net {
    int ranks;            /* 1: nothing is sent, and all below is 0 */
    int64_t shards;       /* of rank 0, which is what is planned */
    int64_t values;       /* of a sum: gradients, statistics, loss */
    int64_t float_values; /* of them, those that travel as float32 in any way */
    bool chosen;          /* the recipe chooses bits for each layer as it runs */
    bool overlap;         /* what the backward pass hides of a sum costs no time */
    double link_bits_per_s, time_s; /* net.link and net.time; 0: no rate is named */
    stint_plan_sum sums[8];         /* most bits first */
    int sum_count;
    double keep_that_fits; /* of net.keep, where no way fits net.time; 0: none either */
} stint_plan_net;

typedef struct stint_plan_result {
    size_t peak_bytes;   /* resident memory of the whole process at its highest */
    size_t budget_bytes; /* 0: none */
    bool fits;
    int threads, lanes; /* lanes: shards that run side by side */
    int64_t batch, shards, parameters;
    double forward_flop;   /* of one image or sequence */
    int64_t context;       /* tokens a sequence; 0: images */
    size_t smallest_bytes; /* the least this recipe can run in */
    /* Expected time of a step against the fastest way without a budget; 1: the same. */
    double slowdown;
    /* What goes from forward to backward half, in the order in which it is made; NULL
     * if not asked for; free with stint_plan_fini. Of one shard. */
    stint_plan_tensor *tensors;
    int tensor_count;
    /* Where a step's memory is highest, and how much of it are operands, results and
     * scratch of that one operator, which no rewriting can part. */
    char peak_at[96];
    size_t peak_at_bytes;
    int64_t batch_that_fits; /* with these shards, under the budget; 0: none */
    int64_t shards_that_fit; /* with this batch, under the budget; 0: none */
    stint_plan_part parts[16];
    int part_count;
    /* Memory of the whole process over one step: the step cut into timeline_count even
     * slices of its operators, the highest of each slice. 0: not known. */
    size_t timeline_bytes[64];
    int timeline_count;
    char *svg; /* timeline of one step, if asked for; free with stint_plan_fini */
    stint_plan_net net; /* of stint_plan_desc's ranks */
} stint_plan_result;

typedef struct stint_plan_desc {
    bool svg; /* draw result.svg */
    /* Processes that share out the shards, each on a host of its own (with net.scheme =
     * two-level net.group of them on each): the plan is that of rank 0. 0 or 1: one. */
    int ranks;
} stint_plan_desc;

/** Plan a run; data is opened (for sizes) but not read, and of several ranks none is
 * started. desc NULL: defaults. Returns STINT_OK also when it does not fit: see `fits`.
 * What stint_train() refuses of ranks is refused with the same words: STINT_E_USAGE for
 * more of them than shards, or train.batch = auto; STINT_E_UNSUPPORTED where only
 * packing with errors fits the budget. */
STINT_API stint_status stint_plan(const stint_recipe *recipe,
                                  const stint_plan_desc *desc,
                                  stint_plan_result *result_out);
STINT_API void stint_plan_fini(stint_plan_result *result);

/* ---- training ---- */

typedef struct stint_train_desc {
    bool resume; /* go on from the newest sound checkpoint in out */
    bool force;  /* an existing finished run in out may be replaced */
    stint_train_progress_fn *progress; /* may be NULL */
    /* Called once, with the plan of a run that is about to begin; may be NULL. */
    void (*planned)(void *user, const stint_plan_result *plan);
    void *user;
    stint_net *net; /* ranks that train together (net.h); NULL: this process alone */
    struct sti_profile *profile; /* for `stint train --profile`; NULL: steps are not
                                    timed by operator */
} stint_train_desc;

typedef struct stint_train_result {
    double train_loss;
    double test_loss, test_accuracy; /* accuracy 0..1; NaN without a test split */
    double images_per_s; /* training, end to end, evaluation and checkpoints left out */
    double tokens_per_s; /* of text; 0: images */
    double bits_per_byte; /* of text: test_loss (nats a token) so; else NaN */
    double seconds;
    size_t planned_peak_bytes, peak_rss_bytes;
    char weights_sha256[65]; /* of all parameters and states, in file order */
    uint64_t seed;
    int threads, lanes;
    int64_t batch, shards, steps, epochs, parameters;
    /* With train.select: whose weights the model has, from 1 (else 0), and what they
     * were chosen by: shares of the held-out images; NaN where not asked for. */
    int64_t chosen_epoch;
    double validation_accuracy, validation_mismatch;
    /* With a reference: hard, pairing and soft part of the last step's loss, and what
     * they were multiplied by; 0: not there. */
    double loss_part[3], loss_weight[3];
    int ranks;
    int64_t net_messages, net_bytes; /* sent by all ranks together */
    char out[1024];                  /* the folder, absolute */
} stint_train_result;

/** Train as the recipe says. Leaves model.safetensors, log.jsonl, recipe.ini,
 * report.html and checkpoints in the out folder. STINT_E_BUDGET before anything is
 * written when the plan exceeds run.memory; STINT_E_FAILED with the first bad tensor
 * named when the loss turns to NaN (the last good checkpoint stays);
 * STINT_E_INTERRUPTED or _TERMINATED after stint_stop(), with the checkpoint saved.
 * With ranks, all call it with the same recipe and data, and all get the same result,
 * files being rank 0's; STINT_E_PEER when one is lost. What makes one rank fail is what
 * all return. */
STINT_API stint_status stint_train(const stint_recipe *recipe,
                                   const stint_train_desc *desc,
                                   stint_train_result *result_out);

#ifdef __cplusplus
}
#endif

#endif
