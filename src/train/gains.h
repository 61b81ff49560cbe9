/* How much a parameter matters to the user's data: the mean square of its gradient,
 * summed over the numbers of each channel (the diagonal of Fisher's information, as
 * TinyTrain has it, arXiv 2307.09988), over some batches, with the weights that
 * training begins with.
 *
 * Gradients of a part of the network are those of the whole, so they are collected for
 * as many layers at a time as a budget has room for, and the gains are the same
 * whatever it is. */
#ifndef STI_TRAIN_GAINS_H
#define STI_TRAIN_GAINS_H

#include "train/job.h"

enum { STI_GAINS_BATCHES = 8, STI_GAIN_SHARES = 4 };

typedef struct sti_gain {
    char *name;
    int64_t channels; /* of a weight's axis (sti_share_axis); 1: of anything else */
    double *channel;  /* [channels] */
    /* Measured: what training 1/8, 1/4, 1/2 and all of it gains beside the classifier
     * alone; NaN: not measured (of what has no shares only the last is). */
    double share[STI_GAIN_SHARES];
} sti_gain;

typedef struct sti_gains {
    sti_gain *tensor; /* [count], in the network's order; own memory */
    int count, capacity;
    char start_sha256[65]; /* of the model's weights; "": not known */
    bool measured;         /* by short trainings, gains_measure.c */
    double base_loss;      /* then: where the classifier alone came to */
    size_t tried_bytes;    /* highest planned peak of the steps that found them here */
} sti_gains;

void sti_gains_fini(sti_gains *gains); /* a zeroed one is fine */

/* NULL: not known. */
const sti_gain *sti_gains_find(const sti_gains *gains, const char *name);
/* The sum over all channels, and over the `count` largest. */
double sti_gain_sum(const sti_gain *gain);
double sti_gain_largest(const sti_gain *gain, int64_t count);
/* What training so many eighths of it, `count` channels, gains: as measured, or the sum
 * of the largest channels. */
double sti_gain_of(const sti_gains *gains, const sti_gain *gain, int eighths,
                   int64_t count);
/* The channels of most gain, ascending: [count], count <= channels. Of equals the
 * first. STINT_E_MEMORY. */
stint_status sti_channels_of_most(const double *size, int64_t channels, int64_t count,
                                  int32_t *channel_out);

/* Give every tensor of the set its channels and its gain, where they are known. */
stint_status sti_gains_apply(const sti_gains *gains, sti_update_set *set);

/* ---- gains_collect.c ---- */

/* Gains of these parameters, which may be too many for the budget (0: none) at once; of
 * one that is too large by itself there is none. The job's networks are built anew and
 * left unplanned. STINT_E_FAILED: a gradient is not finite. */
stint_status sti_gains_collect(sti_job *job, const sti_update_set *of,
                               size_t budget_bytes, sti_gains *gains_out);

/* ---- gains_measure.c ---- */

/* The set that trains so many eighths of a tensor (-1: none) beside what is always
 * trained. */
typedef stint_status sti_gains_set_fn(void *user, int tensor, int eighths,
                                      sti_update_set *set_out);

typedef struct sti_gains_measuring {
    sti_gains_set_fn *set;
    void *user;
    size_t budget_bytes; /* 0: none; what does not fit has no gain */
    const char *path;    /* kept there after each tensor, and gone on with; or NULL */
} sti_gains_measuring;

/* Gains that were collected become measured ones: each tensor and share is trained for
 * a few steps from the start, and the gain is by how much the loss of other batches
 * ends below that of training the classifier alone. The job is left as by
 * sti_gains_collect. */
stint_status sti_gains_measure(sti_job *job, const sti_gains_measuring *measuring,
                               sti_gains *gains);
/* The weights that the job's start has, and a new classifier, into an engine. */
stint_status sti_gains_begin_weights(const sti_job *job, sti_step_engine *engine);

/* ---- gains_file.c: gains.json ---- */

stint_status sti_gains_write(const sti_gains *gains, const char *path);
/* STINT_E_INPUT: it is none, or damaged. */
stint_status sti_gains_read(const char *path, sti_gains *gains_out);
stint_status sti_gains_parse(const char *text, size_t bytes, const char *path,
                             sti_gains *gains_out);
/* Are these gains of the model? STINT_E_INPUT: of other weights, or of a network of
 * other parameters. */
stint_status sti_gains_check(const sti_gains *gains, const char *path,
                             const stint_model_file *model);

#endif
