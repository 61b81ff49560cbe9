/* How much an image counts in the loss by its class: loss.class_weights.
 *
 * Weights are scaled so that the mean over the images of an epoch is 1. The loss of a
 * batch is then the sum of weight times cross-entropy over the number of its images,
 * which is PyTorch's CrossEntropyLoss(weight, reduction="sum") over that number: images
 * count alike whatever else is in the batch or in the shard, so neither shards, lanes
 * nor ranks change anything, and the learning rate keeps its meaning. */
#ifndef STI_TRAIN_CLASS_WEIGHTS_H
#define STI_TRAIN_CLASS_WEIGHTS_H

#include "data/data.h"

/* weights_out [classes] of these training images, by a text that asks for some. evenly:
 * an epoch has as many images of each class (data.sampling = balanced). STINT_E_INPUT:
 * another number of weights than of classes; no image counts. */
stint_status sti_class_weights_make(const char *text, const stint_data *data,
                                    bool evenly, float *weights_out);

#endif
