/* Where a training stands, beside its tensors, and how files hold it. */
#ifndef STI_STORE_POSITION_H
#define STI_STORE_POSITION_H

#include "store/model_meta.h"

/* Sums are over training batches, in the order of the steps. */
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
    int64_t shrink_done;                 /* compressions, or changes of phase, so far */
    int64_t shrink_step; /* after it the compression of lowest loss, + 1; 0: none yet */
    double shrink_loss;  /* of that on the held-out images */
    int64_t better_step; /* of the last epoch that was better than all before */
    double chosen_loss;  /* of chosen_step, on what is held out */
    int64_t chosen_epoch, better_epoch; /* of these steps; 0: of an older build */
    /* Where batches grow by noise: micro-batches a shard now (0: as at first), since
     * which step, of which epoch, after how many of its images; and sums of the scale.
     */
    int64_t grow_accumulate, grow_step, grow_epoch, grow_image;
    double noise_squares, noise_trace, noise_weight;
} sti_position;

/* A number of a position: a text of its own in a file. */
typedef struct sti_position_field {
    const char *key;
    size_t offset;
    bool whole; /* int64_t, else double */
    bool facts; /* also in model files */
    bool late;  /* files of older builds lack it: 0 */
} sti_position_field;
extern const sti_position_field sti_position_fields[];
extern const int sti_position_field_count;

/* facts_only: those that a model file has. */
void sti_position_add(const sti_position *position, bool facts_only,
                      sti_meta_texts *texts);
/* STINT_E_INPUT: a number is missing, none, or the step is below 0. */
stint_status sti_position_read(const sti_tensor_file *file, sti_position *position_out);

#endif
