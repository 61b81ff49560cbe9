/* What a recipe holds, and the option rows it is read by. */
#ifndef STI_TRAIN_RECIPE_H
#define STI_TRAIN_RECIPE_H

#include "base/option.h"
#include "stint/train.h"

/* Of everything that decides the bits of a result and is no part of the recipe. A
 * checkpoint of other numerics is not resumed. */
#define STI_NUMERICS_VERSION "1"

enum { STI_PRECISION_F32, STI_PRECISION_BF16 };
enum { STI_OPTIMIZER_SGD, STI_OPTIMIZER_ADAM, STI_OPTIMIZER_ADAMW };
enum {
    STI_SCHEDULE_CONSTANT,
    STI_SCHEDULE_STEP,
    STI_SCHEDULE_COSINE,
    STI_SCHEDULE_ONE_CYCLE
};

enum { STI_PACK_AUTO, STI_PACK_ALL };

typedef struct sti_recipe_values {
    struct {
        const char *name;
        int stem;             /* stint_stem */
        int64_t width, depth; /* 0: as published */
        double dropout;       /* -1: as published */
    } model;
    struct {
        const char *path; /* NULL: none given */
        int format;       /* row of sti_recipe_formats */
        int64_t size;     /* 0: as it is */
        int64_t channels; /* 0: as it is */
        int64_t crop_pad;
        bool flip;
    } data;
    struct {
        int64_t epochs, steps; /* steps > 0 decides, else epochs */
        int64_t batch; /* 0: auto */
        int64_t shards, seed;
        double label_smoothing;
        int64_t reference_batch;
        int precision;      /* STI_PRECISION_... */
        int64_t eval_every; /* epochs; 0: only at the end */
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
        double tau; /* gradient error allowed, a share of the mean momentum; 0: none */
        int64_t every; /* steps between collections */
        bool dither;
        int pack;   /* STI_PACK_AUTO, STI_PACK_ALL */
        bool check; /* measure the gradient error beside predicting it */
    } error;
    struct {
        const char *out; /* NULL: runs/<recipe's name> */
        int64_t threads; /* 0: choose */
        size_t memory_bytes;
        int64_t lanes;            /* 0: by memory */
        int64_t checkpoint_every; /* steps, 0: each epoch */
        int64_t keep;
        int64_t log_every;
        const char *tensorboard; /* NULL: none */
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

/* "auto", "folder", ... for stint_data_desc.format. */
const char *sti_recipe_format(const stint_recipe *recipe);
/* The network's name as written in model.name; never NULL. */
const char *sti_recipe_network(const stint_recipe *recipe);
/* Where the run's files go, absolute: run.out, or runs/<name of the recipe file or of
 * the network>. In the arena; NULL when out of memory. */
char *sti_recipe_out(const stint_recipe *recipe, sti_arena *arena);

/* Resolved INI text. Paths are made absolute; with share, they and the machine's own
 * settings (section run) are left out, for files that are handed on. */
stint_status sti_recipe_write(const stint_recipe *recipe, bool share, sti_text *out);
/* The other way: text from a model or checkpoint; `where` names it in messages. */
stint_status sti_recipe_parse(const char *text, const char *where,
                              stint_recipe **recipe_out);

/* Keys that decide the weights and differ, "train.batch (128, was 64)", comma-separated
 * into `list`; empty when the checkpoint's run may be continued. */
void sti_recipe_differences(const stint_recipe *now, const stint_recipe *then,
                            sti_text *list);

/* Milestones as numbers, at most max of them; the number there are, or -1 when the text
 * is no ascending list of epochs. */
#define STI_MILESTONES_MAX 32
int sti_recipe_milestones(const char *text, double *epochs_out, int max);

#endif
