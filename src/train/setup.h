/* How the work of a step is cut up, and the networks that do it. */
#ifndef STI_TRAIN_SETUP_H
#define STI_TRAIN_SETUP_H

#include "train/inputs.h"
#include "train/step_engine.h"

/* Owns its two networks; inputs and communicator are borrowed, so that a second set-up
 * can be made over the same inputs (sti_setup_like) and thrown away. */
typedef struct sti_setup {
    const sti_inputs *inputs;
    sti_comm *comm; /* ranks that share the shards out; NULL: one process */
    int threads;
    const char *threads_why; /* a literal */
    int moments;             /* blocks of optimiser state */
    int64_t batch, shards;   /* of the first step */
    int64_t accumulate;      /* micro-batches of a shard, there */
    bool grows;              /* later steps have more */
    int64_t micro; /* times as many images in a micro-batch as there, in this stage; 0,
                      1: as many */
    int64_t local_shards;    /* of this process */
    sti_network train, eval; /* eval: zeroed without a split to evaluate */
    size_t host_bytes;       /* of blocks that were there before the inputs */
    size_t base_bytes;       /* sti_memory_base when the networks were built */
} sti_setup;

/* The fewest shards, at least so many, that a batch can be cut into and train.shards
 * can be; 0: there is no such number. */
int64_t sti_shards_at_least(int64_t batch, int64_t shards);

/* Samples of a micro-batch: what the networks are built for. */
int64_t sti_setup_images(const sti_setup *setup);
/* Set the numbers; the networks are to be built again. */
void sti_setup_cut(sti_setup *setup, int64_t batch, int64_t shards);
/* The same over the same inputs, without networks. */
sti_setup sti_setup_like(const sti_setup *setup);
/* Networks for micro-batches of sti_setup_images samples, in place of those there were;
 * not yet planned. */
stint_status sti_setup_build(sti_setup *setup);
/* Plan this training network, which may be another one over the same inputs, and the
 * one for evaluation for so many lanes. */
stint_status sti_setup_plan(sti_setup *setup, sti_network *train, int lanes);
void sti_setup_fini(sti_setup *setup); /* a zeroed one is fine */

/* What the engine that runs it is, with so many lanes. */
sti_step_engine_desc sti_setup_engine(const sti_setup *setup, int lanes);

#endif
