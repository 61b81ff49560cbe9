/* A trained model opened from its file; behind the public handle. */
#ifndef STI_TRAIN_MODEL_FILE_H
#define STI_TRAIN_MODEL_FILE_H

#include "train/crew.h"
#include "train/safetensors.h"

struct stint_model_file {
    sti_arena *arena;
    sti_tensor_file *file;
    stint_recipe *recipe;
    sti_network_desc network;
    sti_data_norm norm;
    const char **class_names; /* [network.model.classes] */
    int64_t parameters, step;
    double test_accuracy;
    const char *recipe_text, *weights_sha256;
    /* For single images, made by the first prediction. */
    sti_network single;
    sti_crew *single_crew;
    uint8_t *pixels;
};

/* Logits [samples of the split, classes] of a model, as stint_eval runs it. */
stint_status sti_eval_logits(stint_model_file *model, const stint_data_desc *data,
                             int threads, int64_t batch,
                             stint_train_progress_fn *progress, void *user,
                             float *logits_out);

/* Read the weights into the crew's blocks. STINT_E_INPUT: the file lacks a tensor, or
 * it has another shape. */
stint_status sti_model_load(const stint_model_file *model, const sti_network *network,
                            sti_crew *crew);

#endif
