/* What can be relied on: are two models the same bits, and does a changed model still
 * give the same answers. */
#ifndef STINT_TRUST_H
#define STINT_TRUST_H

#include "stint/data.h"
#include "stint/train.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- the same bits? ---- */

/** Distances in units in the last place: 0, 1, 2-3, 4-7, ..., 2^30 and more, and last
 *  those where either is NaN (of other bits). For integers, the plain distance. */
#define STINT_DIFF_BINS 33

typedef struct stint_diff_tensor {
    const char *name;
    int64_t count, different; /* elements; count -1: shapes or types are not the same */
    int64_t first;            /* index of the first difference, -1: none */
    double a, b;              /* values there */
    int64_t histogram[STINT_DIFF_BINS];
} stint_diff_tensor;

typedef struct stint_diff_result {
    int64_t tensors; /* in both files */
    stint_diff_tensor *tensor;
    int64_t different;      /* tensors */
    int64_t only_a, only_b; /* tensors that one file lacks */
    const char *first_only; /* name of the first of them, or NULL */
    void *arena;            /* of stint_diff_fini */
} stint_diff_result;

/** Compare the tensors of two safetensors files by name, in the order of the first.
 *  STINT_OK also when they differ: see the result. */
STINT_API stint_status stint_diff_files(const char *a, const char *b,
                                        stint_diff_result *result_out);
STINT_API void stint_diff_fini(stint_diff_result *result); /* a zeroed one is fine */

/* ---- the same answers? ---- */

/** A share of n with its 95 % interval (Wilson 1927). */
typedef struct stint_share {
    int64_t count, n;
    double rate, low, high; /* NaN when n is 0 */
} stint_share;

/** Agreement over inputs, 1 for the same: mean, and what 10 %, half and 90 % of the
 * inputs are below. NaN when count is 0. */
typedef struct stint_agreement {
    int64_t count; /* inputs for which it is defined */
    double mean, low, median, high;
} stint_agreement;

/** One class, or one group of inputs. */
typedef struct stint_fidelity_part {
    const char *name;
    int64_t count; /* inputs with this label, or of this group */
    int64_t reference_right, changed_right;
    double reference_fpr, changed_fpr; /* classes: false positives / (inputs of others);
                                          groups: mean over classes, inside the group */
    double reference_tpr, changed_tpr; /* classes: recall; groups: mean over classes */
    stint_share mismatch;
} stint_fidelity_part;

/** The changed model c beside the reference r on n labelled inputs. Always
 *  accuracy_c = accuracy_r - nfr + pfr, nfr + pfr <= mismatch, and
 *  |accuracy_r - accuracy_c| <= mismatch. */
typedef struct stint_fidelity {
    int64_t count;
    int32_t classes;
    double reference_accuracy, changed_accuracy;
    stint_share mismatch;       /* other answers */
    stint_share mismatch_right; /* of these, where the reference was right, over n */
    stint_share nfr, pfr;       /* right before and wrong now; the other way round */
    double mcnemar_p;           /* exact, two-sided, of nfr against pfr */
    double kl_mean, kl_999;     /* KL(p_r || p_c), nats: mean and 99.9th percentile */
    double logit_max;           /* largest |z_r - z_c| */
    double top5_same;           /* share of inputs with the same five best classes */
    double reference_ece, changed_ece; /* calibration error, 15 bins of confidence */
    double worst_recall_change;        /* of a class: the most negative */
    double mismatch_spread; /* over classes: standard deviation of mismatch rates */
    double odds_gap;        /* over groups: largest difference of a group's true or
                               false positive rate from that of all, changed model */
    stint_fidelity_part *class_part; /* [classes] */
    stint_fidelity_part *group_part; /* [groups], by name */
    int64_t groups;
    /* Against models that differ from the reference by chance alone. */
    int64_t floors;
    double floor_mismatch, floor_nfr;       /* means over them; NaN without */
    double excess_low, excess, excess_high; /* mismatch rate less the floor's, with the
                                               95 % interval of 1000 bootstrap draws */
    /* Of saliency maps, |d score / d pixel| of the reference's answer, over the inputs
     * asked for: Spearman's rank correlation, and structural similarity (Wang et al.
     * 2004). */
    stint_agreement saliency_rank, saliency_ssim;
    int32_t *reference_answer, *changed_answer; /* [count] */
    void *arena;
} stint_fidelity;

typedef struct stint_compare_desc {
    const char *reference, *changed; /* model files */
    const char *const *floor;        /* [floors]: models retrained with other seeds */
    int64_t floors;
    stint_data_desc data;
    const char *const *group; /* a name an input, in the order of the data; or NULL */
    int64_t group_count;      /* names given: must be the inputs' number */
    int64_t saliency; /* inputs whose saliency is compared, evenly spread; 0: none */
    int threads;
    int64_t batch;
    stint_train_progress_fn *progress; /* may be NULL */
    void *user;
} stint_compare_desc;

