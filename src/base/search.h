/* The largest argument at which a falling, noisy function is still at or above a limit,
 * in few looks, for each may take an hour. */
#ifndef STI_BASE_SEARCH_H
#define STI_BASE_SEARCH_H

#include <stdbool.h>
#include <stdint.h>

#include "stint/status.h"

/* What is seen at an argument. */
typedef struct sti_search_look {
    double value;     /* the limit is kept at or above it */
    double deviation; /* how far one look's value may be off; 0: not at all */
    double cost;      /* with sti_search_desc.costs: to be made least */
    double cost_deviation;
} sti_search_look;

/* One look. `repeat` counts the looks at this argument, from 0: another seed. *look_out
 * comes zeroed. */
typedef stint_status sti_search_fn(void *user, double at, int repeat,
                                   sti_search_look *look_out);

typedef struct sti_search_desc {
    double low, high; /* the limit is kept below low and missed above high, untried */
    double limit;
    double width; /* of a bracket that is narrow enough */
    int samples;  /* most looks */
    bool costs;   /* the cheapest argument that keeps the limit is wanted */
} sti_search_desc;

typedef struct sti_search_result {
    bool found;       /* something was tried that keeps the limit */
    double at;        /* the largest of it; with costs the cheapest */
    double low, high; /* the bracket left */
    int samples;
} sti_search_result;

/* Halving. A value within two deviations of the limit is looked at again, up to three
 * times in all, as long as looks are left over from the halving; the mean decides. On
 * failure of fn its status, with the result as far as it came; STINT_E_FAILED: a value
 * or a cost is not a number. */
stint_status sti_search_bisect(const sti_search_desc *desc, sti_search_fn *fn,
                               void *user, sti_search_result *result_out);

/* By a Gaussian process of what was seen (base/gaussian_process.h), which says where
 * the next look tells most about the crossing. With costs, which need not fall as the
 * argument rises, six looks of ten at most go there; the rest to where the cost may be
 * least among the arguments that keep the limit, by a second process, until no argument
 * may be cheaper by a hundredth. Otherwise as sti_search_bisect. */
stint_status sti_search_bayes(const sti_search_desc *desc, sti_search_fn *fn,
                              void *user, sti_search_result *result_out);

/* Even steps over the whole range, each looked at once, for comparison. */
stint_status sti_search_grid(const sti_search_desc *desc, sti_search_fn *fn, void *user,
                             sti_search_result *result_out);

#endif
