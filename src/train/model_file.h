/* A trained model opened from its file; behind the public handle. */
#ifndef STI_TRAIN_MODEL_FILE_H
#define STI_TRAIN_MODEL_FILE_H

#include "base/recipe.h"
#include "stint/train.h"
#include "store/safetensors.h"
#include "train/crew.h"

struct stint_model_file {
    sti_arena *arena;
    sti_tensor_file *file;
    stint_recipe *recipe;
    sti_network_desc network;
    sti_data_norm norm;
    const char **class_names;   /* [network.model.classes] */
    stint_tokenizer *tokenizer; /* of a text model, unless it came without; else NULL */
    int64_t end_token;          /* of a text model; -1: none */
    int64_t parameters, step;
    double test_accuracy, test_loss; /* NaN: unknown */
    const char *recipe_text, *weights_sha256;
    /* For single images, made by the first prediction. */
    sti_network single;
    sti_crew *single_crew;
    uint8_t *pixels;
};

/* Images as the model takes them: its size and channels where desc leaves them open.
 * STINT_E_INPUT: of other classes, or of another size. */
stint_status sti_model_open_data(const stint_model_file *model,
                                 const stint_data_desc *desc, stint_data **data_out);

/* Logits [samples of the split, classes] of a model, as stint_eval runs it. */
stint_status sti_eval_logits(stint_model_file *model, const stint_data_desc *data,
                             int threads, int64_t batch,
                             stint_train_progress_fn *progress, void *user,
                             float *logits_out);

/* As stint_model_open; path may also be the folder of a run. key: the recipe's, for
 * messages. */
stint_status sti_model_open_for(const char *key, const char *path,
                                stint_model_file **model_out);

/* Read the weights into the crew's blocks. STINT_E_INPUT: the file lacks a tensor, or
 * it has another shape. */
stint_status sti_model_load(const stint_model_file *model, const sti_network *network,
                            sti_crew *crew);
/* The same for training to begin with, of the network so named: the model must have no
 * other parameters either. */
stint_status sti_model_start(const stint_model_file *model, const sti_network *network,
                             const char *name, sti_crew *crew);
/* The same of the file that a run wrote after this step, with nothing made but what
 * reading takes. STINT_E_INPUT: it is of another step. */
stint_status sti_model_reload(const char *path, int64_t step, const char *name,
                              const sti_network *network, sti_crew *crew);
/* Read the weights into the crew's block of FIXED tensors. */
stint_status sti_model_load_reference(const stint_model_file *model,
                                      const sti_network *network, sti_crew *crew);
/* SHA-256 of that block's tensors in the order of model->weights_sha256. */
void sti_model_reference_sha256(const stint_model_file *model,
                                const sti_network *network, const sti_crew *crew,
                                char hex_out[65]);

#endif
