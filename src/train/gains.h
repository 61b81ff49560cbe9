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

enum { STI_GAINS_BATCHES = 8 };

typedef struct sti_gain {
    char *name;
    int64_t channels; /* of a weight's axis (sti_share_axis); 1: of anything else */
    double *channel;  /* [channels] */
} sti_gain;

typedef struct sti_gains {
    sti_gain *tensor; /* [count], in the network's order; own memory */
    int count, capacity;
    char start_sha256[65]; /* of the model's weights; "": not known */
} sti_gains;

void sti_gains_fini(sti_gains *gains); /* a zeroed one is fine */

/* NULL: not known. */
const sti_gain *sti_gains_find(const sti_gains *gains, const char *name);
/* The sum over all channels, and over the `count` largest. */
double sti_gain_sum(const sti_gain *gain);
double sti_gain_largest(const sti_gain *gain, int64_t count);
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
