/* A working set of sti_smo (smo.h): some variables and their kernel values. */
#ifndef STI_SVM_SMO_SET_H
#define STI_SVM_SMO_SET_H

#include "svm/smo.h"

/* Entries of the arrays: two groups, each filled up to full lanes. */
enum { STI_SMO_SET_ROOM = STI_SMO_SET + 16 };

typedef struct sti_smo_set {
    int64_t count;  /* entries, fillers among them */
    int64_t groups; /* 1, or 2 with nu: the signs apart */
    int64_t begin[3];
    int64_t variable[STI_SMO_SET_ROOM]; /* -1: a filler */
    int32_t point[STI_SMO_SET_ROOM];    /* of a filler any */
    double v[STI_SMO_SET_ROOM], up[STI_SMO_SET_ROOM], low[STI_SMO_SET_ROOM];
    double diagonal[STI_SMO_SET_ROOM];
    float *k; /* [count, STI_SMO_SET_ROOM] */
} sti_smo_set;

/* Move pairs until the set's gap is below the tolerance or `iterations` are over.
 * Returns how many moved. */
int64_t sti_smo_set_solve(sti_smo_set *set, const sti_smo_problem *problem,
                          double tolerance, int64_t iterations, double *alpha);

/* May a variable rise or fall, as pair.h's `up` and `low` have it? (Rise: y a grows.)
 */
void sti_smo_free_ways(const sti_smo_problem *problem, int64_t variable, double alpha,
                       double *up_out, double *low_out);

#endif
