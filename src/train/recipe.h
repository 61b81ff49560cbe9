/* What a recipe holds, and the option rows it is read by. */
#ifndef STI_TRAIN_RECIPE_H
#define STI_TRAIN_RECIPE_H

#include "base/option.h"
#include "stint/train.h"

enum { STI_OPTIMIZER_SGD, STI_OPTIMIZER_ADAM, STI_OPTIMIZER_ADAMW };
enum {
    STI_SCHEDULE_CONSTANT,
    STI_SCHEDULE_STEP,
    STI_SCHEDULE_COSINE,
    STI_SCHEDULE_ONE_CYCLE
};

typedef struct sti_recipe_values {
    struct {
        const char *name;
        int stem;
        int64_t width, depth;
        double dropout;
    } model;
    struct {
        const char *path;
        int format;
        int64_t size;
        int64_t channels;
        int64_t crop_pad;
        bool flip;
    } data;
    struct {
        int64_t epochs, steps, batch, shards, seed;
        double label_smoothing;
        int64_t eval_every;
    } train;
    struct {
        int name;
        double lr, momentum;
        bool nesterov;
        double weight_decay;
        bool decoupled, decay_all;
        double beta1, beta2, epsilon;
    } optimizer;
    struct {
        int name;
        double warmup;          /* epochs */
        const char *milestones; /* epochs */
        double gamma;
        double start_factor, final_factor; /* of lr */
    } schedule;
    struct {
        const char *out;
        int64_t threads;
        size_t memory_bytes;
        int64_t lanes;            /* 0: by memory */
        int64_t checkpoint_every; /* steps, 0: each epoch */
        int64_t keep;
        const char *tensorboard;
    } run;
} sti_recipe_values;

extern const sti_option sti_recipe_rows[];
extern const int sti_recipe_row_count;

/* The public handle. `values` first, so that the rows' offsets hold for both. */
struct stint_recipe {
    sti_recipe_values values;
    sti_arena *arena;
    sti_option_set set;
    const char *path; /* where it was read from, or NULL */
};

#endif
