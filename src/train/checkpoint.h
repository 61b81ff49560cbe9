/* Model files and checkpoints: what is in them, writing, and going on from one.
 *
 * Both are safetensors with the network's parameters and states under their names. A
 * pruned one also has a mask a pruned tensor ("mask.<name>", bit i % 8 of byte i / 8 is
 * 1 where element i is trained). A checkpoint also has the optimiser's moments
 * ("optimizer.0.<name>"), the bounds of packed activations ("error.bounds"), the state
 * of the weights of a loss against a reference ("loss.state") and the position.
 * Everything that a run's future depends on is in that one file, written beside its
 * place, synced and renamed. */
#ifndef STI_TRAIN_CHECKPOINT_H
#define STI_TRAIN_CHECKPOINT_H

#include "store/safetensors.h"
#include "train/error_control.h"
#include "train/job.h"
#include "train/loss_mix.h"

/* Where a run stands, beside its tensors. Sums are over training batches, in the order
 * of the steps. */
typedef struct sti_position {
    int64_t step;                     /* steps done */
    double epoch_loss, epoch_correct; /* of this epoch: sum over images; answers */
    int64_t epoch_images;             /* 0: the epoch is closed */
    double line_loss, line_correct;   /* since the last step line of the log */
    int64_t line_images;
    double train_loss, train_accuracy;   /* of the last closed epoch; NaN */
    double test_loss, test_accuracy;     /* of the last evaluation; NaN */
    int64_t chosen_step;                 /* of train.select; 0: none yet */
    int64_t chosen_right, chosen_others; /* there, of the held-out images */
    int64_t better_step; /* of the last epoch that was better than all before */
} sti_position;

typedef struct sti_saver sti_saver;

/* Borrows all; the tensors are written from the crew's blocks. norm and loss (NULL:
 * none) are filled by sti_saver_resume. */
stint_status sti_saver_create(const sti_job *job, const sti_crew *crew,
                              sti_data_norm *norm, sti_loss_state *loss,
                              sti_saver **saver_out);
/* After the job's networks were built anew, and at first when tensors are packed.
 * control: NULL without packs. */
stint_status sti_saver_refresh(sti_saver *saver, sti_error_control *control);
void sti_saver_destroy(sti_saver *saver);

/* SHA-256 of all parameters and states in file order. */
void sti_saver_weights_sha256(const sti_saver *saver, char hex_out[65]);

/* The same of one tensor, also of the optimiser's: i counts from 0 to one less than
 * sti_saver_tensors; the name lives as long as the saver. i -1: of all of them. */
int64_t sti_saver_tensors(const sti_saver *saver);
const char *sti_saver_tensor_sha256(const sti_saver *saver, int64_t i,
                                    char hex_out[65]);

stint_status sti_saver_write_model(sti_saver *saver, const sti_position *position,
                                   const char *path);
/* folder/step-00000000.safetensors; then removes older ones beyond `keep`. */
stint_status sti_saver_write_checkpoint(sti_saver *saver, const sti_position *position,
                                        const char *folder, int64_t keep);

/* Files of checkpoints in a folder, oldest first; none when there is no folder. */
stint_status sti_checkpoint_list(sti_arena *arena, const char *folder,
                                 char ***names_out, int64_t *count_out);

/* Load the newest sound checkpoint of folder into crew, norm and position. Broken ones
 * are logged by name and passed over; *found false: there is none. STINT_E_USAGE, with
 * the list, when the recipe differs in what decides the weights; STINT_E_INPUT when the
 * data or the numerics differ. */
stint_status sti_saver_resume(sti_saver *saver, const char *folder,
                              sti_position *position, bool *found);
/* Called by sti_saver_resume before tensors are read, with what the checkpoint's run
 * held packed (rows of sti_error_control_save): to make the networks the same.
 * STINT_E_BUDGET ends the search; after other failures an older checkpoint is taken. */
typedef stint_status sti_saver_adopt_fn(void *user, const float *state, int count);
void sti_saver_on_adopt(sti_saver *saver, sti_saver_adopt_fn *adopt, void *user);

/* Texts of a model's or checkpoint's metadata. Lists of numbers are space-separated. */
#define STI_META_VERSION  "stint.version"
#define STI_META_KIND     "stint.kind" /* "model" or "checkpoint" */
#define STI_META_NUMERICS "stint.numerics"
#define STI_META_NETWORK  "network"
#define STI_META_RECIPE   "recipe"  /* INI */
#define STI_META_CLASSES  "classes" /* JSON array */
/* Of text models, in place of classes, image, mean and deviation: sizes "context
 * vocabulary depth width heads kv_heads hidden epsilon rotary_base own_head" (the last
 * 0 or 1), and the tokeniser as stint_tokenizer_write has it (JSON). */
#define STI_META_TEXT      "text"
#define STI_META_TOKENIZER "tokenizer"
#define STI_META_END_TOKEN "end_token"   /* that ends a text; absent or -1: none */
#define STI_META_TEXT_SHA  "text_sha256" /* of all that it was trained and tested on */
#define STI_META_IMAGE     "image"       /* height width channels */
#define STI_META_MEAN      "mean"
#define STI_META_DEVIATION "deviation"
#define STI_META_STEP      "step"
#define STI_META_ACCURACY  "test_accuracy"
#define STI_META_LOSS      "test_loss"
#define STI_META_WEIGHTS   "weights_sha256"
#define STI_META_START     "start_sha256" /* weights of the model begun with */
#define STI_META_REFERENCE "reference_sha256"

/* The value of STI_META_TEXT into text [bytes]. */
void sti_meta_print_text(int64_t context, const stint_text_model_desc *desc, char *text,
                         size_t bytes);
/* "0.5 0.25" to count numbers; false if it is not exactly that. */
bool sti_meta_numbers(const char *text, int count, double *numbers_out);

#endif
