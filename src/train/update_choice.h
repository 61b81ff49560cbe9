/* The parameters that [update] of a recipe names, of the network it begins with. */
#ifndef STI_TRAIN_UPDATE_CHOICE_H
#define STI_TRAIN_UPDATE_CHOICE_H

#include "train/inputs.h"

/* Once start and network are described: the set into inputs->update, and the network to
 * be trained refers to it. Nothing for a training of everything. A new classifier is
 * always trained. STINT_E_USAGE: the list names what the network does not have. */
stint_status sti_update_choose(sti_inputs *inputs);
/* Is the parameter one that is added? The one definition: what the network's source
 * says, or else (NULL) names: biases of layers, and shifts of normalisations. */
bool sti_update_is_bias(const sti_network_source *source, const char *parameter);
/* The channels of all shares into a hash: other gains may choose others. */
void sti_update_add_sha256(const sti_update_set *set, sti_sha256 *state);

#endif
