/* Least-squares support vector machines: files in LIBSVM's format, training by
 * conjugate gradients within a memory budget, prediction.
 *
 * For labels y (+1 and -1, or numbers) and kernel matrix K the machine is
 *
 *     f(x) = sum_i alpha_i k(x_i, x) + b,   alpha_i = C_i (y_i - f(x_i)),
 *     sum_i alpha_i = 0
 *
 * (Suykens and Vandewalle 1999). With A = K + diag(1 / C_i) it is A s = y, A t = 1, b =
 * sum s / sum t, alpha = s - b t. Every point is a support vector. Several classes: a
 * machine for every pair, which LIBSVM reads, or one for every class against the rest,
 * which PLSSVM reads. */
#ifndef STI_SVM_SVM_H
#define STI_SVM_SVM_H

#include <stdbool.h>

#include "data/data_table.h"
#include "kernel/gram/gram.h"

enum { STI_SVM_CLASSES_MOST = 1000, STI_SVM_MARKS = 10 };

typedef enum sti_svm_classes { STI_SVM_PAIRS, STI_SVM_REST } sti_svm_classes;

/* The first line of a model: what the values of f are for. */
typedef enum sti_svm_type {
    STI_SVM_C_SVC, /* also of nu_svc and ls_svc */
    STI_SVM_NU_SVC,
    STI_SVM_ONE_CLASS,
    STI_SVM_EPSILON_SVR, /* also of ls_svr */
    STI_SVM_NU_SVR,
    STI_SVM_TYPES
} sti_svm_type;

/* A model as a file holds it. */
typedef struct sti_svm_model {
    sti_svm_type type;
    sti_gram_function function;
    sti_svm_classes classes_by;
    int64_t classes;    /* 2 for what is no classification */
    double *label;      /* [classes] numbers or places in names; NULL: none */
    const char **names; /* [classes] words, in the order of label; NULL: numbers */
    int64_t rho_count;
    double *rho;             /* [rho_count], -b */
    int64_t *class_count;    /* [classes] support vectors of each; NULL: none */
    int64_t coefs;           /* alphas a support vector */
    double *coef;            /* [coefs, support vectors] */
    sti_csr x;               /* support vectors; columns as files write them */
    double *prob_a, *prob_b; /* [rho_count] of sigmoids; of numbers prob_a alone, the
                                width of their error; NULL: none */
    double *marks;  /* [STI_SVM_MARKS] of the density of one class; NULL: none */
    int64_t *order; /* [support vectors] rows of x by class; NULL: as they are */
    int64_t first;  /* least index of a column: 0 or 1 */
    /* A matrix that is kept, and numbers of x's rows in it; NULL: none */
    const struct sti_svm_shared *shared;
    int64_t *number;   /* [support vectors] */
    bool borrows;      /* x and names are a table's */
    size_t peak_bytes; /* taken while it was read */
    sti_arena *arena;  /* of names and what else was read */
} sti_svm_model;

/* Is it a classification? */
bool sti_svm_classifies(const sti_svm_model *model);

void sti_svm_model_fini(sti_svm_model *model); /* also of a zeroed one */

/* LIBSVM's text format, or PLSSVM's of one against the rest. Atomic; numbers in the
 * shortest form that reads back. sha256_out: of the bytes. */
stint_status sti_svm_model_write(const sti_svm_model *model, int threads,
                                 const char *path, char sha256_out[65]);
/* STINT_E_INPUT: what is wrong, with file and line; STINT_E_UNSUPPORTED: a kernel that
 * is not there. */
stint_status sti_svm_model_read(const char *path, sti_svm_model *model_out);
/* The same where reading may take limit_bytes; STINT_E_BUDGET: it would take more. */
stint_status sti_svm_model_read_within(const char *path, size_t limit_bytes,
                                       int threads, sti_svm_model *model_out);
/* Bytes that a model takes. */
size_t sti_svm_model_bytes(const sti_svm_model *model);
stint_status sti_svm_model_parse(const char *text, size_t n_bytes, const char *name,
                                 sti_svm_model *model_out);

#endif
