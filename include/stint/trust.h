/* What can be relied on: are two models the same bits, does a changed model still give
 * the same answers, how much of a result is luck, what was memorised.
 *
 * Each question has a description of the work, a result, a call that fills it, and a
 * _fini that frees what the result points to; call it after an error, too:
 *
 *   stint_fidelity f;
 *   const stint_compare_desc desc = {.reference = "runs/one/model.safetensors",
 *                                    .changed = "runs/int8/model.safetensors",
 *                                    .data = {.path = "photos",
 *                                             .split = STINT_DATA_TEST}};
 *   if (stint_compare(&desc, &f) == STINT_OK)
 *       printf("%.2f %% other answers\n", 100 * f.mismatch.rate);
 *   stint_fidelity_fini(&f);
 *
 * Pointers in a result belong to it and hold until its _fini. Calls block; progress
 * comes on the calling thread. A description is only read, and nothing of it is kept.
 *
 * docs/trust.md explains each figure, and the subcommands
 * `stint diff`, `stint compare` and `stint trust` print them. */
#ifndef STINT_TRUST_H
#define STINT_TRUST_H

#include "stint/data.h"
#include "stint/train.h"

#ifdef __cplusplus
extern "C" {
#endif

/** Memory of names in a result; opaque. The library makes it, and the _fini of its
 * result frees it; callers leave it alone. */
typedef struct sti_arena stint_result_memory;

/* ---- the same bits? ----
 *
 * A rounding difference and another model look nothing alike: distances are counted in
 * units in the last place, the number of floats between two values. */

/** Bins of distances in units in the last place: 0, 1, 2-3, 4-7, ..., 2^30 and more,
 * and last those where either value is NaN (of other bits). For integers, the plain
 * distance. */
#define STINT_DIFF_BINS 33

/** How two tensors of one name differ, element by element. */
typedef struct stint_diff_tensor {
    const char *name;
    /* Elements, and those that differ. count -1: shapes or types are not the same. */
    int64_t count, different;
    /* Index of the first difference; -1: none. */
    int64_t first;
    /* The two values there. */
    double a, b;
    /* Elements by their distance. */
    int64_t histogram[STINT_DIFF_BINS];
} stint_diff_tensor;

/** How two files differ. */
typedef struct stint_diff_result {
    /* Tensors that both files have: [tensors], in the order of the first. */
    int64_t tensors;
    stint_diff_tensor *tensor;
    /* How many of them differ. */
    int64_t different;
    /* Tensors that the other file lacks. */
    int64_t only_a, only_b;
    /* Name of the first of them, or NULL. */
    const char *first_only;
    /* The names; freed by stint_diff_fini. */
    stint_result_memory *arena;
} stint_diff_result;

/** Compare the tensors of two safetensors files by name.
 *
 * STINT_OK also when they differ: see the result. STINT_E_INPUT: a file is damaged or
 * of another kind; STINT_E_IO; STINT_E_MEMORY. */
STINT_API stint_status stint_diff_files(const char *a, const char *b,
                                        stint_diff_result *result_out);

/** Free what a comparison of files points to. A result that is all zero is fine; so is
 * a second call. */
STINT_API void stint_diff_fini(stint_diff_result *result);

/* ---- the same answers? ----
 *
 * Equal accuracy does not mean equal answers. Models of other seeds (a floor) say how
 * many answers differ by chance anyway. */

/** A share of n with its 95 % interval (Wilson 1927). */
typedef struct stint_share {
    int64_t count, n;
    /* From 0 to 1; NaN when n is 0. */
    double rate, low, high;
} stint_share;

/** Agreement over inputs, 1 for the same. */
typedef struct stint_agreement {
    /* Inputs for which it is defined. */
    int64_t count;
    /* Mean, and what 10 %, half and 90 % of the inputs are below; NaN when count is
     * 0. */
    double mean, low, median, high;
} stint_agreement;

/** One class, or one group of inputs. */
typedef struct stint_fidelity_part {
    const char *name;
    /* Inputs with this label, or of this group. */
    int64_t count;
    /* How many of them each model answers right. */
    int64_t reference_right, changed_right;
    /* False positive rates. Classes: false positives / inputs of other classes; groups:
     * mean over classes, inside the group. */
    double reference_fpr, changed_fpr;
    /* True positive rates. Classes: recall; groups: mean over classes. */
    double reference_tpr, changed_tpr;
    /* Other answers among them. */
    stint_share mismatch;
} stint_fidelity_part;

/** The changed model c beside the reference r on n labelled inputs. Always
 * accuracy_c = accuracy_r - nfr + pfr, nfr + pfr <= mismatch, and
 * |accuracy_r - accuracy_c| <= mismatch. */
typedef struct stint_fidelity {
    int64_t count;
    int32_t classes;
    /* Shares of inputs answered right. */
    double reference_accuracy, changed_accuracy;
    /* Inputs with other answers. */
    stint_share mismatch;
    /* Other answers where the reference was right, as a share of all inputs. */
    stint_share mismatch_right;
    /* Negative flips: right before and wrong now. Positive flips: the other way
     * round. */
    stint_share nfr, pfr;
    /* McNemar's test of nfr against pfr, exact and two-sided. */
    double mcnemar_p;
    /* Kullback-Leibler divergence KL(p_r || p_c) in nats: mean and 99.9th percentile.
     */
    double kl_mean, kl_999;
    /* Largest |z_r - z_c| of logits. */
    double logit_max;
    /* Share of inputs with the same five best classes. */
    double top5_same;
    /* Expected calibration error, 15 bins of confidence. */
    double reference_ece, changed_ece;
    /* Most negative change of recall of a class. */
    double worst_recall_change;
    /* Over classes: standard deviation of mismatch rates. */
    double mismatch_spread;
    /* Over groups: largest difference of a group's true or false positive rate from
     * that of all, changed model. */
    double odds_gap;
    /* A row for each class: [classes]. */
    stint_fidelity_part *class_part;
    /* A row for each group, in the order of their names: [groups]. */
    stint_fidelity_part *group_part;
    int64_t groups;
    /* Models that differ from the reference by chance alone, and means over them; NaN
     * without any. */
    int64_t floors;
    double floor_mismatch, floor_nfr;
    /* Mismatch rate less the floor's, with the 95 % interval of 1000 bootstrap draws.
     */
    double excess_low, excess, excess_high;
    /* Saliency maps, |d score / d pixel| of the reference's answer, over the inputs
     * asked for: Spearman's rank correlation, and structural similarity (Wang et al.
     * 2004). */
    stint_agreement saliency_rank, saliency_ssim;
    /* [count]: the class that each model answers. */
    int32_t *reference_answer, *changed_answer;
    /* The names; freed by stint_fidelity_fini. */
    stint_result_memory *arena;
} stint_fidelity;

/** Which models to compare on which inputs. Nothing of it is kept. */
typedef struct stint_compare_desc {
    /* Model files. */
    const char *reference, *changed;
    /* [floors]: models of the same recipe trained with other seeds; may be NULL. */
    const char *const *floor;
    int64_t floors;
    /* Labelled inputs. */
    stint_data_desc data;
    /* [group_count]: a name for each input, in the order of the data; NULL: no groups.
     * group_count must be the number of inputs. */
    const char *const *group;
    int64_t group_count;
    /* Inputs whose saliency is compared, evenly spread; 0: none. */
    int64_t saliency;
    /* As in stint_eval(); 0: choose. */
    int threads;
    int64_t batch;
    /* May be NULL. */
    stint_train_progress_fn *progress;
    /* Passed through to progress. */
    void *user;
} stint_compare_desc;

/** Run both models over the same labelled inputs and count what changed.
 *
 * STINT_E_INPUT: other classes or images, logits that are not finite (model and input
 * are named), group names that do not fit the data; STINT_E_UNSUPPORTED: models of
 * text; STINT_E_IO; STINT_E_MEMORY. */
STINT_API stint_status stint_compare(const stint_compare_desc *desc,
                                     stint_fidelity *fidelity_out);

/** Free what a comparison points to. A result that is all zero is fine; so is a second
 * call. */
STINT_API void stint_fidelity_fini(stint_fidelity *fidelity);

/* ---- how much of a result is luck? ----
 *
 * The first call proves that nothing which must not matter matters; the second measures
 * what seeds and roundings do. Both run the program `stint` as child processes. */

/** Called between events of the runs, on the calling thread: `what` has begun, done of
 * total runs are over. The text holds during the call only. */
typedef void stint_trust_progress_fn(void *user, const char *what, int64_t done,
                                     int64_t total);

/** One way of running a recipe that must not matter. */
typedef struct stint_bits_run {
    /* What is special about it, and its folder inside of the out folder. */
    char name[64], folder[64];
    /* SHA-256 of weights, statistics and optimiser state at the end. */
    char sha256[65];
    /* Its state was that of the first run at every step that has a hash. */
    bool same;
    /* Step after which the state differs first, -1: none; and a tensor that differs
     * there. */
    int64_t first_step;
    char first_tensor[128];
} stint_bits_run;

/** Which runs to make. */
typedef struct stint_bits_desc {
    /* The program stint, which runs them as child processes. */
    const char *program;
    /* Folder that gets the runs; older ones in it are replaced. */
    const char *out;
    /* Steps of a run, 2 or more, and between two hashes of the state, 1 or more. */
    int64_t steps, hash_every;
    /* Decides at which step one run is restarted, and how long sleeping threads
     * sleep. */
    uint64_t seed;
    /* Also plain scalar code, which takes long. */
    bool reference_isa;
    /* [withs]: "train.batch=64", a further run with this setting each. */
    const char *const *with;
    int64_t withs;
    /* May be NULL. */
    stint_trust_progress_fn *progress;
    /* Passed through to progress. */
    void *user;
} stint_bits_desc;

/** What the runs came to. A recipe is reproducible on this machine if `same` is true
 * and distinct is 1. */
typedef struct stint_bits_result {
    /* Each run, the one that all are held against first: [runs]. */
    stint_bits_run *run;
    /* distinct: different hashes at the end; 1 is what should be. */
    int64_t runs, distinct;
    /* Steps of each run. */
    int64_t steps;
    /* All are as the first. */
    bool same;
} stint_bits_result;

/** Run a recipe with other threads, lanes, instruction sets, memory budgets (without
 * loss), with sleeping workers, killed and resumed, and on 2 and 3 processes, and hold
 * the hashes of the state against those of the first run.
 *
 * STINT_OK also when they differ: see the result. STINT_E_USAGE: the recipe is not
 * sound, train.batch = auto, or a number of desc out of range; what a run fails with;
 * STINT_E_IO; STINT_E_MEMORY; STINT_E_INTERRUPTED or _TERMINATED after stint_stop(). */
STINT_API stint_status stint_trust_bits(const stint_recipe *recipe,
                                        const stint_bits_desc *desc,
                                        stint_bits_result *result_out);

/** Free what a result points to. One that is all zero is fine. */
STINT_API void stint_bits_fini(stint_bits_result *result);

/** A class or a group of test inputs. Deviations are over the runs; spreads are they,
 * divided by that of all inputs (above 1: it suffers more than the average). NaN where
 * it has no such rate. */
typedef struct stint_noise_part {
    const char *name;
    int64_t count;
    /* Accuracy, false positive rate, false negative rate. */
    double accuracy_mean, accuracy_stdev, fpr_stdev, fnr_stdev;
    double accuracy_spread, fpr_spread, fnr_spread;
} stint_noise_part;

/** Runs that differ in what the arm lets vary. Accuracy is a share of the test inputs;
 * false positive and negative rates are means over classes; deviations are of the
 * population. After arXiv 2106.11872, by the definitions of its text. */
typedef struct stint_noise_arm {
    /* "ALGO", and its runs. */
    const char *name;
    int64_t runs;
    /* Over the runs. */
    double accuracy_mean, accuracy_stdev, fpr_stdev, fnr_stdev;
    /* [runs]. */
    double *accuracy;
    /* Share of inputs with another answer, mean over pairs of runs. */
    double churn;
    /* Mean over pairs of |accuracy_a - accuracy_b|: never more than churn. */
    double churn_least;
    /* L2 distance of weights, mean over pairs; the same of weights of unit length. */
    double distance, distance_normalised;
    /* First step with another state than the first run's, -1: none; and a tensor that
     * differs there. */
    int64_t onset_step;
    const char *onset_tensor;
    /* Nothing varies: all must be 0. */
    bool control;
    /* [classes], [groups]. */
    stint_noise_part *class_part, *group_part;
} stint_noise_arm;

/** Which runs to make. */
typedef struct stint_noise_desc {
    /* The program stint, which runs them as child processes. */
    const char *program;
    /* Folder of the runs; finished ones are used again. */
    const char *out;
    /* Runs of each arm, 2 or more. */
    int64_t runs;
    /* "init,order,augment,dropout,impl": one arm in which these vary. NULL: the arms
     * ALGO+IMPL, ALGO, IMPL and CONTROL. */
    const char *vary;
    /* Implementation noise is the last bit of one initial weight, not the order of
     * sums. */
    bool ulp;
    /* Runs at once; 0: choose. */
    int64_t jobs;
    /* [group_count]: a name for each test input; NULL: no groups. */
    const char *const *group;
    int64_t group_count;
    /* May be NULL. */
    stint_trust_progress_fn *progress;
    /* Passed through to progress. */
    void *user;
} stint_noise_desc;

/** What the runs came to: a row for each arm, and what all arms have in common. */
typedef struct stint_noise_result {
    /* [arms]. */
    stint_noise_arm *arm;
    int arms;
    /* Classes, groups and inputs of the test split. */
    int32_t classes;
    int64_t groups, inputs;
    /* False: the arm CONTROL was run and is not 0. */
    bool control_zero;
    /* Runs made by this call, and finished before it. */
    int64_t made, kept;
    /* Everything that the result points to; freed by stint_noise_fini. */
    stint_result_memory *arena;
} stint_noise_result;

/** Train every arm's runs as child processes, as many at once as threads and run.memory
 * allow, and measure how much they differ.
 *
 * An interrupted call is gone on with by the same call. STINT_E_INPUT: the folder is of
 * another recipe, data or numerics; STINT_E_BUDGET: one run does not fit;
 * STINT_E_USAGE: the recipe is not sound or a number of desc out of range; what a run
 * fails with; STINT_E_IO; STINT_E_MEMORY; STINT_E_INTERRUPTED or _TERMINATED after
 * stint_stop(). */
STINT_API stint_status stint_trust_noise(const stint_recipe *recipe,
                                         const stint_noise_desc *desc,
                                         stint_noise_result *result_out);

/** Free what a result points to. One that is all zero is fine. */
STINT_API void stint_noise_fini(stint_noise_result *result);

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
    /* Networks, 2 or more. */
    int64_t runs;
    /* Share of the training images that each is trained on. */
    double fraction;
    /* Networks trained side by side; 0: as many as threads and memory allow. */
    int64_t jobs;
    /* An image counts as memorised from this value on; 0: 0.25. */
    double memorised;
    /* Influence between images of different classes, too. */
    bool every_class;
    /* Training images kept for each test image; 0: 8. */
    int64_t nearest;
    /* Its step is the number of runs done; may be NULL. */
    stint_train_progress_fn *progress;
    /* Passed through to progress. */
    void *user;
} stint_memory_desc;

