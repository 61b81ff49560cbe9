/* Models in files: what stint_train leaves, and transformers in the layout of Hugging
 * Face. Opening checks every tensor's name, shape and offset, and the hash of the
 * weights where the file names one; nothing that comes from a file is trusted before.
 * An object
 * serves one thread at a time; two of them never meet.
 *
 *   stint_model_file *model = NULL;
 *   stint_model_facts facts;
 *   if (stint_model_open("runs/a/model.safetensors", &model) == STINT_OK) {
 *       stint_model_describe(model, &facts);
 *       printf("%s, %d classes\n", facts.network, (int)facts.classes);
 *   }
 *   stint_model_close(model);
 *
 * stint/infer.h uses a model for images, stint/generate.h one for text. Files are
 * safetensors: weights as tensors, everything else as texts in its head, so that other
 * programs can read them. */
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

/* ---- a model that was trained ----
 *
 * Of images or of text, as stint_train() writes it. */

/** A model file that is open; opaque. It serves one thread at a time. The file must not
 * change while it is open. */
typedef struct stint_model_file stint_model_file;

/** Open a model.safetensors; the caller closes it.
 *
 * It has weights, network, classes and normalisation, or for a text model weights,
 * network and tokeniser. STINT_E_INPUT: no model of Stint, damaged, or incomplete;
 * STINT_E_IO; STINT_E_MEMORY. */
STINT_API stint_status stint_model_open(const char *path, stint_model_file **model_out);

/** Close a model, and with it its texts, its tokeniser and its file. NULL is fine. */
STINT_API void stint_model_close(stint_model_file *model);

/** Add a low-rank adapter to the weights of a text model, as they are read from now on.
 *
 * folder: PEFT's adapter_config.json and adapter_model.safetensors for the network in
 * Hugging Face's layout (GPT-2 or Llama), as PEFT or a training of adapters leaves
 * them. Before the model is used; once a model. STINT_E_INPUT: damaged, of another
 * model, or the model is of images; STINT_E_UNSUPPORTED: not plain LoRA; STINT_E_IO;
 * STINT_E_MEMORY. */
STINT_API stint_status stint_model_adapt(stint_model_file *model, const char *folder);

/** The tokeniser of a text model, which lives as long as the model and is not closed by
 * the caller. NULL: a model of images, or weights that came without a tokeniser. */
STINT_API const stint_tokenizer *stint_model_tokenizer(const stint_model_file *model);

/** What a model file says of itself; pointers live as long as the model. Numbers that
 * do not apply to its kind are 0 or NaN. */
typedef struct stint_model_facts {
    /* Name of the network, as in model.name. */
    const char *network;
    /* Classes and their names [classes]; 0: a text model. */
    int32_t classes;
    const char *const *class_names;
    /* Size of its images; trained values; tensors in the file. */
    int64_t height, width, channels, parameters, tensors;
    /* The recipe that it was trained with, resolved, as INI text. */
    const char *recipe;
    /* Steps that it was trained for. */
    int64_t step;
    /* At the end of training; NaN if unknown. */
    double test_accuracy;
    double test_loss;
    /* Tokens of a sequence; 0: a model of images. */
    int64_t context;
    /* Sizes of a text model. */
    stint_text_model_desc text;
    /* Sizes of a field; coordinates 0: no field. */
    stint_field_desc field;
    /* 64 hex digits; "" if the file does not say. */
    char weights_sha256[65];
} stint_model_facts;

/** Fill *facts_out with what the file says. Nothing is computed, and no weights are
 * read. Never fails. */
STINT_API void stint_model_describe(const stint_model_file *model,
                                    stint_model_facts *facts_out);

/* ---- a model of text, of whatever layout ----
 *
 * Also read from a folder of Hugging Face's, and written as one. */

/** A text model in a file or a folder; opaque. It serves one thread at a time. */
typedef struct stint_text_model stint_text_model;

/** What a text model is. Pointers live as long as the model. */
typedef struct stint_text_model_facts {
    /* "gpt" or "llama". */
    const char *family;
    /* All sizes; none is zero that has a default. */
    stint_text_model_desc sizes;
    /* Tokens that the model sees at once, at most. */
    int64_t context;
    /* Number of trained values. */
    int64_t parameters;
    /* The token that ends a text; -1: none. */
    int64_t end_token;
    /* The model's own tokeniser, which the caller must not close. NULL: there is none,
     * or none that Stint reads, and the model takes and gives token identities
     * only. */
    const stint_tokenizer *tokenizer;
    /* Why there is no tokeniser; "" where there is one. */
    const char *no_tokenizer;
} stint_text_model_facts;

/** Open a text model; the caller closes it.
 *
 * path: a file that stint_train or stint_text_model_write wrote, the folder of a run,
 * or a folder with config.json and model.safetensors (or its shards with their index;
 * F32, F16 or BF16) of GPT-2, Llama, Mistral, Qwen2 or Qwen3, and perhaps a tokeniser.
 * Tensors, shapes and vocabulary are checked. STINT_E_INPUT: damaged, incomplete, or a
 * model of images; STINT_E_UNSUPPORTED: another family or variant; STINT_E_IO;
 * STINT_E_MEMORY. */
STINT_API stint_status stint_text_model_open(const char *path,
                                             stint_text_model **model_out);

/** The same as stint_model_adapt for a text model of any layout. */
STINT_API stint_status stint_text_model_adapt(stint_text_model *model,
                                              const char *folder);

/** Close a model. NULL is fine. Generators made from it do not need it any more. */
STINT_API void stint_text_model_close(stint_text_model *model);

/** Fill *facts_out. Never fails. */
STINT_API void stint_text_model_describe(const stint_text_model *model,
                                         stint_text_model_facts *facts_out);

/** Write a model of Stint with the same weights (as f32), and the tokeniser if there is
 * one: what stint_text_model_open, stint_model_open and `stint eval` take. STINT_E_IO;
 * STINT_E_MEMORY. */
STINT_API stint_status stint_text_model_write(const stint_text_model *model,
                                              const char *path);

/** The same with matrices in fewer bits: 16 (bfloat16), 8 or 4 (GGUF's Q8_0 and Q4_0
 * blocks), 0 or 32 float32. Generation keeps them so, unless it is told otherwise; to
 * all else the file holds the float32 numbers that they stand for. Learned positions
 * and vectors stay float32.
 *
 * memory_bytes: most resident memory of the process, 0 no bound. Tensors that do not
 * fit go through memory a few lines at a time, in more passes over their file.
 * STINT_E_BUDGET: not even these fit (what would); STINT_E_USAGE: other bits;
 * STINT_E_IO; STINT_E_MEMORY. */
STINT_API stint_status stint_text_model_write_packed(const stint_text_model *model,
                                                     const char *path, int weight_bits,
                                                     size_t memory_bytes);

/** Write a folder that Hugging Face's `transformers` loads: config.json and
 * model.safetensors (F32); for byte pairs also vocab.json and merges.txt, for
 * characters tokenizer.json, and tokenizer_config.json. STINT_E_UNSUPPORTED: a gpt that
 * shares keys and values, which GPT-2's layout cannot say; STINT_E_IO; STINT_E_MEMORY.
 */
STINT_API stint_status stint_text_model_write_hf(const stint_text_model *model,
                                                 const char *folder);

#ifdef __cplusplus
}
#endif

#endif
