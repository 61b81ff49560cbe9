/* A running training: what train_run.c sets up and train_loop.c drives. What the run
 * owns it frees in train_run.c (free_parts). */
#ifndef STI_TRAIN_RUN_H
#define STI_TRAIN_RUN_H

#include "base/recipe.h"
#include "data/balanced_order.h"
#include "infer/evaluate.h"
#include "stint/train.h"
#include "train/checkpoint.h"
#include "train/error_control.h"
#include "train/lc.h"
#include "train/lr_schedule.h"
#include "train/penalty.h"
#include "train/project.h"
#include "train/run_log.h"
#include "train/tensorboard.h"

typedef struct sti_run {
    const stint_recipe *recipe;
    stint_recipe *settled; /* it, where the caller's says batch = auto; else NULL */
    const stint_train_desc *desc;
    sti_comm *comm; /* of desc->net; NULL: one process */
    bool common;    /* why the run ends is known to all ranks */
    sti_arena *arena;
    const char *out, *checkpoints, *model_path, *log_path; /* absolute */
    int lock_fd;                                           /* of the out folder */
    sti_job job;
    sti_step_engine *engine;
    sti_data_norm norm, own_norm; /* the latter: of new weights */
    sti_error_control *control;   /* NULL: nothing is packed */
    sti_saver *saver;
    sti_run_log *log;
    sti_tensorboard *board; /* NULL: not asked for */
    sti_evaluation evaluation;
    bool evaluated;            /* evaluation holds answers */
    sti_evaluation validation; /* of select.c, as the next four */
    int32_t *reference_answer; /* [validation_count]; NULL: not asked for */
    int64_t reference_right;
    int64_t validation_right, validation_others; /* of the last epoch */
    sti_projection *projection;                  /* of a compression; NULL: none */
    sti_lc_plan lc;                              /* of its learning steps */
    const char *settled_scheme; /* with shares chosen for kernel(auto); NULL: not yet */
    sti_schedule schedule;
    sti_position position;
    int32_t *order;               /* [train_count] of epoch order_epoch */
    int64_t order_epoch;          /* -1: none yet */
    sti_balanced_order *balanced; /* NULL: every sample once an epoch */
    double lr, gradient_norm;     /* of the last step */
    sti_update_seen seen;         /* by its updates, where they are made within it */
    int64_t batch;                /* its images; 0: none yet */
    double part[STI_LOSS_PARTS];  /* of its loss against a reference; NaN */
    float part_weight[STI_LOSS_PARTS]; /* that it was weighed with */
    sti_loss_state loss;               /* of the parts' weights */
    char reference_sha256[65];         /* of the reference as loaded */
    /* Time in training steps, loading included, evaluation and checkpoints not. */
    double step_s, epoch_s, line_s, evaluation_s;
    /* Images that this process trained on: of this epoch and log line, a resumed run's
     * position counts those of the process before, too. */
    int64_t epoch_images, line_images;
    int64_t images; /* trained on in this process */
    int64_t steps_here;
    bool time_over; /* train.time, at the end of the last epoch */
    int64_t start_ns, progress_ns;
    size_t rss_bytes;
} sti_run;

/* ---- run_folder.c ---- */

/* Absolute paths of what the run writes, in its arena. */
stint_status sti_run_name_files(sti_run *run);
/* STINT_E_USAGE: the folder holds a run, and neither --resume nor --force says what is
 * to become of it: no old result is ever replaced in silence. */
stint_status sti_run_check_folder(const sti_run *run);
/* Make the folder and keep other processes out of it. */
stint_status sti_run_lock_folder(sti_run *run);
/* Remove what a killed process may have left half written, */
stint_status sti_run_remove_leavings(const sti_run *run);
/* and all files of an earlier run. */
stint_status sti_run_remove_old(const sti_run *run);
/* recipe.ini: what a repeat is to use. */
stint_status sti_run_write_recipe(const sti_run *run);

/* ---- run_begin.c, run_end.c ---- */

/* From a planned job to the state before the first step, on all ranks. */
stint_status sti_run_begin(sti_run *run);
/* The end of a run that began; st: how it went. The log says how the run ended,
 * whatever the end was; the first failure is what the caller hears of. */
stint_status sti_run_finish(sti_run *run, stint_status st, stint_train_result *result);

/* ---- train_loop.c ---- */

/* From position to the last step, or until stopped. */
stint_status sti_run_loop(sti_run *run);

/* ---- run_progress.c ---- */

/* Tell the host how far the run is, if that is due; always when an epoch is done. */
void sti_run_tell_progress(sti_run *run, bool epoch_done);
/* What an evaluation calls; user: the run. */
void sti_run_tell_evaluated(void *user, int64_t done, int64_t total);
/* 0 for no time. */
double sti_run_images_per_s(int64_t images, double seconds);

/* ---- run_ranks.c: all of them do nothing more than they must in a single process */

/* Is this the process that reads and writes the out folder? */
bool sti_run_is_first(const sti_run *run);
/* sti_comm_agree, or `mine`. */
stint_status sti_run_agree(sti_run *run, stint_status mine);
/* STINT_E_USAGE where recipe, data, program or --resume differ between ranks. */
stint_status sti_run_compare_ranks(sti_run *run);
/* Likewise of a run without a job; data: what it trains on, in words. */
stint_status sti_run_compare_data(sti_run *run, const char *data, int64_t steps);
/* Position, normalisation and all blocks as rank 0 has them. */
stint_status sti_run_share_start(sti_run *run);
/* Position, parameters and states as rank 0 has them. */
stint_status sti_run_share_weights(sti_run *run);
/* What any rank was asked for: a checkpoint, to stop. */
stint_status sti_run_share_requests(sti_run *run, bool *save_out,
                                    stint_status *stop_out);
/* Traffic of all ranks. STINT_E_BUG: their weights differ. */
stint_status sti_run_share_end(sti_run *run, stint_train_result *result);

/* ---- run_grow.c ---- */

/* Before a step: networks for micro-batches of `micro` times the images of the first
 * ones, where those there are are others. */
stint_status sti_run_grow_networks(sti_run *run, int64_t micro);

/* ---- run_packs.c ---- */

/* The control of the packs that the job's network has, if any. */
stint_status sti_run_create_control(sti_run *run);
/* The job has other networks: build everything else again. state: bounds to go on with,
 * of any packs. */
stint_status sti_run_rebuild(sti_run *run, const float *state, int state_count);
/* What sti_saver_resume calls; user: the run. With ranks, rank 0 calls it, and when
 * there is nothing more to adopt sti_run_end_adoptions; the others follow, until then.
 */
stint_status sti_run_adopt_packs(void *user, const float *state, int count);
stint_status sti_run_end_adoptions(const sti_run *run);
stint_status sti_run_follow_adoptions(sti_run *run);
/* The bounds of packed tensors as rank 0 has them. */
stint_status sti_run_share_bounds(sti_run *run);
/* Forward and backward of a batch. When a block turns out too small it is made larger,
 * or, where the budget has no room for that, the step is planned anew; then the batch
 * is run again, until all fit. Tensors packed for the first time get their bounds from
 * a run of which nothing else is used. collect: find out what the choice of bounds
 * needs. STINT_E_BUDGET: no plan fits any more; parameters and moments are as before.
 */
stint_status sti_run_batch(sti_run *run, sti_step_batch *batch, bool collect,
                           sti_step_result *result);
/* After the update: new bounds from a collecting batch, logged. */
stint_status sti_run_choose_bounds(sti_run *run, const sti_step_result *result,
                                   int64_t steps);

#endif
