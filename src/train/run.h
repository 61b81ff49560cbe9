/* A running training: what train_run.c sets up and train_loop.c drives. */
#ifndef STI_TRAIN_RUN_H
#define STI_TRAIN_RUN_H

#include "train/checkpoint.h"
#include "train/error_control.h"
#include "train/evaluate.h"
#include "train/lr_schedule.h"
#include "train/run_log.h"
#include "train/tensorboard.h"

typedef struct sti_run {
    const stint_recipe *recipe;
    stint_recipe *settled; /* it, where the caller's says batch = auto; else NULL */
    const stint_train_desc *desc;
    sti_arena *arena;
    const char *out, *checkpoints, *model_path, *log_path; /* absolute */
    int lock_fd;                                           /* of the out folder */
    sti_job job;
    sti_crew *crew;
    sti_data_norm norm;
    sti_error_control *control; /* NULL: nothing is packed */
    sti_saver *saver;
    sti_run_log *log;
    sti_tensorboard *board; /* NULL: not asked for */
    sti_evaluation evaluation;
    bool evaluated; /* evaluation holds answers */
    sti_schedule schedule;
    sti_position position;
    int32_t *order;           /* [train_count] of epoch order_epoch */
    int64_t order_epoch;      /* -1: none yet */
    double lr, gradient_norm; /* of the last step */
    /* Time in training steps, loading included, evaluation and checkpoints not. */
    double step_s, epoch_s, line_s, evaluation_s;
    int64_t images; /* trained on in this process */
    int64_t steps_here;
    int64_t start_ns, progress_ns;
    size_t rss_bytes;
} sti_run;

/* From position to the last step, or until stopped. */
stint_status sti_run_loop(sti_run *run);

/* ---- run_packs.c ---- */

/* The control of the packs that the job's network has, if any. */
stint_status sti_run_create_control(sti_run *run);
/* What sti_saver_resume calls; user: the run. */
stint_status sti_run_adopt_packs(void *user, const float *state, int count);
/* Forward and backward of a batch. A block that turns out too small is made larger
 * within the same budget, and the batch is run again, until all fit. collect: find out
 * what the choice of bounds needs. */
stint_status sti_run_batch(sti_run *run, sti_crew_batch *batch, bool collect,
                           sti_step_result *result);
/* After the update: new bounds from a collecting batch, logged. */
stint_status sti_run_choose_bounds(sti_run *run, const sti_step_result *result,
                                   int64_t steps);

#endif
