/* Using a trained model: loss and answers over a split, the class of a single image.
 * Text from a model of text comes by stint/generate.h.
 *
 * To classify an image:
 *
 *   stint_model_file *model = NULL;
 *   stint_status st = stint_model_open("runs/a/model.safetensors", &model);
 *   if (st == STINT_OK)
 *       st = stint_predict(model, "photo.jpg", probabilities);
 *   stint_model_close(model);
 *
 * A model is used as it was trained: images get its size, its channels and its
 * normalisation, batch normalisation takes running statistics, and weights that a
 * recipe rounds to fewer bits are rounded. Results have the same bits for any number of
 * threads.
 *
 * Calls block; progress comes by callback on the calling thread; stint_stop() ends an
 * evaluation. */
#ifndef STINT_INFER_H
#define STINT_INFER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "stint/data.h"
#include "stint/status.h"
#include "stint/stop.h"
#include "stint/store.h"

#ifdef __cplusplus
extern "C" {
#endif

/** How far a training or an evaluation is. In an evaluation by stint_eval all is NaN or
 * 0 but images_per_s, rss_bytes, seconds_left and the last three. */
typedef struct stint_train_progress {
    /* Steps done of all, epochs likewise. */
    int64_t step, steps, epoch, epochs;
    /* Means over the training batches of this epoch so far; accuracy is a share. */
    double loss, accuracy;
    /* Images (or sequences) a second. */
    double images_per_s;
    /* Tokens of a sequence; 0: images. */
    int64_t context;
    /* Resident memory of the process now. */
    size_t rss_bytes;
    /* Estimate of what is left. */
    double seconds_left;
    /* Results of the last evaluation; NaN before the first. */
    double test_loss, test_accuracy;
    /* This call closes an epoch. */
    bool epoch_done;
    /* An evaluation is under way; at step 0 the measuring of mean and deviation of the
     * training images. */
    bool evaluating;
    /* Images (or windows) that it has done, and how many it will do; from these a share
     * that is done can be shown. */
    int64_t evaluated, to_evaluate;
} stint_train_progress;

/** Receives progress on the calling thread; *progress holds during the call only.
 * Called often: it should return soon, and may call stint_stop(). */
typedef void stint_train_progress_fn(void *user, const stint_train_progress *progress);

/** What an evaluation found over one split. The three arrays belong to the result:
 * stint_eval_fini frees them. */
typedef struct stint_eval_result {
    /* Images, or windows of text. */
    int64_t count;
    /* accuracy: a share, NaN for text and fields. loss: mean of images, nats a token,
     * or the mean square of a field. */
    double accuracy, loss, images_per_s;
    /* Mean over the classes that have images of the share answered right (the recall),
     * the lowest of these shares, and its class; NaN and -1 for text. */
    double balanced_accuracy, lowest_recall;
    int32_t lowest_class;
    /* Tokens of a text that were predicted; else 0. */
    int64_t tokens;
    /* The loss of a text in bits a byte; else NaN. */
    double bits_per_byte;
    /* The root of a field's loss over that of its values' mean square; else NaN. */
    double relative_l2;
    /* Resident memory of the process at its highest, and as it was planned before it
     * was taken (0: several networks, which are not planned). */
    size_t peak_rss_bytes, planned_peak_bytes;
    /* 0 for text, and the arrays below are NULL. */
    int32_t classes;
    /* [classes]: images with this label, and of them those answered right. */
    int64_t *class_count, *class_correct;
    /* [classes, classes]: a row for each label, a column for each answer. */
    int32_t *confusion;
} stint_eval_result;

/** Loss and answers over a split.
 *
 * Images are read as the model's own were: size, channels, classes. For a text model
 * the loss alone, over the last tokens (as many as its training left out), the first
 * ones, or all, by data->split. threads 0: choose; it changes no bit. batch: samples
 * that each thread takes at once, 0: choose; losses are summed by batches, so their
 * last bits are of it. progress may be NULL; user is passed through to it. The caller
 * frees the result by stint_eval_fini, which is not needed after an error.
 * STINT_E_INPUT: model and data do not match; STINT_E_INTERRUPTED or _TERMINATED after
 * stint_stop(); STINT_E_IO; STINT_E_MEMORY. */
STINT_API stint_status stint_eval(stint_model_file *model, const stint_data_desc *data,
                                  int threads, int64_t batch,
                                  stint_train_progress_fn *progress, void *user,
                                  stint_eval_result *result_out);

/** How a model is evaluated within a budget. */
typedef struct stint_eval_desc {
    /* As stint_eval has them. */
    stint_data_desc data;
    int threads;
    int64_t batch;
    /* Most resident memory of the whole process; 0: no budget. */
    size_t memory_bytes;
    /* progress may be NULL; user is passed through to it. */
    stint_train_progress_fn *progress;
    void *user;
} stint_eval_desc;

/** stint_eval within a budget. What is made of the weights once is left out, fewer
 * images go through the network at a time, or one lane works in the place of several,
 * whichever suffices; the results have the bits of stint_eval.
 *
 * As stint_eval, and STINT_E_USAGE: a negative number; STINT_E_BUDGET, before the
 * memory is taken: it needs more than memory_bytes (the text names what would do). */
STINT_API stint_status stint_eval_within(stint_model_file *model,
                                         const stint_eval_desc *desc,
                                         stint_eval_result *result_out);

/** Free what an evaluation points to. A result that is all zero is fine; so is a second
 * call. */
STINT_API void stint_eval_fini(stint_eval_result *result);

/** Classify one image file, on one thread: probabilities_out [classes], which sum to 1.
 *
 * The image is brought to the model's size and channels. STINT_E_INPUT: the file is no
 * image (it is named), or the model is one of text; STINT_E_IO; STINT_E_MEMORY. */
STINT_API stint_status stint_predict(stint_model_file *model, const char *image_path,
                                     float *probabilities_out);

/** What several networks say of one image. */
typedef struct stint_opinion {
    /* [classes], the caller's: averaged probabilities, and the standard deviation of
     * the networks' about them. */
    float *probability, *deviation;
    /* Entropy of the averaged probabilities in nats, and the part of it that is the
     * networks' disagreement (mutual information of answer and weights). */
    double entropy, mutual_information;
} stint_opinion;

/** Classify one image file by `samples` networks (1 or more), which are drawn from a
 * Bayesian model or thinned by dropout. Network k is a function of the seed and k, the
 * same for every image. *opinion: its arrays are given, the rest is filled.
 *
 * STINT_E_USAGE: nothing in the model is random; else as stint_predict. */
STINT_API stint_status stint_predict_samples(stint_model_file *model,
                                             const char *image_path, int64_t samples,
                                             uint64_t seed, stint_opinion *opinion);

#ifdef __cplusplus
}
#endif

#endif
