/* A trained model opened from its file; behind the public handle.
 *
 * The room store/ reads and writes models and checkpoints as files, and knows of no
 * run. Other rooms use: this header; model_meta.h, the texts of a file; position.h,
 * where a training stands; checkpoint_file.h, tensors of a network and files of a
 * folder; text_model_file.h, a text model of any layout; safetensors.h, the format
 * itself. The rest is the room's own. */
#ifndef STI_STORE_MODEL_FILE_H
#define STI_STORE_MODEL_FILE_H

#include "base/recipe.h"
#include "data/data.h"
#include "model/classifier.h"
#include "model/network.h"
#include "stint/store.h"
#include "store/adapter.h"
#include "store/safetensors.h"

struct stint_model_file {
    sti_arena *arena;
    sti_tensor_file *file;
    stint_recipe *recipe;
    sti_network_desc network;
    sti_data_norm norm;
    const char **class_names;   /* [network.model.classes]; of an imported network NULL,
                                   where nobody named them */
    stint_tokenizer *tokenizer; /* of a text model, unless it came without; else NULL */
    int64_t end_token;          /* of a text model; -1: none */
    int64_t parameters, step;
    /* The block of this text model that each block of a training begins with, by
     * sti_model_take_blocks. NULL: the one of its own number. */
    int64_t *blocks, block_count;
    sti_adapter *adapter; /* added to weights as they are loaded; NULL: none */
    double test_accuracy, test_loss; /* NaN: unknown */
    const char *recipe_text, *weights_sha256;
    /* What the fast form of a compact file is made of. */
    sti_network_weights weights;
    /* One image through the network, which shows whether tensors and network agree. */
    sti_network single;
    /* What a higher room keeps with the model, destroyed with it; NULL: nothing. */
    void *attached;
    void (*destroy_attached)(void *attached);
};

/* Does every pixel, less the mean and over the deviation, stay a finite number? The key
 * of metadata at fault, or NULL: it does. */
const char *sti_norm_fault(const sti_data_norm *norm, int64_t channels);

/* The names of its classes, and their number; for who opens other files as models.
 * STINT_E_INPUT: it names none. */
stint_status sti_model_read_classes(stint_model_file *model);

/* The failure of a model whose weights are finite but its answers are not:
 * STINT_E_INPUT. */
stint_status sti_model_not_finite(const stint_model_file *model);

/* As stint_model_open; path may also be the folder of a run. key: the recipe's, for
 * messages. */
stint_status sti_model_open_for(const char *key, const char *path,
                                stint_model_file **model_out);

/* The network to evaluate with: of a compact file in its fast form, with its weights in
 * it, else model->network. The model must outlive what is built of it. */
sti_network_desc sti_model_network_in_use(const stint_model_file *model);

/* Read the weights into blocks of the network's PARAM and STATE regions. STINT_E_INPUT:
 * the file lacks a tensor, or it has another shape. */
stint_status sti_model_load(const stint_model_file *model, const sti_network *network,
                            void *params, void *states);
/* A training of so many blocks begins with these of a text model's: "even", from first
 * to last, or numbers with commas between, in any order and any of them again.
 * STINT_E_USAGE: no list of so many of its blocks. */
stint_status sti_model_take_blocks(stint_model_file *model, const char *list,
                                   int64_t count);
/* May the training of this network, of desc, begin with the model's weights? It must
 * have the same parameters and states; new_classifier: but for those of the classifier
 * (classifier.h). STINT_E_INPUT names both networks. */
stint_status sti_model_check_start(const stint_model_file *model,
                                   const sti_network_desc *desc,
                                   const sti_network *network, bool new_classifier);
/* Then read them; a new classifier stays as it is in params. */
stint_status sti_model_start(const stint_model_file *model,
                             const sti_network_desc *desc, const sti_network *network,
                             bool new_classifier, void *params, void *states);
/* The same of the file that a run wrote after this step, with nothing made but what
 * reading takes. STINT_E_INPUT: it is of another step. */
stint_status sti_model_reload(const char *path, int64_t step, const char *name,
                              const sti_network *network, void *params, void *states);
/* Read the weights into a block of the network's FIXED tensors. */
stint_status sti_model_load_reference(const stint_model_file *model,
                                      const sti_network *network, void *fixed);
/* SHA-256 of that block's tensors in the order of model->weights_sha256. */
void sti_model_reference_sha256(const stint_model_file *model,
                                const sti_network *network, const void *fixed,
                                char hex_out[65]);

#endif