/** A training image and a test image. */
typedef struct stint_memory_pair {
    /* Their samples; train -1: none. */
    int64_t train, test;
    /* Estimate and its standard error. */
    double influence, error;
} stint_memory_pair;

/** Bins of influence, from -1 to 1. */
#define STINT_MEMORY_BINS 400

/** What was memorised. Samples are counted as stint_data_open() orders them. */
typedef struct stint_memory {
    /* Networks; images of each split; images that a network is trained on. */
    int64_t runs, train, test, members;
    /* The fraction; no standard error is above the bound. */
    double fraction, error_bound;
    /* [train]: estimate and standard error; NaN: fewer than two runs with the image, or
     * without it. */
    double *memorisation, *error;
    /* [train]: samples, the most memorised first, NaN last. */
    int64_t *order;
    /* Training images that are NaN. */
    int64_t undefined;
    /* The value from which an image counts as memorised; such images; and the share of
     * them that is expected by chance. */
    double memorised_from;
    int64_t memorised;
    double memorised_chance;
    /* Pairs looked at (all, or all of one class), and of them those without estimate.
     */
    int64_t pairs, undefined_pairs;
    bool every_class;
    /* Pairs with an estimate, by their influence. */
    int64_t histogram[STINT_MEMORY_BINS];
    /* Pairs of a memorised image and a test image: the lowest cut at which at most 5 %
     * of the pairs above it are expected by chance (NaN: there is none), the share
     * expected, and the pairs above it. */
    double influence_from, influence_chance;
    int64_t influences;
    /* [test, nearest], strongest first. */
    int64_t nearest;
    stint_memory_pair *pair;
    /* What follows is filled by stint_memory_run alone. Runs of this call, and how many
     * were made side by side. */
    int64_t runs_done, jobs;
    /* Images were decoded once. */
    bool kept_in_memory;
    /* Wall time; means over the runs of the accuracy on images left out, and on test
     * images. */
    double seconds, train_accuracy, test_accuracy;
    /* Announced beforehand, and measured. */
    size_t planned_peak_bytes, peak_rss_bytes;
    /* The folder, absolute. */
    char out[1024];
} stint_memory;

