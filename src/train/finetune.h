/* A trained model as the beginning of another training; behind stint/finetune.h. */
#ifndef STI_TRAIN_FINETUNE_H
#define STI_TRAIN_FINETUNE_H

#include "stint/finetune.h"

/* The model that training begins with is there as a file: of a folder in Hugging Face's
 * layout one is written into the out folder. *ready_out: a copy of the recipe that
 * begins with it; the caller destroys it. */
stint_status sti_finetune_ready(const stint_recipe *recipe, stint_recipe **ready_out);

/* Where train.start is an imported network, the recipe is made one of its training:
 * model.name, and the size and channels of its pictures where nothing is said of them.
 * stock: the recipe was chosen by the data, and what it says of a network is not kept.
 * STINT_E_USAGE: another network is named. */
stint_status sti_recipe_take_imported(bool stock, stint_recipe *recipe);

#endif