/** Run both models over the same labelled inputs and count what changed. STINT_E_INPUT:
 *  other classes or images, logits that are not finite (model and input are named),
 * group names that do not fit the data. */
STINT_API stint_status stint_compare(const stint_compare_desc *desc,
                                     stint_fidelity *fidelity_out);
STINT_API void stint_fidelity_fini(stint_fidelity *fidelity); /* a zeroed one is fine */

/* ---- how much of a result is luck? ---- */

/** Called between events of the runs, on the calling thread: `what` has begun. */
typedef void stint_trust_progress_fn(void *user, const char *what, int64_t done,
                                     int64_t total);

/** One way of running a recipe that must not matter. */
typedef struct stint_bits_run {
    char name[64], folder[64]; /* folder: inside the matrix's */
    char sha256[65];        /* of weights, statistics and optimiser state, at the end */
    bool same;              /* as the first run, at every step that has a hash */
    int64_t first_step;     /* after which the state differs first; -1: none */
    char first_tensor[128]; /* that differs there */
} stint_bits_run;

typedef struct stint_bits_desc {
    const char *program; /* the program stint, which runs them as child processes */
    const char *out;     /* folder that gets the runs; older ones in it are replaced */
    int64_t steps, hash_every;
    uint64_t seed;           /* of the step that the restart is at, and of sleeps */
    bool reference_isa;      /* also plain scalar code, which takes long */
    const char *const *with; /* [withs]: "train.batch=64", a further run with this
                                setting each */
    int64_t withs;
    stint_trust_progress_fn *progress; /* may be NULL */
    void *user;
} stint_bits_desc;

typedef struct stint_bits_result {
    stint_bits_run *run;    /* [runs] */
    int64_t runs, distinct; /* distinct: hashes at the end */
    int64_t steps;
    bool same;
} stint_bits_result;

/** Run a recipe with other threads, lanes, instruction sets, memory budgets (without
 *  loss), with sleeping workers, killed and resumed, and on 2 and 3 processes, and hold
 *  the hashes of the state against those of the first run. STINT_OK also when they
 *  differ. */
STINT_API stint_status stint_trust_bits(const stint_recipe *recipe,
                                        const stint_bits_desc *desc,
                                        stint_bits_result *result_out);
STINT_API void stint_bits_fini(stint_bits_result *result); /* a zeroed one is fine */

/** A class or a group of test inputs; NaN where it has no such rate. Deviations are
 *  over the runs; spreads are they, divided by that of all inputs (more than 1: it
 *  suffers more than the average). */
typedef struct stint_noise_part {
    const char *name;
    int64_t count;
    double accuracy_mean, accuracy_stdev, fpr_stdev, fnr_stdev;
    double accuracy_spread, fpr_spread, fnr_spread;
} stint_noise_part;

/** Runs that differ in what the arm lets vary. Accuracy is a share of the test inputs;
 *  false positive and negative rates are means over classes; deviations are of the
 *  population. After arXiv 2106.11872, by the definitions of its text. */
typedef struct stint_noise_arm {
    const char *name;
    int64_t runs;
    double accuracy_mean, accuracy_stdev, fpr_stdev, fnr_stdev;
    double *accuracy;   /* [runs] */
    double churn;       /* share of inputs with another answer, mean over pairs */
    double churn_least; /* mean over pairs of |accuracy_a - accuracy_b|: never more */
    double distance, distance_normalised; /* of weights; of weights of unit length */
    int64_t onset_step;       /* first with another state than the first run's; -1 */
    const char *onset_tensor; /* that differs there */
    bool control;             /* nothing varies: all must be 0 */
    stint_noise_part *class_part, *group_part; /* [classes], [groups] */
} stint_noise_arm;

typedef struct stint_noise_desc {
    const char *program; /* the program stint */
    const char *out;     /* folder of the runs; finished ones are used again */
    int64_t runs;        /* of each arm, 2 or more */
    const char *vary;    /* "init,order,augment,dropout,impl": one arm in which these
                            vary; NULL: ALGO+IMPL, ALGO, IMPL and CONTROL */
    bool ulp;            /* implementation noise is the last bit of one initial weight,
                            not the order of sums */
    int64_t jobs;        /* runs at once; 0: choose */
    const char *const *group; /* a name a test input, or NULL */
    int64_t group_count;
    stint_trust_progress_fn *progress; /* may be NULL */
    void *user;
} stint_noise_desc;

typedef struct stint_noise_result {
    stint_noise_arm *arm; /* [arms] */
    int arms;
    int32_t classes;
    int64_t groups, inputs;
    bool control_zero;  /* false: the arm CONTROL was run and is not 0 */
    int64_t made, kept; /* runs made by this call; finished before */
    void *arena;
} stint_noise_result;

/** Train every arm's runs as child processes, as many at once as threads and run.memory
 *  allow, and measure how much they differ. An interrupted call is gone on with by the
 *  same call. STINT_E_INPUT: the folder is of another recipe, data or numerics;
 *  STINT_E_BUDGET: one run does not fit. */