/** Train the runs that are not in the out folder yet (run.out, or runs/NAME-memory),
 * then estimate.
 *
 * A run is a function of recipe, data, seed, fraction and its number: any jobs, stops
 * and kills lead to the same files. Leaves in the folder members.npy, train_right.npy,
 * test_right.npy (bit columns), memorised.tsv, influence.tsv and memory.html.
 * STINT_E_USAGE: the folder is of another recipe, data, fraction or numerics (which is
 * named), or the fraction leaves no batch; STINT_E_BUDGET: one run does not fit;
 * STINT_E_FAILED: a loss is not finite; STINT_E_INPUT and STINT_E_IO: data, folder;
 * STINT_E_MEMORY; STINT_E_INTERRUPTED or _TERMINATED after stint_stop(). */
STINT_API stint_status stint_memory_run(const stint_recipe *recipe,
                                        const stint_memory_desc *desc,
                                        stint_memory *memory_out);

/** Free what a result points to. One that is all zero is fine. */
STINT_API void stint_memory_fini(stint_memory *memory);

/* ---- do changed answers fall on what was memorised? ----
 *
 * Memorisation belongs to an architecture: take a study of the recipe that the compared
 * models were trained with. */

/** One side of the question: training images with their memorisation, or test images
 * with the largest influence of a memorised image. */
