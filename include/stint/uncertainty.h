/* How sure answers are: several networks answer each image, drawn from a Bayesian
 * model, thinned by dropout (Gal and Ghahramani 2016), or trained apart. Their
 * probabilities are averaged. What they disagree in the weights leave open; the rest
 * the images do.
 *
 *   stint_uncertainty u;
 *   const stint_uncertainty_desc desc = {.model = "runs/a/model.safetensors",
 *                                        .samples = 16,
 *                                        .data = {.path = "photos",
 *                                                 .split = STINT_DATA_TEST}};
 *   if (stint_uncertain(&desc, &u) == STINT_OK)
 *       printf("%.2f nats, %.2f of them from the weights\n", u.entropy,
 *              u.mutual_information);
 *   stint_uncertainty_fini(&u);
 *
 * Pointers in a result belong to it and hold until stint_uncertainty_fini(), which is
 * to be called after an error, too. Calls block; progress comes on the calling thread.
 *
 * docs/uncertainty.md explains the figures; `stint eval --samples` prints them. */
#ifndef STINT_UNCERTAINTY_H
#define STINT_UNCERTAINTY_H

#include <stdint.h>

#include "stint/data.h"
#include "stint/infer.h"
#include "stint/status.h"

#ifdef __cplusplus
extern "C" {
#endif

/** Bins of confidence: [0, 1/15), ... */
#define STINT_CALIBRATION_BINS 15

/** Answers by the probability that they claim. */
typedef struct stint_calibration {
    /* Sums over the answers in each bin: the probability, and 1 for each right one. */
    double confidence[STINT_CALIBRATION_BINS], right[STINT_CALIBRATION_BINS];
    /* Answers in the bin. */
    int64_t count[STINT_CALIBRATION_BINS];
} stint_calibration;

/** What several networks say of labelled images, and of strangers. */
typedef struct stint_uncertainty {
    /* Networks that were heard. */
    int64_t networks;
    /* Accuracy, loss and confusion of the averaged probabilities, as an evaluation has
     * them. */
    stint_eval_result eval;
    /* Expected calibration error: mean distance of confidence and accuracy by bins. */
    double ece;
    /* What it is made of. */
    stint_calibration calibration;
    /* Means over the images, in nats: the entropy of the averaged probabilities, and
     * the part of it that is the networks' disagreement (the mutual information of
     * answer and weights). */
    double entropy, mutual_information;
    /* Strangers; 0: none were given. */
    int64_t ood_count;
    /* The same means of them; NaN without any. */
    double ood_entropy, ood_mutual_information;
    /* Chance that a stranger has a higher entropy than an image of the split, ties
     * counting half; NaN without strangers. */
    double ood_auroc;
    /* A Bayesian model's weights, else NaN: their divergence from the prior in nats,
     * and the deviations that 5, 50 and 95 % of them are below. */
    double kl, sigma[3];
    /* [eval.count]: of each image its answer, that one's probability, its entropy. */
    int32_t *answer;
    float *confidence, *image_entropy;
    /* [ood_count]: of each stranger. */
    float *ood_image_entropy;
} stint_uncertainty;

/** Which networks to hear about which images. Nothing of it is kept. */
typedef struct stint_uncertainty_desc {
    /* A model file. */
    const char *model;
    /* [ensemble_count]: further ones of the same classes; may be NULL. */
    const char *const *ensemble;
    int64_t ensemble_count;
    /* Networks drawn from each model; 0: each as it is, once. */
    int64_t samples;
    /* Network k is the same for every image, whatever the batch and the threads: a
     * function of the seed and k. */
    uint64_t seed;
    /* Labelled images. */
    stint_data_desc data;
    /* Images of anything else, read as data is (split and format; auto where there is
     * none such); NULL: none. */
    const char *strangers;
    /* As in stint_eval(); 0: choose. */
    int threads;
    int64_t batch;
    /* May be NULL. */
    stint_train_progress_fn *progress;
    /* Passed through to progress. */
    void *user;
} stint_uncertainty_desc;

/** Hear networks about images.
 *
 * STINT_E_USAGE: samples of a model in which nothing is random, or one network alone
 * without samples; STINT_E_INPUT: models of other classes or image sizes, data that do
 * not fit; STINT_E_UNSUPPORTED: models of text; STINT_E_INTERRUPTED or _TERMINATED
 * after stint_stop(); STINT_E_IO; STINT_E_MEMORY. */
STINT_API stint_status stint_uncertain(const stint_uncertainty_desc *desc,
                                       stint_uncertainty *uncertainty_out);

/** Free what an uncertainty points to. A result that is all zero is fine; so is a
 * second call. */
STINT_API void stint_uncertainty_fini(stint_uncertainty *uncertainty);

#ifdef __cplusplus
}
#endif

#endif
