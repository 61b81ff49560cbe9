/* Cross-validation in the folds of LIBSVM: for classes, every fold has its share of
 * every class. The order is drawn as svm-train draws it, by the C library's rand(). */
#ifndef STI_SVM_SVM_FOLDS_H
#define STI_SVM_SVM_FOLDS_H

#include "base/libc_random.h"
#include "svm/svm_fit.h"

/* Rows of a table as one of their own, with a fit for them. */
typedef struct sti_svm_sample {
    sti_table table; /* words of labels are another's */
    double *weight;  /* [rows] of points, or NULL */
    int64_t *number; /* [rows] in the fit's shared matrix, or NULL */
    sti_svm_fit fit; /* progress is told to nobody */
} sti_svm_sample;

/* row[0..count) in this order. */
stint_status sti_svm_sample_take(const sti_svm_fit *fit, const sti_table *table,
                                 int64_t count, const int64_t *row,
                                 sti_svm_sample *sample_out);
void sti_svm_sample_fini(sti_svm_sample *sample); /* also of a zeroed one */
/* All rows but those from begin to end of an order [table->x.rows]; and these. */
stint_status sti_svm_split(const sti_svm_fit *fit, const sti_table *table,
                           const int64_t *order, int64_t begin, int64_t end,
                           sti_svm_sample *train_out, sti_svm_sample *test_out);

/* order_out [rows]: fold f has the rows from begin_out[f] to begin_out[f + 1];
 * begin_out [folds + 1]. folds: at most the rows. */
stint_status sti_svm_fold(const sti_table *table, bool classes, int64_t folds,
                          sti_libc_random *random, int64_t *order_out,
                          int64_t *begin_out);

/* The order of a shuffle of `count` rows, as svm-train makes it. */
void sti_svm_shuffle(int64_t count, sti_libc_random *random, int64_t *order_out);

/* Where a cross-validation is. */
typedef void sti_svm_fold_fn(void *user, int64_t fold, int64_t folds);

/* Trains a model with probabilities: sti_svm_fit_probable (svm_platt.h). */
typedef stint_status sti_svm_probable_fn(const sti_svm_fit *fit, const sti_table *table,
                                         const sti_svm_plan *plan, int threads,
                                         sti_libc_random *random,
                                         sti_svm_model *model_out,
                                         sti_svm_fit_result *result_out);

typedef struct sti_svm_folds_desc {
    const sti_svm_fit *fit;
    const sti_table *table;
    int64_t folds;                 /* at least 2, at most the rows */
    sti_svm_probable_fn *probable; /* answers by the most probable class; or NULL */
    int threads;
    sti_svm_fold_fn *told; /* or NULL */
    void *user;
    /* The matrix of all folds where the fit has none: made where *shared is NULL and
     * the fit's shared_bytes allow it, and left there for another call with the same
     * rows and kernel, and a random of the same state; who calls destroys it. */
    sti_svm_shared **shared;
    /* Where the training of every fold starts, [folds], kept for another call with the
     * same rows, kernel and folds and another C; all are empty again where a fold was
     * not solved. NULL: at 0. */
    sti_svm_start *starts;
} sti_svm_folds_desc;

/* Starts of trainings on all folds but one, all empty: *starts_out is NULL where
 * machines of this type take none. One block, which who called frees. */
stint_status sti_svm_starts_create(const sti_svm_fit *fit, const sti_table *table,
                                   int64_t folds, sti_svm_start **starts_out);
/* Bytes of them. */
size_t sti_svm_starts_bytes(const sti_svm_fit *fit, const sti_table *table,
                            int64_t folds);
/* They are empty again. NULL is fine. */
void sti_svm_starts_forget(sti_svm_start *starts, int64_t folds);

/* The places that a fit's trainings have. */
sti_svm_places sti_svm_fit_places(const sti_svm_fit *fit);
void sti_svm_fit_set_places(sti_svm_fit *fit, sti_svm_places places);
/* How many bytes a matrix that folds share may take of a budget of which a training on
 * all rows takes taken_bytes at least; 0: there is none to share. */
size_t sti_svm_fit_shared_bytes(const sti_svm_fit *fit, const sti_table *table,
                                size_t taken_bytes);
/* Make it of rows in an order [rows], or NULL; *shared_out is NULL where folds share
 * nothing, not even how rows are made. */
stint_status sti_svm_fit_share(const sti_svm_fit *fit, const sti_table *table,
                               const int64_t *order, int threads,
                               sti_svm_shared **shared_out);

/* Train on all folds but one and predict that one. Ranks of the fit share out folds, a
 * fold each in turn, or, where `probable` draws numbers on the way, what is in a fold.
 * answer_out [rows]: of a class its label, else the value (one_class: +1 or -1). */
stint_status sti_svm_cross_validate(const sti_svm_folds_desc *desc,
                                    sti_libc_random *random, double *answer_out);

/* Plan a training on rows that are a sample of others: with what is held beside them.
 */
stint_status sti_svm_sample_plan(sti_svm_sample *sample, sti_svm_plan *plan_out);

/* Bytes that folds take beside a training on all rows, at most: of -v, of -b 1
 * (svm_platt.h), of both one within the other; neither: 0. */
size_t sti_svm_folds_bytes(const sti_svm_fit *fit, const sti_table *table,
                           bool validated, bool probable);

#endif
