/* Models in files: what stint_train leaves, and transformers in the layout of Hugging
 * Face. Opening checks every tensor's name, shape and place, and the hash of the
 * weights where the file names one; nothing that comes from a file is trusted before. A
 * handle serves one thread at a time; two of them never meet. */
#ifndef STINT_STORE_H
#define STINT_STORE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "stint/model.h"
#include "stint/status.h"
#include "stint/text.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- a model that was trained ---- */

typedef struct stint_model_file stint_model_file;

/** Open a model.safetensors: weights, network, classes, normalisation; or of a text
 * model weights, network and tokeniser. */
STINT_API stint_status stint_model_open(const char *path, stint_model_file **model_out);
STINT_API void stint_model_close(stint_model_file *model);
/** The tokeniser of a text model, which lives as long as the model; NULL: of images, or
 * weights that came without one. */
STINT_API const stint_tokenizer *stint_model_tokenizer(const stint_model_file *model);

/** What a model file says of itself; pointers live as long as the model. */
typedef struct stint_model_facts {
    const char *network;
    int32_t classes; /* 0: a text model */
    const char *const *class_names;
    int64_t height, width, channels, parameters, tensors;
    const char *recipe; /* resolved INI text it was trained with */
    int64_t step;
    double test_accuracy;       /* at the end of training; NaN if unknown */
    double test_loss;           /* likewise */
    int64_t context;            /* of a text model: tokens a sequence; 0: of images */
    stint_text_model_desc text; /* its sizes */
    char weights_sha256[65];
} stint_model_facts;
STINT_API void stint_model_describe(const stint_model_file *model,
                                    stint_model_facts *facts_out);

/* ---- a model of text, of whatever layout ---- */

typedef struct stint_text_model stint_text_model;

/** What a text model is; pointers live as long as it does. */
typedef struct stint_text_model_facts {
    const char *family;          /* "gpt", "llama" */
    stint_text_model_desc sizes; /* no zeros */
    int64_t context;             /* tokens that it sees at once, at most */
    int64_t parameters;
    int64_t end_token;                /* that ends a text; -1: none */
    const stint_tokenizer *tokenizer; /* NULL: token identities only, */
    const char *no_tokenizer;         /* and why; else "" */
} stint_text_model_facts;

/** A text model that stint_train wrote (the file, or the folder of the run), or a
 * folder with config.json, model.safetensors (or shards with their index; F32, F16 or
 * BF16) of GPT-2 or Llama, and perhaps a byte-pair tokeniser. Tensors, shapes and
 * vocabulary are checked. STINT_E_INPUT: damaged, incomplete, or a model of images;
 * STINT_E_UNSUPPORTED: another family or variant. */
STINT_API stint_status stint_text_model_open(const char *path,
                                             stint_text_model **model_out);
STINT_API void stint_text_model_close(stint_text_model *model); /* NULL is fine */
STINT_API void stint_text_model_describe(const stint_text_model *model,
                                         stint_text_model_facts *facts_out);

/** Write a model of Stint with the same weights (as f32), and the tokeniser if there is
 * one: what stint_text_model_open, stint_model_open and `stint eval` take. */
STINT_API stint_status stint_text_model_write(const stint_text_model *model,
                                              const char *path);
/** Write a folder that Hugging Face's `transformers` loads: config.json and
 * model.safetensors (F32); of a byte-pair tokeniser vocab.json and merges.txt. */
STINT_API stint_status stint_text_model_write_hf(const stint_text_model *model,
                                                 const char *folder);

#ifdef __cplusplus
}
#endif

#endif
