/* A trained model as the beginning of another training; behind stint/finetune.h. */
#ifndef STI_TRAIN_FINETUNE_H
#define STI_TRAIN_FINETUNE_H

#include "stint/finetune.h"

/* The model that training begins with is there as a file: of a folder in Hugging Face's
 * layout one is written into the out folder. *ready_out: a copy of the recipe that
 * begins with it; the caller destroys it. */
stint_status sti_finetune_ready(const stint_recipe *recipe, stint_recipe **ready_out);

#endif
