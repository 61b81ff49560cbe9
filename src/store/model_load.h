/* Weights from a model's file into the blocks of a network, or only looked at. */
#ifndef STI_STORE_MODEL_LOAD_H
#define STI_STORE_MODEL_LOAD_H

#include "base/file.h"
#include "store/model_file.h"

typedef struct sti_model_loader {
    const stint_model_file *model;
    char *block;       /* NULL: only check */
    const char *wants; /* the network's name */
    const char *scope; /* that the network's names have in front, NULL: none */
    sti_sha256 *hash;  /* of what is only checked */
    const sti_classifier *skips; /* which is left as it is; NULL: nothing is */
    bool begins; /* a training: spreads that the model does not have stay as they are,
                    and blocks are those of model->blocks */
} sti_model_loader;

/* One tensor, for sti_network_each; user: a sti_model_loader. */
stint_status sti_model_load_tensor(void *user, const sti_value_row *value,
                                   const sti_allocation *allocation);

/* Every parameter and state of a network. */
stint_status sti_model_load_all(sti_model_loader loader, const sti_network *network,
                                void *params, void *states);

#endif
