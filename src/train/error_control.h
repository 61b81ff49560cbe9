/* The policy for error bounds of packed activations (COMET, arXiv 2111.09562).
 *
 * A packed tensor comes back with a uniform error within +-bound, which disturbs the
 * gradients made of it by sigma = bound sqrt(gain) a weight on average
 * (kernel/fold/error_gain.h). What is allowed is tau times the mean size of the
 * momentum of that weight's tensor (of sqrt(v) with Adam; of the gradient without
 * either), with the momentum's start from zero taken out as Adam does. So
 *
 *     bound = tau mean|M| / sqrt(gain),   the least over all gradients that read it
 *
 * between 2^-20 and 1/4 of the tensor's largest magnitude. Where the error also enters
 * the gradient of a batch-norm's input, and so all layers before, it may change that by
 * tau of its own size, too. tau refers to the gradient
 * of one step; with SGD the momentum itself then has a steady error of
 * 1 / sqrt(1 - momentum^2) times as much (2.3 times at 0.9).
 *
 * Gains, sizes and ranges are collected by a trial run, of which nothing else is used,
 * whenever a tensor is packed that was not before, after steps 1, 3, 10, 30 and 100,
 * when gradients change fast, and every `every` steps; a bound becomes at most 4 times
 * as coarse at once, but as fine as it must.
 *
 * All numbers come from sums over shards along the fixed tree, so bounds are the same
 * for any number of threads and lanes. */
#ifndef STI_TRAIN_ERROR_CONTROL_H
#define STI_TRAIN_ERROR_CONTROL_H

#include "model/network.h"
#include "train/error_section.h"
#include "train/optimizer_section.h"

enum { STI_ERROR_READERS = 8 };

/* A gradient that reads the unpacked tensor. */
typedef struct sti_error_reader {
    stint_value param, gain, error; /* error: measured, -1 without a check */
    /* Deviations a weight of the step's gradient, by the last collection. */
    double allowed, predicted, measured;
    double reach; /* of batch-norm: relative error predicted of its input's gradient */
    int blocks;   /* whose errors this gradient has: what is allowed is shared */
} sti_error_reader;

typedef struct sti_error_row {
    const char *name; /* of the layer, in the graph's memory */
    sti_pack_choice choice;
    stint_value stats;
    size_t plain_bytes; /* of what the block stands for, as it was */
    size_t bits_bytes;  /* of a ReLU's signs, kept beside this block */
    double limit;       /* the bound allowed; 0 before the first collection */
    sti_error_reader readers[STI_ERROR_READERS];
    int reader_count;
    /* Means over shards of the last run: */
    double bytes, bound, error_share, nonzero, exact, range;
    bool overflow;
} sti_error_row;

typedef struct sti_error_control sti_error_control;

/* network: planned, borrowed, with packs; *control_out NULL: there are none. */
stint_status sti_error_control_create(const sti_network *network,
                                      const sti_error_values *error,
                                      const sti_optimizer_values *optimizer,
                                      int64_t shards, sti_error_control **control_out);
void sti_error_control_destroy(sti_error_control *control); /* NULL is fine */

int sti_error_control_count(const sti_error_control *control);
const sti_error_row *sti_error_control_row(const sti_error_control *control, int row);

/* Name of a trained tensor. */
const char *sti_error_control_param(const sti_error_control *control,
                                    stint_value param);

/* Is there a tensor without a bound yet, so that a trial run must come first? */
bool sti_error_control_lacks(const sti_error_control *control);
/* Is the step (counted from 0) one after which to collect? */
bool sti_error_control_collects(const sti_error_control *control, int64_t step);

/* The table of bounds for a run: [count, STI_BOUND_FIELDS]. */
const float *sti_error_control_bounds(sti_error_control *control, bool collect);

/* How many runs of the graph the next result block is the sum of, where these are not
 * the shards that it was created for. */
void sti_error_control_set_shards(sti_error_control *control, int64_t shards);
/* Read what packing did from a step's result block (the sum over shards). *fits_out
 * false: a block was too small, the step is void; rows say which and how many bytes
 * they want. */
void sti_error_control_look(sti_error_control *control, const char *block,
                            bool *fits_out);

/* Choose bounds anew. block: of a run with collect; moments [2]: after the update, NULL
 * where there are none; steps: updates done, 0 for a trial run (the gradients of the
 * block stand for the momentum). */
void sti_error_control_collect(sti_error_control *control, const char *block,
                               const void *const *moments, int64_t steps);

/* After a run that did not fit: choices with blocks as large as what they are to hold,
 * [count]; capacity 0: the block would not be smaller than the raw tensor. */
void sti_error_control_enlarge(const sti_error_control *control,
                               sti_pack_choice *choices_out);

/* What a checkpoint must hold, f32 [count, STI_ERROR_STATE]; choices included. The
 * fields, of which FORM is a sti_pack_form. Rows without a capacity are no packs but
 * others' business. */
enum {
    STI_STATE_VALUE,
    STI_STATE_FORM,
    STI_STATE_CAPACITY,
    STI_STATE_LIMIT,
    STI_ERROR_STATE
};
void sti_error_control_save(const sti_error_control *control, float *state_out);
/* Rows are matched by the tensor packed; others are left alone. */
void sti_error_control_load(sti_error_control *control, const float *state, int count);
/* The choices in saved rows; their number. */
int sti_error_state_choices(const float *state, int count,
                            sti_pack_choice *choices_out);

#endif
