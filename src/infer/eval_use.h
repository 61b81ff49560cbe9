/* A model put to use for an evaluation, in the memory that there is for it. */
#ifndef STI_INFER_EVAL_USE_H
#define STI_INFER_EVAL_USE_H

#include "infer/lanes.h"
#include "store/model_file.h"

/* Model and data are open, and all that is resident by then counts. */
typedef struct sti_eval_ask {
    const stint_model_file *model;
    const stint_data *data; /* NULL: of text, or of a field */
    int64_t count, images;  /* samples; those of a lane's batch, as without a budget */
    int threads;
    size_t memory_bytes; /* of the whole process; 0: what the machine has */
} sti_eval_ask;

/* How it runs. Where the network takes fewer images than a batch has, batches run in
 * parts (sti_evaluation_in_parts). */
typedef struct sti_eval_use {
    int lanes;
    size_t planned_peak_bytes; /* of the whole process, stated before it was taken */
} sti_eval_use;

/* Plan an evaluation, take its memory and read the weights, as sti_model_use does.
 * Without a budget there is a lane a thread, and what depends on weights alone is made
 * once. Within one it is the first way that fits, from the quickest on: constants left
 * out; of images, half as many at a time, and again; one lane, whose operators share
 * the threads. Results have the same bits in every way.
 *
 * STINT_E_BUDGET, before anything is taken: none fits, with the least that would do.
 * Also after a failure what there is of network and lanes is the caller's to free:
 * sti_infer_destroy first, then sti_network_fini. */
stint_status sti_eval_use_model(const sti_eval_ask *ask, sti_network *network_out,
                                sti_infer **infer_out, sti_eval_use *use_out);

#endif