STINT_API stint_status stint_trust_noise(const stint_recipe *recipe,
                                         const stint_noise_desc *desc,
                                         stint_noise_result *result_out);
STINT_API void stint_noise_fini(stint_noise_result *result); /* a zeroed one is fine */
/* ---- what was memorised? ---- */

/** Answers of many networks, each trained on a random part of the training images, tell
 * which images a network gets right only if it has seen them, and which test images it
 * owes to one training image:
 *
 *   influence(i, j) = P[j right | i seen] - P[j right | i not seen]
 *   memorisation(i) = influence(i, i)
 *
 * after Feldman and Zhang, "What Neural Networks Memorize and Why", arXiv 2008.03703.
 */
typedef struct stint_memory_desc {
    int64_t runs;     /* networks, 2 or more */
    double fraction;  /* of the training images that each is trained on */
    int64_t jobs;     /* side by side; 0: as many as threads and memory allow */
    double memorised; /* an image counts as memorised from here on; 0: 0.25 */
    bool every_class; /* influence between images of different classes too */
    int64_t nearest;  /* training images kept a test image; 0: 8 */
    stint_train_progress_fn *progress; /* step: runs done; may be NULL */
    void *user;
} stint_memory_desc;

typedef struct stint_memory_pair {
    int64_t train, test;     /* samples; train -1: none */
    double influence, error; /* estimate and its standard error */
} stint_memory_pair;

#define STINT_MEMORY_BINS 400 /* of influence, from -1 to 1 */

typedef struct stint_memory {
    int64_t runs, train, test, members; /* images of a training */
    double fraction, error_bound;       /* no standard error is above the bound */
    double *memorisation,
        *error;        /* [train]; NaN: fewer than two runs with or without */
    int64_t *order;    /* [train]: the most memorised first, NaN last */
    int64_t undefined; /* training images that are NaN */
    double memorised_from;
    int64_t
        memorised; /* images from there on, and the share of them expected by chance */
    double memorised_chance;
    int64_t pairs, undefined_pairs; /* looked at: all, or all of one class */
    bool every_class;
    int64_t histogram[STINT_MEMORY_BINS]; /* of the defined ones */
    /* Pairs of a memorised image and a test image. The cut is the lowest at which at
     * most 5 % of the pairs above it are expected by chance; NaN: there is none. */
    double influence_from, influence_chance;
    int64_t influences;
    int64_t nearest;
    stint_memory_pair *pair; /* [test, nearest], strongest first */
    /* Of stint_memory_run alone. */
    int64_t runs_done, jobs;                       /* in this call */
    bool kept_in_memory;                           /* images decoded once */
    double seconds, train_accuracy, test_accuracy; /* means over the runs; of the images
                                                      left out, and of test images */
    size_t planned_peak_bytes, peak_rss_bytes;
    char out[1024];
} stint_memory;

/** Train the runs that are not in the out folder yet (run.out, or runs/NAME-memory),
 * then estimate. A run is a function of recipe, data, seed, fraction and its number:
 * any jobs, stops and kills lead to the same files. Leaves there members.npy,
 * train_right.npy, test_right.npy (bit columns), memorised.tsv, influence.tsv and
 * memory.html. STINT_E_USAGE: the folder is of another recipe, data, fraction or
 * numerics (which is named), or the fraction leaves no batch; STINT_E_BUDGET;
 * STINT_E_FAILED: a loss is not finite; STINT_E_INTERRUPTED or _TERMINATED after
 * stint_stop(). */
STINT_API stint_status stint_memory_run(const stint_recipe *recipe,
                                        const stint_memory_desc *desc,
                                        stint_memory *memory_out);
STINT_API void stint_memory_fini(stint_memory *memory); /* a zeroed one is fine */

/** Do changed answers fall on what was memorised? One side: training images with their
 * memorisation, or test images with the largest influence of a memorised image. */
typedef struct stint_tail_side {
    int64_t count, marked;           /* inputs; those from the cut on */
    int64_t changed, changed_marked; /* with another answer; of these, marked */
    double lift;                     /* (changed_marked / changed) / (marked / count) */
    double partial_lift;    /* changed_marked over what ten bins of the margin expect */
    double auroc, spearman; /* of the value for telling changed inputs */
    double
        p; /* chance of so high an AUROC if changes fell anywhere: 1000 permutations */
} stint_tail_side;

typedef struct stint_tail {
    double memorised_from, influence_from;
    stint_tail_side train, test;
    bool has_floor;
    stint_tail_side floor_train,
        floor_test; /* reference against the first floor model */
} stint_tail;

/** Join a comparison (its models, data and first floor model; `split` is not looked at)
 * with the folder of a finished stint_memory_run over the same data. */
STINT_API stint_status stint_tail_find(const stint_compare_desc *desc,
                                       const char *memory_folder, stint_tail *tail_out);

#ifdef __cplusplus
}
#endif

#endif
