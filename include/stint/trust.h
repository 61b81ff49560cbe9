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

#ifdef __cplusplus
}
#endif

#endif
