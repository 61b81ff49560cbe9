/* A trained model made as small, or as fast, as is asked for, at the accuracy that is
 * allowed. `stint shrink` is this call and docs/shrink.md explains it.
 *
 *   stint_recipe *recipe = NULL;
 *   stint_shrink_result result;
 *   stint_shrink_desc desc = {.size_bytes = 200 << 10};
 *   stint_status st = stint_shrink_recipe("runs/a/model.safetensors", &recipe);
 *   if (st == STINT_OK)
 *       st = stint_recipe_set(recipe, "data.path", "cifar10.tar");
 *   if (st == STINT_OK)
 *       st = stint_shrink(recipe, &desc, &result);
 *   if (st == STINT_OK)
 *       printf("%zu bytes, %.2f %% lost\n", result.bytes, 100 * result.accuracy_drop);
 *   stint_shrink_fini(&result);
 *   stint_recipe_destroy(recipe);
 *
 * A scheme (recipe key shrink.scheme) says what weights are made into, a method
 * (shrink.method) how accuracy is won back by training, and where the scheme says
 * `auto` a search looks for the share that is removed. Every share that is tried is a
 * training of its own, a sample: a function of model, recipe, share and seed. */
#ifndef STINT_SHRINK_H
#define STINT_SHRINK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "stint/infer.h"
#include "stint/recipe.h"
#include "stint/status.h"

