/* A trained model as the beginning of another training; behind stint/finetune.h. */
#ifndef STI_TRAIN_FINETUNE_H
#define STI_TRAIN_FINETUNE_H

#include "base/memory.h"
#include "stint/finetune.h"

/* A folder in Hugging Face's layout as a file, to plan by and to search with: OUT/
 * start.safetensors or, where there is one, which a run that lies in OUT begins with,
 * start.new.safetensors beside it. */
typedef struct sti_finetune_draft {
    sti_arena *arena;
    const char *path, *kept, *out; /* path NULL: there is none */
    bool made_out;                 /* OUT was not there */
} sti_finetune_draft;

/* A copy of the recipe that begins with a file: where it names a folder, with the
 * draft. The caller destroys it; sti_finetune_draft_fini is to be called whatever comes
 * back. beside: a run that lies in the out folder is not in the way. STINT_E_USAGE: it
 * is, or the model lies there; no data. */
stint_status sti_finetune_ready(const stint_recipe *recipe, bool beside,
                                sti_finetune_draft *draft, stint_recipe **ready_out);
/* The draft becomes OUT/start.safetensors, with which the recipe begins then. */
stint_status sti_finetune_draft_keep(sti_finetune_draft *draft, stint_recipe *recipe);
/* Without having been kept it leaves nothing. A zeroed one is fine. */
void sti_finetune_draft_fini(sti_finetune_draft *draft);

/* Where train.start is an imported network, the recipe is made one of its training:
 * model.name, and the size and channels of its pictures where nothing is said of them.
 * stock: the recipe was chosen by the data, and what it says of a network is not kept.
 * STINT_E_USAGE: another network is named. */
stint_status sti_recipe_take_imported(bool stock, stint_recipe *recipe);

#endif
