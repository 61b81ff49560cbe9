/* An imported network as a classifier of pictures: its one input takes them, as its
 * file says (image_form.h), and its first output has a score for each class. */
#ifndef STI_EXCHANGE_CLASSIFY_H
#define STI_EXCHANGE_CLASSIFY_H

#include "exchange/imported.h"
#include "stint/infer.h"

typedef struct sti_classifier_ports {
    const sti_lowered_port *input, *output;
    bool last; /* channels */
    int64_t batch, height, width, channels;
    int32_t classes;
    bool probabilities; /* the network ends in a softmax */
} sti_classifier_ports;

/* Does an input of this shape take pictures, in the layout that the file says? *last:
 * their channels are last. */
bool sti_classifier_takes(const stint_shape *shape, int layout, bool *last);

/* STINT_E_UNSUPPORTED: not one input [n, 1 or 3 channels, height, width] (or channels
 * last) of float32. Whether there are scores is not asked: classes is 0 then. */
stint_status sti_classifier_find(const sti_imported *m, sti_classifier_ports *out);

/* A picture [height, width, channels] into place `slot` of the batch; NULL: zeros. */
void sti_classifier_put(const sti_classifier_ports *ports, const sti_imported *m,
                        int64_t slot, const uint8_t *pixels);
/* Scores of place `slot` after a run, [classes]; logarithms of probabilities where the
 * network gives these. */
void sti_classifier_take(const sti_classifier_ports *ports, const sti_imported *m,
                         int64_t slot, float *scores_out);

/* Labelled pictures as the network takes them; the caller closes the data.
 * STINT_E_INPUT: other classes than scores; STINT_E_UNSUPPORTED: pictures that are not
 * square, or no scores at all. */
stint_status sti_classifier_open_data(const sti_classifier_ports *ports,
                                      const sti_imported *m,
                                      const stint_data_desc *desc,
                                      stint_data **data_out);

/* Called on the calling thread with the scores of one sample after the other. */
typedef void sti_classifier_scores_fn(void *user, int64_t sample, const float *scores);

/* The whole split through a network that has begun (sti_imported_begin). progress may
 * be NULL. STINT_E_INPUT or _IO: a picture that cannot be read; STINT_E_INTERRUPTED or
 * _TERMINATED after stint_stop(). */
stint_status sti_classifier_run(const sti_classifier_ports *ports, sti_imported *m,
                                stint_data *data, stint_train_progress_fn *progress,
                                void *progress_user, sti_classifier_scores_fn *scores,
                                void *user);

/* Loss and answers over the split, as stint_eval has them; the caller frees the result
 * by stint_eval_fini. STINT_E_INPUT: scores that are not finite. */
stint_status sti_classifier_eval(const sti_classifier_ports *ports, sti_imported *m,
                                 stint_data *data, stint_train_progress_fn *progress,
                                 void *user, stint_eval_result *result_out);

#endif
