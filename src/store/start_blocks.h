/* Blocks of a text model that a training begins with (sti_model_take_blocks), by the
 * names of their tensors. */
#ifndef STI_STORE_START_BLOCKS_H
#define STI_STORE_START_BLOCKS_H

#include "store/model_file.h"

/* Room for a name that is made. */
typedef struct sti_tensor_name {
    char text[256];
} sti_tensor_name;

/* The name in the model's file of what a training that begins with it calls `name`;
 * where blocks are taken it may be written to `space`. */
const char *sti_model_start_name(const stint_model_file *model, const char *name,
                                 sti_tensor_name *space);
/* The other way: what the training calls this tensor of the model. NULL: it is of a
 * block that is not taken. */
const char *sti_model_name_here(const stint_model_file *model, const char *name,
                                sti_tensor_name *space);

#endif
