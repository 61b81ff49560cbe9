/* log.jsonl: one JSON object a line, each written whole. Its events and fields are
 * described in train/report.h, which reads them. */
#ifndef STI_TRAIN_RUN_LOG_H
#define STI_TRAIN_RUN_LOG_H

#include "base/recipe.h"
#include "infer/evaluate.h"
#include "stint/train.h"
#include "train/checkpoint.h"

typedef struct sti_run_log sti_run_log;

/* Begin the log with a start line. resume_step >= 0: lines of steps up to it are kept,
 * later ones go, as if the run had stopped there (epoch_open: the epoch that ends at
 * that step is not evaluated yet, so its line goes too). */
stint_status sti_run_log_open(const char *path, const sti_job *job, int64_t resume_step,
                              bool epoch_open, sti_run_log **log_out);
void sti_run_log_close(sti_run_log *log); /* NULL is fine */

/* Parts of a loss against a reference, [STI_LOSS_PARTS] each: those of the last step
 * (NaN: not there) and what they were multiplied by. */
typedef struct sti_log_parts {
    const double *part;
    const float *weight;
} sti_log_parts;

/* Answers to the held-out images after an epoch; others -1: no reference is followed.
 */
typedef struct sti_log_validation {
    int64_t count, right, others; /* right -1: text has no classes to be right about */
    double loss;
} sti_log_validation;

/* Figures of the last step, and the speed since the last line. */
typedef struct sti_log_figures {
    int64_t batch; /* images */
    double lr, gradient_norm, images_per_s;
    double noise_scale; /* images; NaN: not known */
    double epoch;       /* done, with a fraction; NaN: steps tell */
} sti_log_figures;

/* One line each; parts, held_out NULL: none. STINT_E_IO when it cannot be written. */
stint_status sti_run_log_step(sti_run_log *log, const sti_position *position,
                              const sti_log_figures *figures,
                              const sti_log_parts *parts);
stint_status sti_run_log_epoch(sti_run_log *log, const sti_position *position,
                               int64_t epoch, bool tested,
                               const sti_log_validation *held_out, double images_per_s,
                               double seconds);
/* Hashes of all tensors together, and the first 16 digits of each one's. */
stint_status sti_run_log_state(sti_run_log *log, int64_t step, const sti_saver *saver);
/* The bounds just chosen for packed tensors, and what the last run did with them. */
stint_status sti_run_log_bounds(sti_run_log *log, int64_t step,
                                const sti_error_control *control);
/* How bits of gradients were chosen in this step. */
stint_status sti_run_log_net(sti_run_log *log, int64_t step, const char *why);
/* What a compression came to. */
typedef struct sti_log_shrink {
    int64_t step;
    const char *phase;  /* of click: "select" or "hard"; NULL: a compression */
    int64_t number;     /* of the compression; 0: the direct one */
    double mu;          /* that the weights learnt with */
    double distance;    /* |w - theta| / |w| */
    double multipliers; /* |lambda| */
    double loss, compressed_loss; /* of held-out images; NaN: not asked for */
    double correlation;           /* of the halves of the importance, of "select" */
    int64_t nonzeros, weights;    /* 0: not known */
    bool chosen;                  /* the best so far */
} sti_log_shrink;
stint_status sti_run_log_shrink(sti_run_log *log, const sti_log_shrink *line);
/* Epochs that were no better than one before them have ended the run. */
stint_status sti_run_log_early_stop(sti_run_log *log, int64_t step,
                                    int64_t better_epoch);
/* Times as long as without a budget that a step takes: expected and measured. */
stint_status sti_run_log_slowdown(sti_run_log *log, int64_t step, double expected,
                                  double measured);
/* Packed blocks that were too small; the plan that took the place of the old one. */
stint_status sti_run_log_growth(sti_run_log *log, int64_t step,
                                const sti_error_control *control);
stint_status sti_run_log_plan(sti_run_log *log, int64_t step,
                              const stint_plan_result *plan, int packs);
/* evaluation: of the last test, or NULL. */
stint_status sti_run_log_end(sti_run_log *log, stint_status status,
                             const stint_train_result *result,
                             const sti_evaluation *evaluation,
                             const stint_data *test_data);

/* errors.json beside it: the surest mistakes of an evaluation. */
stint_status sti_run_errors_write(const char *path, const stint_recipe *recipe,
                                  const sti_evaluation *evaluation,
                                  const stint_data *test_data);

#endif
