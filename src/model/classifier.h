/* The classifier of a network of images: its parameters whose shapes follow the number
 * of classes, which are all that a network for other classes cannot take over. Found by
 * building the same network for one class more. */
#ifndef STI_MODEL_CLASSIFIER_H
#define STI_MODEL_CLASSIFIER_H

#include "model/network.h"

typedef struct sti_classifier {
    sti_network other; /* of one class more; not planned */
} sti_classifier;

stint_status sti_classifier_init(const sti_network_desc *desc,
                                 sti_classifier *classifier);
void sti_classifier_fini(sti_classifier *classifier); /* a zeroed one is fine */

/* Does this parameter of a network of desc belong to it? */
bool sti_classifier_has(const sti_classifier *classifier, const sti_value_row *value);

#endif
