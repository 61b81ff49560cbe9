/* Training of LIBSVM's machines (Chang and Lin 2011): types 0 to 4, by smo.h. */
#ifndef STI_SVM_SVM_SMO_H
#define STI_SVM_SVM_SMO_H

#include "svm/svm_train.h"

/* What svm-train prints of a machine: of every pair of classes, or of the only one. */
typedef struct sti_smo_machine {
    int64_t iterations;
    double gap, objective, rho;
    double more; /* of c_svc and epsilon_svr its nu, of nu_svc its C, of nu_svr its
                    epsilon; NaN: there is none */
    int64_t support_vectors, bounded;
} sti_smo_machine;

typedef struct sti_smo_desc {
    const sti_table *table;
    sti_svm_type type;
    sti_gram_function function;
    double c, nu, epsilon;
    const double *weight; /* [classes] of c_svc, in the order of sti_svm_classes_of, or
                             NULL */
    const double
        *point_weight; /* [rows] factors of C, of c_svc and epsilon_svr; or NULL */
    double tolerance;
    int64_t iterations; /* pairs a machine; 0: the more of 10^7 and 100 a row */
    bool shrink;
    size_t budget_bytes;     /* of the whole process; 0: none */
    size_t cache_bytes;      /* of kernel rows, at most; 0: what the budget leaves */
    sti_svm_process process; /* zeroed: looked at anew by every plan */
    size_t beside_bytes;     /* what who called holds beside the table: that of folds */
    size_t shared_bytes;     /* of a matrix that folds share, which is yet to be made */
    sti_svm_places places;   /* of the rows in one that is there */
    int threads;
    sti_comm *comm; /* ranks that share the work; all call with the same; NULL: alone */
    void (*progress)(void *user, int64_t machine, int64_t machines, int64_t iteration,
                     double gap); /* or NULL */
    void *progress_user;
} sti_smo_desc;

/* As sti_svm_plan_training; values are those of one machine, columns the alphas that a
 * support vector has in the file. */
stint_status sti_smo_plan(const sti_smo_desc *desc, sti_svm_plan *plan_out);

/* The model owns its support vectors; words of labels are the table's. machine_out
 * [plan->machines]. STINT_E_FAILED: not there in so many iterations; then there is no
 * model. STINT_E_USAGE: nu is too large for the classes. */
stint_status sti_smo_train(const sti_smo_desc *desc, const sti_svm_plan *plan,
                           sti_svm_model *model_out, sti_smo_machine *machine_out);

#endif
