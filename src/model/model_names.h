/* The names of all networks as text, for the help of a recipe. */
#ifndef STI_MODEL_MODEL_NAMES_H
#define STI_MODEL_MODEL_NAMES_H

#include "base/text.h"

/* "mlp, lenet5, ...; of text: gpt, ...", in the order of the tables. */
void sti_model_add_names(sti_text *out);

#endif
