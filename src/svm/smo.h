/* Sequential minimal optimisation in working sets: the quadratic programs of support
 * vector machines,
 *
 *     minimise  a.Q a / 2 + p.a   where  0 <= a_k <= bound_k,  sum y_k a_k as it was,
 *
 * Q_kl = y_k y_l K of the points of k and l (Chang and Lin 2011). A set of up to
 * STI_SMO_SET variables that violate the conditions most is solved for by pairs chosen
 * by second-order information (Fan, Chen and Lin 2005), its kernel rows one product;
 * then all others hear of it. It ends by LIBSVM's rule: the largest -y G of variables
 * that may rise is less than the tolerance above the least of those that may fall. With
 * `nu` the sum of all a stays, too, so that pairs are of one sign.
 *
 * A program of at most STI_SMO_SET variables is one set, and its pairs are those that
 * LIBSVM takes without shrinking. The same bits for any threads and any room. */
#ifndef STI_SVM_SMO_H
#define STI_SVM_SMO_H

#include "svm/smo_rows.h"

enum { STI_SMO_SET = 1024 };

typedef struct sti_smo_problem {
    /* Variable k is of point k modulo points; the first `positives` have y = 1. */
    int64_t points, variables, positives;
    const double *bound;  /* [variables] */
    const double *linear; /* [variables] -y p */
    bool nu, shrink;
    double tolerance;
    int64_t iterations; /* at most */
} sti_smo_problem;

typedef struct sti_smo_result {
    int64_t iterations; /* pairs that moved */
    double gap;         /* what the tolerance is for */
    double rho, r;      /* LIBSVM's; r: with nu */
    double objective;
} sti_smo_result;

typedef struct sti_smo sti_smo;

/* Bytes for problems of at most so many points and variables, beside the rows. */
size_t sti_smo_bytes(int64_t points, int64_t variables);
/* What is pointed to must outlive it. */
stint_status sti_smo_create(const sti_team *team, sti_smo_rows *rows, int64_t points,
                            int64_t variables, sti_smo **out);
void sti_smo_destroy(sti_smo *smo); /* NULL is fine */

/* Told after every working set: pairs moved, the gap. */
typedef void sti_smo_progress_fn(void *user, int64_t iterations, double gap);

/* alpha [variables]: start and solution; its points are those that the rows were last
 * selected for. STINT_E_FAILED: not there in so many iterations, or no finite numbers
 * (the gap is then NaN); or the status of a stop that was asked for. No text is
 * recorded: it may run in a thread of a team. */
stint_status sti_smo_solve(sti_smo *smo, const sti_smo_problem *problem, double *alpha,
                           sti_smo_progress_fn *progress, void *user,
                           sti_smo_result *result_out);

#endif
