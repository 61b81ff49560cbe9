/* Using a trained model: loss and answers over a split, the class of a single image.
 * (Text from a model of text: stint/generate.h.) Calls block; progress comes by
 * callback on the calling thread; stint_stop() ends an evaluation. */
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

/** How far a training or an evaluation is. Of an evaluation by stint_eval all is NaN or
 * 0 but images_per_s, rss_bytes, seconds_left and the last three. */
typedef struct stint_train_progress {
    int64_t step, steps, epoch, epochs;
    double loss, accuracy; /* of the training batches of this epoch so far */
    double images_per_s;   /* (or sequences) */
    int64_t context;       /* tokens a sequence; 0: images */
    size_t rss_bytes;
    double seconds_left;
    double test_loss, test_accuracy; /* of the last evaluation; NaN before the first */
    bool epoch_done;                 /* the call that closes an epoch */
    bool evaluating; /* at step 0: measuring mean and deviation of training images */
    int64_t evaluated, to_evaluate;
} stint_train_progress;
typedef void stint_train_progress_fn(void *user, const stint_train_progress *progress);

typedef struct stint_eval_result {
    int64_t count;                       /* images, or windows of text */
    double accuracy, loss, images_per_s; /* text: accuracy NaN, loss in nats a token */
    int64_t tokens;                      /* of text: predicted; else 0 */
    double bits_per_byte;                /* of text; else NaN */
    size_t peak_rss_bytes;
    int32_t classes;
    int64_t *class_count, *class_correct; /* [classes]; free with stint_eval_fini */
    int32_t *confusion;                   /* [classes, classes], row = label */
} stint_eval_result;

/** Loss and answers over a split; of a text model the loss alone, over the last tokens
 * (as many as its training left out), the first ones, or STINT_DATA_ALL. Images are
 * read as the model's own were (size, channels, classes); threads 0: choose; batch 0:
 * choose. progress may be NULL. STINT_E_INPUT: model and data do not match;
 * STINT_E_INTERRUPTED or _TERMINATED after stint_stop(). */
STINT_API stint_status stint_eval(stint_model_file *model, const stint_data_desc *data,
                                  int threads, int64_t batch,
                                  stint_train_progress_fn *progress, void *user,
                                  stint_eval_result *result_out);
STINT_API void stint_eval_fini(stint_eval_result *result);

/** Classify one image file: probabilities_out [classes], summing to 1. STINT_E_INPUT
 * names a file that is no image. */
STINT_API stint_status stint_predict(stint_model_file *model, const char *image_path,
                                     float *probabilities_out);

#ifdef __cplusplus
}
#endif

#endif
