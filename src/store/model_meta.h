/* Texts of the metadata of model files and checkpoints (see store/safetensors.h): their
 * keys, their forms, and a list of them to be written.
 *
 * Numbers are printed so that they are read back to the bit; lists of them are
 * separated by single spaces. Nothing here allocates. */
#ifndef STI_STORE_MODEL_META_H
#define STI_STORE_MODEL_META_H

#include "stint/model.h"
#include "store/safetensors.h"

#define STI_META_VERSION  "stint.version"
#define STI_META_KIND     "stint.kind" /* "model" or "checkpoint" */
#define STI_META_NUMERICS "stint.numerics"
#define STI_META_NETWORK  "network"
#define STI_META_RECIPE   "recipe"  /* INI */
#define STI_META_CLASSES  "classes" /* JSON array */
/* Text models have these in place of classes, image, mean and deviation: sizes "context
 * vocabulary depth width heads kv_heads hidden epsilon rotary_base own_head" (the last
 * 0 or 1), and the tokeniser as stint_tokenizer_write has it (JSON). */
#define STI_META_TEXT "text"
/* What a later family has beside: "head_size qkv_bias proj_bias mlp_bias qk_norm window
 * window_from", then its stretched waves, "kind factor low high attention original".
 * Absent where all of it is as GPT-2 and the first Llama have it. */
#define STI_META_TEXT_MORE "text_more"
#define STI_META_TOKENIZER "tokenizer"
#define STI_META_END_TOKEN "end_token"   /* that ends a text; absent or -1: none */
#define STI_META_TEXT_SHA  "text_sha256" /* of all that it was trained and tested on */
/* Fields have these: names of coordinates and outputs, "x,y r,g,b", and the hash of
 * what they were fitted to. */
#define STI_META_FIELD     "field"
#define STI_META_FIELD_SHA "field_sha256"
/* Recommendation models have it in place of all those: the hash of their ranks. */
#define STI_META_CLICKS    "embed.data"
#define STI_META_PLAY      "play.network" /* of an agent's model */
#define STI_META_IMAGE     "image"        /* height width channels */
#define STI_META_MEAN      "mean"
#define STI_META_DEVIATION "deviation"
#define STI_META_STEP      "step"
#define STI_META_ACCURACY  "test_accuracy"
#define STI_META_LOSS      "test_loss"
#define STI_META_WEIGHTS   "weights_sha256"
#define STI_META_START     "start_sha256" /* weights of the model begun with */
#define STI_META_REFERENCE "reference_sha256"
/* In checkpoints alone. */
#define STI_META_FROZEN     "frozen_sha256" /* of parameters that are not in the file */
#define STI_META_CHECKPOINT "checkpoint_sha256" /* of all else in the file */
/* Images alone have it: sti_data_measured_hash of those trained on, and of those held
 * out where train.select looks at them. Older builds wrote none. */
#define STI_META_IMAGES "images_hash"
#define STI_META_COUNT  "train_count" /* samples of the training set */

/* ---- writing ---- */

enum { STI_META_TEXTS = 48, STI_META_NUMBER_BYTES = 256 };

/* Texts of one file, with room for the numbers among them. A zeroed one is empty; it
 * must stay where it is while `row` is in use. Texts are borrowed. */
typedef struct sti_meta_texts {
    sti_tensor_text row[STI_META_TEXTS];
    char number[STI_META_TEXTS][STI_META_NUMBER_BYTES];
    int count;
} sti_meta_texts;

void sti_meta_add(sti_meta_texts *texts, const char *key, const char *text);
void sti_meta_add_int(sti_meta_texts *texts, const char *key, int64_t value);
/* NaN, for "not known", is an empty text. */
void sti_meta_add_float(sti_meta_texts *texts, const char *key, double value);
void sti_meta_add_ints(sti_meta_texts *texts, const char *key, const int64_t *values,
                       int count);
void sti_meta_add_floats(sti_meta_texts *texts, const char *key, const float *values,
                         int count);
/* STI_META_TEXT of a model of these sizes. */
void sti_meta_add_sizes(sti_meta_texts *texts, int64_t context,
                        const stint_text_model_desc *desc);

/* ---- reading ---- */

/* The text of a key, or NULL: of a list to be written (user: sti_meta_texts), or of an
 * open file (user: sti_tensor_file). */
typedef const char *sti_meta_find_fn(const void *user, const char *key);
const char *sti_meta_find(const void *texts, const char *key);
const char *sti_meta_find_in_file(const void *file, const char *key);

/* "0.5 0.25" to count numbers; false if it is not exactly that. text may be NULL. */
bool sti_meta_numbers(const char *text, int count, double *numbers_out);

#endif
