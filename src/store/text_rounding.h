/* Matrices of a text model that was trained rounded ([quantise]), as they are read: the
 * file holds what was trained, and a use sees what it counts as. */
#ifndef STI_STORE_TEXT_ROUNDING_H
#define STI_STORE_TEXT_ROUNDING_H

#include "model/decoder.h"
#include "store/model_file.h"

typedef struct sti_text_rounding sti_text_rounding;

/* Rounds a model file with weight_bits > 0, which is borrowed. */
stint_status sti_text_rounding_create(stint_model_file *file,
                                      sti_text_rounding **rounding_out);
void sti_text_rounding_destroy(sti_text_rounding *rounding); /* NULL is fine */
/* `source` with matrices of the blocks rounded; it reads whole rows. One thread at a
 * time: what a matrix is scaled by is found when its first row is asked for. */
sti_weight_source sti_text_rounding_source(sti_text_rounding *rounding,
                                           sti_weight_source source);

#endif
