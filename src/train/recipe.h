/* What a recipe holds, and the option rows it is read by. */
#ifndef STI_TRAIN_RECIPE_H
#define STI_TRAIN_RECIPE_H

#include "base/option.h"
#include "base/rng.h"
#include "stint/train.h"

/* Of everything that decides the bits of a result and is no part of the recipe. A
 * checkpoint of other numerics is not resumed. */
#define STI_NUMERICS_VERSION "7"

enum { STI_PRECISION_F32, STI_PRECISION_BF16 };
enum { STI_OPTIMIZER_SGD, STI_OPTIMIZER_ADAM, STI_OPTIMIZER_ADAMW };
enum {
    STI_SCHEDULE_CONSTANT,
    STI_SCHEDULE_STEP,
    STI_SCHEDULE_COSINE,
    STI_SCHEDULE_ONE_CYCLE
};

enum { STI_PACK_AUTO, STI_PACK_ALL };
enum { STI_PRUNE_GLOBAL, STI_PRUNE_LAYER };
enum {
    STI_WEIGHTING_UNIFORM,
    STI_WEIGHTING_LEARNABLE,
    STI_WEIGHTING_SOFTADAPT,
    STI_WEIGHTING_FOCAL
};
enum { STI_SELECT_LAST, STI_SELECT_ACCURACY, STI_SELECT_MISMATCH };
enum { STI_SOFTADAPT_PLAIN, STI_SOFTADAPT_LOSS, STI_SOFTADAPT_NORMALISED };

enum { STI_CONVOLUTION_AUTO, STI_CONVOLUTION_DIRECT };

typedef struct sti_recipe_values {
    struct {
        const char *name;
        int stem;             /* stint_stem */
        int64_t width, depth; /* 0: as published */
        double dropout;       /* -1: as published */
        int convolution;      /* STI_CONVOLUTION_... */
        /* Of text: 0 as published, vocabulary 0 as the tokeniser. */
        int64_t heads, kv_heads, context, vocabulary;
    } model;
    struct {
        const char *path; /* NULL: none given */
        int format;       /* row of sti_recipe_formats */
        int64_t size;     /* 0: as it is */
        int64_t channels; /* 0: as it is */
        int64_t crop_pad;
        bool flip;
        int fit;           /* stint_data_fit, less one */
        double scale_crop; /* least share of the area; 0: none */
        int tokenizer; /* stint_tokenizer_kind */
        const char *tokenizer_path;
        double validation; /* share of a text, or of images without splits */
    } data;
    struct {
        int64_t epochs, steps; /* steps > 0 decides, else epochs */
        int64_t batch;         /* 0: auto */
        int64_t shards, seed;
        int64_t seed_init, seed_order, seed_augment, seed_dropout; /* 0: seed */
        double label_smoothing;
        int64_t reference_batch;
        int precision;      /* STI_PRECISION_... */
        int64_t eval_every; /* epochs; 0: only at the end */
        const char *start;  /* model to begin with; NULL: new weights */
        bool freeze_norm;   /* batch-norm keeps the statistics of `start` */
        double validation;  /* share of the training images that is held out */
        int select;         /* STI_SELECT_... */
        double select_drop; /* of the reference's accuracy, for STI_SELECT_MISMATCH */
        int64_t patience;   /* epochs; 0: the run goes to its end */
    } train;
    struct {
        const char *reference; /* model to stay close to; NULL: none */
        double hard, pairing, soft, temperature;
        int weighting, softadapt;
        int64_t window; /* steps */
        double beta, focal_base, focal_right;
    } loss;
    struct {
        double sparsity; /* 0: nothing */
        int scope;
        int64_t epochs; /* over which the share grows; 0: all at once */
    } prune;
    struct {
        int64_t bits; /* 0: f32 */
    } quantise;
    struct {
        int name;
        double lr, momentum;
        bool nesterov;
        double weight_decay;
        bool decoupled, decay_all;
        double beta1, beta2, epsilon;
        double clip; /* of the norm of all gradients; 0: none */
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
        int64_t order, ulp; /* seeds; 0: none */
    } noise;
    struct {
        int64_t bits;     /* a value of a gradient; 32: exact, 0: chosen a layer */
        const char *link; /* a rate to choose bits for; NULL: none */
        double time;      /* seconds that the link may take a step */
        int64_t every;    /* steps between choices of bits */
        int method, rounding, scheme; /* sti_gradient_method, _rounding, sti_scheme */
        int64_t bucket, group;
        bool clip, feedback, overlap;
        double keep;  /* share of the values that is sent */
        double error; /* squared, in that of 4 bits for all */
    } net;
    struct {
        const char *out; /* NULL: runs/<recipe's name> */
        int64_t threads; /* 0: choose */
        size_t memory_bytes;
        /* No keys: the batch was found in this process (batch_auto.c), and the highest
         * planned peak of those that ran. */
        bool searched;
        size_t tried_bytes;
        int64_t lanes;            /* 0: by memory */
        int64_t checkpoint_every; /* steps, 0: each epoch */
        int64_t keep;
        int64_t log_every;
        int64_t hash_every; /* steps; 0: none */
        bool answers;
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

/* The seed of one kind of random numbers: its own, or train.seed. */
uint64_t sti_recipe_seed(const sti_recipe_values *values, sti_stream stream);
/* "auto", "folder", ... for stint_data_desc.format. */
const char *sti_recipe_format(const stint_recipe *recipe);
/* data.fit for stint_data_desc.fit. */
stint_data_fit sti_recipe_fit(const stint_recipe *recipe);
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

/* A copy with no file of its own: paths in it are absolute. */
stint_status sti_recipe_copy(const stint_recipe *recipe, stint_recipe **copy_out);

/* Keys that decide the weights and differ, "train.batch (now 128, was 64)" where
 * these are the words, comma-separated into `list`; empty when the checkpoint's run may
 * be continued. */
void sti_recipe_differences(const stint_recipe *now, const char *now_word,
                            const stint_recipe *then, const char *then_word,
                            sti_text *list);

/* Milestones as numbers, at most max of them; the number there are, or -1 when the text
 * is no ascending list of epochs. */
#define STI_MILESTONES_MAX 32
int sti_recipe_milestones(const char *text, double *epochs_out, int max);

#endif