typedef struct stint_tail_side {
    /* Inputs, and those from the cut on (marked). */
    int64_t count, marked;
    /* Inputs with another answer, and of these the marked ones. */
    int64_t changed, changed_marked;
    /* (changed_marked / changed) / (marked / count). */
    double lift;
    /* changed_marked over what ten bins of the reference's margin let expect. */
    double partial_lift;
    /* How well the value tells changed inputs from others. */
    double auroc, spearman;
    /* Chance of so high an AUROC if changes fell anywhere: 1000 permutations. */
    double p;
} stint_tail_side;

/** Both sides. It is a plain value, with nothing to free. */
typedef struct stint_tail {
    /* The cuts of the study. */
    double memorised_from, influence_from;
    stint_tail_side train, test;
    /* The reference against the first floor model, where there is one. */
    bool has_floor;
    stint_tail_side floor_train, floor_test;
} stint_tail;

/** Join a comparison (its models, data and first floor model; data.split is not looked
 * at) with the folder of a finished stint_memory_run over the same data.
 *
 * The question is that of arXiv 2306.06238. STINT_E_INPUT: no finished study, or one of
 * other data; otherwise as stint_compare(). *tail_out is filled with STINT_OK only. */
STINT_API stint_status stint_tail_find(const stint_compare_desc *desc,
                                       const char *memory_folder, stint_tail *tail_out);

#ifdef __cplusplus
}
#endif

#endif
