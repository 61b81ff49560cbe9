/* Fine-tuning: a trained model goes on with other data, all of it or a part.
 *
 *   stint_recipe *recipe = NULL;
 *   stint_finetune_result result = {0};
 *   stint_status st = stint_finetune_recipe("runs/a", &recipe);
 *   if (st == STINT_OK)
 *       st = stint_recipe_set(recipe, "data.path", "capitals");
 *   if (st == STINT_OK)
 *       st = stint_recipe_set(recipe, "update.what", "bias");
 *   if (st == STINT_OK)
 *       st = stint_finetune(recipe, &(stint_finetune_desc){0}, &result);
 *   stint_finetune_fini(&result);
 *   stint_recipe_destroy(recipe);
 *
 * What is not trained has no gradient, no optimiser state and no saved activation, and
 * nothing below the lowest trained parameter runs backward: it is left out of the step
 * before that is planned, after PockEngine (arXiv 2310.17752). A training of the recipe
 * in the out folder (stint_train) gives the same bits. */
#ifndef STINT_FINETUNE_H
#define STINT_FINETUNE_H

#include "stint/train.h"

#ifdef __cplusplus
extern "C" {
#endif

/** How to fine-tune. All zero is the usual. */
typedef struct stint_finetune_desc {
    /* Search for what is trained: within run.memory (0: any memory) and the two below,
     * what gains most of the user's data, by the mean square of gradients. The recipe's
     * `update` is not looked at then. OUT/gains.json is left, and the recipe in the out
     * folder has the scheme as a list. */
    bool search;
    /* Longest step: a share of the arithmetic of one that trains everything, or
     * seconds, which are made a share by timing that one; 0: any. */
    double step_share, step_s;
    /* A gains.json of the same model, in the place of gains of these data; NULL: none.
     */
    const char *gains;
    /* Gains by short trainings, of each tensor and share beside the classifier alone,
     * in the place of squares of gradients. They are kept in OUT/gains.json after each
     * tensor, and a call that was stopped goes on from there. */
    bool measured;
    /* The other members are stint_train_desc's. */
    bool resume, force;
    stint_train_progress_fn *progress;
    void (*planned)(void *user, const stint_plan_result *plan);
    void *user;
} stint_finetune_desc;

/** A parameter that is trained. */
typedef struct stint_finetune_tensor {
    /* Its name in the model file, NUL-terminated. */
    char tensor[128];
    /* Part of its input channels that is trained; 1: all. */
    double share;
    /* Mean square of its gradient, summed over what is trained; NaN: not measured. */
    double gain;
    /* Gradient and optimiser state that the training keeps for it. */
    int64_t bytes;
} stint_finetune_tensor;

/** What is trained, and what that takes. */
typedef struct stint_finetune_scheme {
    /* [tensor_count], in the order of the model file; own memory. */
    stint_finetune_tensor *tensors;
    int tensor_count;
    /* Numbers of the network, and of these the trained ones. */
    int64_t parameters, trained_parameters;
    /* Floating-point operations of a step over those of one that trains everything. */
    double step_share;
    /* Planned peak of the whole process, of a training of everything, and the least
     * that this one can run in. */
    size_t peak_bytes, full_peak_bytes, smallest_bytes;
    /* SHA-256 of the weights that training begins with; "": the file has none. */
    char start_sha256[65];
    /* With desc.search and stint_finetune_plan: the best schemes at five budgets, from
     * a tenth of the way between the least and a full training to the latter. */
    struct stint_finetune_budget {
        /* Asked for, and planned for the scheme. */
        size_t budget_bytes, peak_bytes;
        /* As above; the sum of the gains of what is trained. */
        double step_share, gain;
        /* Numbers that are trained. */
        int64_t trained_parameters;
    } budgets[5];
    /* 5, or 0: there was no search. */
    int budget_count;
} stint_finetune_scheme;

/** What a fine-tuning came to. */
typedef struct stint_finetune_result {
    /* As of stint_train(). */
    stint_train_result train;
    /* What was trained. */
    stint_finetune_scheme scheme;
    /* Seconds of a training step, loading included. */
    double step_s;
} stint_finetune_result;

/** The recipe that a model is fine-tuned by: network, sizes, tokeniser and
 * normalisation are the model's, batch-norm keeps its statistics, the rest is at
 * defaults for fine-tuning. data.path must be set; any key may be.
 *
 * model_path: a file, the folder of a run, or one in Hugging Face's layout, of which
 * stint_finetune() makes OUT/start.safetensors. Errors as stint_model_open and
 * stint_text_model_open. The caller destroys the recipe. */
STINT_API stint_status stint_finetune_recipe(const char *model_path,
                                             stint_recipe **recipe_out);

/** Fine-tune as the recipe says; leaves what stint_train() leaves.
 *
 * *result_out is to be freed by stint_finetune_fini whatever comes back. STINT_E_USAGE:
 * no data, a list that names what the network does not have, an out folder that is in
 * use or the model's own; STINT_E_BUDGET: run.memory is below what any part can be
 * trained in; STINT_E_INPUT: nothing is trained; what stint_train() fails with. Blocks,
 * one call a process at a time. */
STINT_API stint_status stint_finetune(const stint_recipe *recipe,
                                      const stint_finetune_desc *desc,
                                      stint_finetune_result *result_out);

/** What stint_finetune() would train, and in how much; trains nothing, but gains are
 * collected where desc (NULL: all zero) searches. Leaves nothing in the
 * out folder. The scheme is to be freed by
 * stint_finetune_scheme_fini whatever comes back. Errors as stint_finetune. */
STINT_API stint_status stint_finetune_plan(const stint_recipe *recipe,
                                           const stint_finetune_desc *desc,
                                           stint_finetune_scheme *scheme_out);

/** Free what they point to. One that is all zero is fine; so is a second call. */
STINT_API void stint_finetune_fini(stint_finetune_result *result);
STINT_API void stint_finetune_scheme_fini(stint_finetune_scheme *scheme);

#ifdef __cplusplus
}
#endif

#endif
