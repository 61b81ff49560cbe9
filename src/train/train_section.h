/* [train] of a recipe: how long, in which batches and from which seeds. */
#ifndef STI_TRAIN_TRAIN_SECTION_H
#define STI_TRAIN_TRAIN_SECTION_H

#include "base/recipe.h"
#include "base/rng.h"

enum { STI_ORDER_SHUFFLE, STI_ORDER_FILE };
enum { STI_PRECISION_F32, STI_PRECISION_BF16 };
enum { STI_SHARDS_MAX = 4096, STI_ACCUMULATE_MAX = 1 << 16 };
enum { STI_SELECT_LAST, STI_SELECT_ACCURACY, STI_SELECT_MISMATCH, STI_SELECT_LOSS };

typedef struct sti_train_values {
    int64_t epochs, steps; /* steps > 0 decides, else epochs */
    int64_t batch;         /* 0: auto */
    int64_t shards, seed;
    int64_t accumulate; /* micro-batches of a shard */
    int64_t seed_init, seed_order, seed_augment, seed_dropout; /* 0: seed */
    double label_smoothing;
    int64_t reference_batch;
    int precision;            /* STI_PRECISION_... */
    int64_t eval_every;       /* epochs; 0: only at the end */
    const char *start;        /* model to begin with; NULL: new weights */
    const char *start_blocks; /* of a text model; NULL: all */
    bool freeze_norm;         /* batch-norm keeps the statistics of `start` */
    double validation;        /* share of the training samples that is held out */
    int select;               /* STI_SELECT_... */
    double select_drop;       /* of the reference's accuracy, for STI_SELECT_MISMATCH */
    int64_t patience;         /* epochs; 0: the run goes to its end */
    int order;                /* STI_ORDER_..., of clicks */
    double average;           /* of weights: what a step keeps of it; 0: none */
    double time;              /* seconds that the run may last; 0: no limit */
} sti_train_values;

extern const sti_recipe_section sti_train_section;
const sti_train_values *sti_train_section_of(const stint_recipe *recipe);

/* An agent plays, and its network follows from what it sees. */
bool sti_recipe_is_agent(const stint_recipe *recipe);

/* The seed of one kind of random numbers: its own, or train.seed. */
uint64_t sti_recipe_seed(const stint_recipe *recipe, sti_stream stream);

#endif
