/* Shared by checkpoint.c (writing) and checkpoint_resume.c (reading). */
#ifndef STI_TRAIN_CHECKPOINT_PRIV_H
#define STI_TRAIN_CHECKPOINT_PRIV_H

#include "train/checkpoint.h"

#define META_DATA_SHA "checkpoint_sha256"
#define META_COUNT    "train_count"

/* Numbers of a position in a checkpoint, one text each. */
typedef struct position_field {
    const char *key;
    size_t offset;
    bool whole; /* int64_t, else double */
    bool facts; /* also in model files */
    bool late;  /* files of older builds lack it: 0 */
} position_field;
extern const position_field sti_position_fields[];
extern const int sti_position_field_count;

struct sti_saver {
    const sti_job *job;
    const sti_crew *crew;
    sti_data_norm *norm;
    sti_arena *arena;
    sti_tensor_row *rows; /* parameters, states, masks, moments */
    int64_t weights;      /* rows of parameters and states, */
    int64_t model;        /* of these and masks: a model file, */
    int64_t tensors;      /* of these and moments, */
    int64_t count;        /* with the rest: a checkpoint */
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
};

#define ERROR_TENSOR "error.bounds"
#define NET_TENSOR                                                                     \
    "net.residuals"                   /* of all ranks, in the order of a result block; \
                                        bits of layers */
#define OLD_NET_TENSOR "net.exchange" /* in another order */
#define LOSS_TENSOR    "loss.state"
#define MASK_PREFIX    "mask."

/* Of all tensors and all texts but itself: what a sound checkpoint must match. debt_of:
 * NULL, or the file whose NET_TENSOR stands in the place of the run's. Fails only in
 * reading it. */
typedef const char *sti_text_of_fn(const void *user, const char *key);
stint_status sti_saver_checkpoint_sha256(const sti_saver *saver,
                                         const sti_tensor_file *debt_of,
                                         sti_text_of_fn *text_of, const void *user,
                                         char hex_out[65]);

#endif
