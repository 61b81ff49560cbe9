/* The text of a training. Private to inputs*.c. */
#ifndef STI_TRAIN_INPUTS_TEXT_H
#define STI_TRAIN_INPUTS_TEXT_H

#include "train/inputs.h"

/* The models that training begins with or keeps to: they come before the text, whose
 * tokens are their own. STINT_E_INPUT: of images, or of other tokens. */
stint_status sti_inputs_open_text_models(sti_inputs *inputs);
/* The text, its windows, and the network for them. STINT_E_INPUT: too short for one
 * window, nothing to learn, a reference of another vocabulary or of a shorter context.
 */
stint_status sti_inputs_open_text(sti_inputs *inputs);

#endif
