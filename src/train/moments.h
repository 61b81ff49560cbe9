/* Where the optimiser's state of a parameter lies: a moment is laid out by gradients,
 * so that what is not trained has none. Where every parameter is trained, this is the
 * layout of the parameters. */
#ifndef STI_TRAIN_MOMENTS_H
#define STI_TRAIN_MOMENTS_H

#include "model/network.h"

/* Bytes of one moment of a planned training network. */
size_t sti_moment_bytes(const sti_network *network);
/* Offset in it of a parameter that is trained. */
size_t sti_moment_offset(const sti_network *network, stint_value param);

#endif