#ifdef __cplusplus
extern "C" {
#endif

/** What is made least where an accuracy is the only limit. */
typedef enum stint_shrink_objective {
    /* Latency where one is asked for, else size. */
    STINT_SHRINK_OBJECTIVE_AUTO,
    /* Bytes of the file. */
    STINT_SHRINK_OBJECTIVE_SIZE,
    /* Time of a batch. */
    STINT_SHRINK_OBJECTIVE_LATENCY
} stint_shrink_objective;

/** How the share is looked for. All of them take at most `samples` trainings, and stop
 * where the bracket is 0.005 wide. */
typedef enum stint_shrink_search {
    /* Halving, with repeats of what is too close to call. */
    STINT_SHRINK_SEARCH_BISECT,
    /* A Gaussian process of the accuracies so far chooses the next share; with the
     * objective latency a second one, of times, what is tried within the limit. */
    STINT_SHRINK_SEARCH_BAYES,
    /* Even steps, for comparison. */
    STINT_SHRINK_SEARCH_GRID
} stint_shrink_search;

/** One share that was tried. */
typedef struct stint_shrink_sample {
    /* The share removed where the scheme says auto; where it says it nowhere, the share
     * of the weights of convolutions and dense layers that are zero, or that products
     * of thin matrices do without. */
    double sparsity;
    /* Seed of its training. */
    uint64_t seed;
    /* A share of the judged images, of the file as it was read back. */
    double accuracy;
    /* Answers other than the model's, a share of the judged images. */
    double mismatch_rate;
    /* Size of the whole file. */
    int64_t bytes;
    /* Median of a batch; NaN: not measured. */
    double latency_ms;
    /* Every limit is kept, by this sample's own answers. */
    bool met;
    /* It was there already, from a run that is gone on with. */
    bool reused;
} stint_shrink_sample;

/** A weight before and after. */
typedef struct stint_shrink_layer {
    /* Name of the tensor, and its form in the file in a few words. */
    char name[96], form[64];
    /* Numbers, and those other than zero. */
    int64_t weights, nonzeros;
    /* What they take in the file, information of their positions included. */
    double bytes;
    /* Time of the layer's operators after and before; NaN: not measured. */
    double ms, base_ms;
} stint_shrink_layer;

/** Limits, and how to keep them. All zero: the scheme as it is. */
typedef struct stint_shrink_desc {
    /* Most bytes of the whole file; 0: any. */
    size_t size_bytes;
    /* Longest time of a batch, in seconds, or as a share of the model's; 0: any. */
    double latency_s, latency_share;
    /* With limits_drop: the most accuracy that may be lost, a share (0.003: 0.3 of 100
     * images). With limits_mismatch: the most answers that may change, a share. */
    bool limits_drop, limits_mismatch;
    /* Both are of the images that judge. Either alone gives the smallest file, or with
     * the objective latency the fastest model, that keeps it; beside a size or latency,
     * both limits are to be kept. */
    double accuracy_drop, mismatch;
    /* What is made least within a limit on answers alone. */
    stint_shrink_objective objective;
    /* How a share is looked for that is limited by answers; shares for a size are
     * guessed from the model's own weights and corrected. */
    stint_shrink_search search;
    /* Most samples; 0: 10. */
    int samples;
    /* Images of a batch whose latency counts; 0: 1. */
    int64_t batch;
    /* Go on in a folder that holds samples; replace one. */
    bool resume, force;
    /* The progress of each sample's training; may be NULL. */
    stint_train_progress_fn *progress;
    /* After each sample; may be NULL. */
    void (*sampled)(void *user, const stint_shrink_sample *sample);
    /* Passed through to both. */
    void *user;
} stint_shrink_desc;

/** What came out. Samples and layers belong to the result: stint_shrink_fini frees
 * them. */
typedef struct stint_shrink_result {
    /* As they were chosen; the scheme with its shares. */
    char scheme[1024], method[16];
    /* The chosen sample's. */
    double sparsity;
    /* Size of the file, and of the model's numbers in float32. */
    int64_t bytes, base_bytes;
    /* Median of a batch, and the model's; NaN: not measured. */
    double latency_ms, base_ms;
    /* Shares of the judged images; the drop is base less accuracy. */
    double accuracy, base_accuracy, accuracy_drop, mismatch_rate;
    /* Shares of the images that nothing was decided by; NaN: there are none. */
    double test_accuracy, base_test_accuracy;
    /* Images that judged: their number, and where they come from: "validation" or "half
     * of the test images". */
    int64_t judged;
    const char *judged_by;
    /* Every limit is kept: always, with STINT_OK. */
    bool met;
    /* Numbers of the compressed weights, and those other than zero. */
    int64_t weights, nonzeros;
    /* Where the search stopped: the largest share known to keep the accuracy, the
     * smallest known not to. Both 0: there was no search. */
    double bracket[2];
    /* Hash of the weights as they are used. */
    char weights_sha256[65];
    /* The folder, absolute. */
    char out[1024];
    /* What was tried, in that order: [sample_count]. */
    stint_shrink_sample *samples;
    int sample_count;
    /* Weights of convolutions and dense layers, in the order of the network:
     * [layer_count]. */
    stint_shrink_layer *layers;
    int layer_count;
} stint_shrink_result;

/** What a plan says of one share. */
typedef struct stint_shrink_guess {
    /* The share removed where the scheme says auto. */
    double sparsity;
    /* Size of the file if the weights were projected and not trained. */
    int64_t bytes;
    /* Numbers of the scheme's weights other than zero. Biases and normalisations that
     * stay as they are do not count. */
    int64_t nonzeros;
    /* Median time of a batch of that, and the model's in the same rounds. */
    double latency_ms, base_ms;
} stint_shrink_guess;

/** What a search would cost. Plain values, nothing to free. */
typedef struct stint_shrink_plan_result {
    /* As the search would have them; the scheme with its `auto`. */
    char scheme[1024], method[16];
    /* Shares and what files would take, [guess_count]; one where the scheme says `auto`
     * nowhere. */
    stint_shrink_guess guesses[32];
    int guess_count;
    /* At most so many samples, of so many training steps each. */
    int samples;
    int64_t sample_steps;
    /* About how long the training of one sample takes here, in seconds, by a few steps
     * of such a training; without evaluations. 0: there is no training. */
    double sample_s;
    /* Size of the model's numbers in float32, which ratios are over: file headers are
     * counted in `bytes` alone. */
    int64_t base_bytes;
} stint_shrink_plan_result;

/** The recipe that a model is shrunk by: the model's own, with training to begin from
 * it. Keys of shrink and train may then be set; data.path must be.
 *
 * model_path: a file, or the folder of a run. STINT_E_UNSUPPORTED: a text model;
 * otherwise as stint_model_open. The caller destroys the recipe. */
STINT_API stint_status stint_shrink_recipe(const char *model_path,
                                           stint_recipe **recipe_out);

/** Shrink the model that the recipe begins from.
 *
 * Leaves model.safetensors (a compact file, which everything that takes a model reads),
 * samples/ and shrink.html in the folder run.out. Samples are judged by images that the
 * model was not trained on: those that it held out (its train.validation), else a fixed
 * half of the test images; the others are what the test accuracies are of.
 *
 * *result_out is to be freed by stint_shrink_fini whatever comes back. STINT_E_USAGE: a
 * scheme or recipe that is not sound; STINT_E_BUDGET: a limit cannot be kept, or not
 * both (the result holds what came nearest, and its file stays); STINT_E_INPUT: no
 * images to judge by, others than the model's, a model that is none;
 * STINT_E_UNSUPPORTED: a text model; what stint_train() fails with. Blocks, one call a
 * process at a time. */
STINT_API stint_status stint_shrink(const stint_recipe *recipe,
                                    const stint_shrink_desc *desc,
                                    stint_shrink_result *result_out);

/** Free what a result points to. A result that is all zero is fine; so is a second
 * call. */
STINT_API void stint_shrink_fini(stint_shrink_result *result);

/** What stint_shrink would try: bytes by share, and the cost of its search. Trains and
 * writes nothing. Errors as stint_shrink before it trains. */
STINT_API stint_status stint_shrink_plan(const stint_recipe *recipe,
                                         const stint_shrink_desc *desc,
                                         stint_shrink_plan_result *result_out);

#ifdef __cplusplus
}
#endif

#endif
