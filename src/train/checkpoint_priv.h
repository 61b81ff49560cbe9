/* Shared by checkpoint.c (writing) and checkpoint_resume.c (reading). */
#ifndef STI_TRAIN_CHECKPOINT_PRIV_H
#define STI_TRAIN_CHECKPOINT_PRIV_H

#include "train/checkpoint.h"

struct sti_saver {
    const sti_job *job;
    const sti_step_engine *engine;
    sti_projection *projection; /* NULL: none */
    sti_data_norm *norm;
    sti_arena *arena;
    sti_tensor_list list; /* parameters, states, masks, moments, the rest */
    int64_t weights;      /* rows of parameters and states, */
    sti_tensor_row *out;  /* rows of a model file, without adapters, [out_count] */
    int64_t out_count, out_weights;
    stint_value *value; /* [weights]: whose row it is */
    float *wide;        /* room for a row of a weight that is held in bytes, likewise */
    float *merged;      /* room for the largest weight with adapters; NULL: none */
    int64_t model;      /* of these and masks: a model file, */
    int64_t tensors;    /* of these and moments; all rows: a checkpoint */
    /* The rows that a checkpoint holds: parameters that are not trained are the
     * start's, and stay in its file. */
    sti_tensor_row *kept;
    int64_t kept_count;
    uint8_t *frozen; /* [weights]: a row of one of these parameters */
    bool any_frozen;
    sti_loss_state *loss; /* NULL: weights of the loss's parts do not change */
    const char *recipe_all, *recipe_shared; /* texts */
    const char *learned;                    /* what is told apart: see learned_key */
    const char *learned_key;                /* classes or tokeniser */
    sti_error_control *control;             /* NULL: nothing is packed */
    float *state;                           /* of control, a tensor */
    sti_value_form *forms;                  /* of the job, behind them */
    int form_count;
    sti_saver_adopt_fn *adopt;
    void *adopt_user;
    /* That the run goes on from, until its state of compressed sums is spread; NULL. */
    sti_tensor_file *resumed;
};

/* Is it the state of compressed sums, whose bytes only pass by? */
bool sti_saver_is_exchanged(const sti_tensor_row *row);

/* Rows of a model file, and the bytes of one of them (checkpoint_out.c). */
stint_status sti_saver_choose_out(sti_saver *saver);
stint_status sti_saver_fill_out(void *saver, const sti_tensor_row *row,
                                sti_writer *writer);
/* The imported network that training began with; NULL: it is of ours. */
const stint_model_file *sti_saver_imported(const sti_saver *saver);

/* SHA-256 of the parameters that are not trained, in their order, and of the channels
 * that shares of the others are of. */
void sti_saver_frozen_sha256(const sti_saver *saver, char hex_out[65]);

/* SHA-256 of all tensors and all texts but itself: what a sound checkpoint must match.
 * residuals_of: the file whose residuals stand in the place of the run's, or NULL: a
 * checkpoint is about to be written, and the other ranks follow. Fails only in reading
 * the one, in asking the others. */
stint_status sti_saver_checkpoint_sha256(const sti_saver *saver,
                                         const sti_tensor_file *residuals_of,
                                         sti_meta_find_fn *text_of, const void *user,
                                         char hex_out[65]);

#endif
