/* Model files and checkpoints of a run: which of its blocks go into them (the files
 * themselves: store/checkpoint_file.h), writing, and going on from one. */
#ifndef STI_TRAIN_CHECKPOINT_H
#define STI_TRAIN_CHECKPOINT_H

#include "store/checkpoint_file.h"
#include "train/error_control.h"
#include "train/job.h"
#include "train/loss_mix.h"
#include "train/project.h"

typedef struct sti_saver sti_saver;

/* Borrows all; the tensors are written from the engine's blocks. projection NULL:
 * nothing is compressed. norm and loss (NULL:
 * none) are filled by sti_saver_resume. */
stint_status sti_saver_create(const sti_job *job, const sti_step_engine *engine,
                              sti_projection *projection, sti_data_norm *norm,
                              sti_loss_state *loss, sti_saver **saver_out);
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
/* folder/step-00000000.safetensors; then removes older ones beyond `keep`. Of rank 0:
 * the others call sti_exchange_follow_save meanwhile, where there is an exchange. */
stint_status sti_saver_write_checkpoint(sti_saver *saver, const sti_position *position,
                                        const char *folder, int64_t keep);

/* Load the newest sound checkpoint of folder into engine, norm and position. Broken
 * ones are logged by name and passed over; *found false: there is none. STINT_E_USAGE,
 * with the list, when the recipe differs in what decides the weights; STINT_E_INPUT
 * when the data or the numerics differ. */
stint_status sti_saver_resume(sti_saver *saver, const char *folder,
                              sti_position *position, bool *found);
/* Then, for sti_exchange_load: the state of compressed sums in the checkpoint found, if
 * any, which stays open until sti_saver_close_resumed. */
sti_exchange_source sti_saver_exchange_source(const sti_saver *saver);
void sti_saver_close_resumed(sti_saver *saver);
/* Called by sti_saver_resume before tensors are read, with what the checkpoint's run
 * held packed (rows of sti_error_control_save): to make the networks the same.
 * STINT_E_BUDGET ends the search; after other failures an older checkpoint is taken. */
typedef stint_status sti_saver_adopt_fn(void *user, const float *state, int count);
void sti_saver_on_adopt(sti_saver *saver, sti_saver_adopt_fn *adopt, void *user);

#endif
