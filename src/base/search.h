/* The largest argument at which a falling, noisy function is still at or above a limit,
 * in few looks, for each may take an hour. */
#ifndef STI_BASE_SEARCH_H
#define STI_BASE_SEARCH_H

#include <stdbool.h>
#include <stdint.h>

#include "stint/status.h"

/* One look. `repeat` counts the looks at this argument, from 0: another seed. The
 * deviation is how far one look's value may be off; 0: not at all. */
typedef stint_status sti_search_fn(void *user, double at, int repeat, double *value_out,
                                   double *deviation_out);

typedef struct sti_search_desc {
    double low, high; /* the limit is kept below low and missed above high, untried */
    double limit;
    double width; /* of a bracket that is narrow enough */
    int samples;  /* most looks */
} sti_search_desc;

typedef struct sti_search_result {
    bool found;       /* something was tried that keeps the limit */
    double at;        /* the largest of it */
    double low, high; /* the bracket left */
    int samples;
} sti_search_result;

/* Halving. A value within two deviations of the limit is looked at again, up to three
 * times in all, as long as looks are left over from the halving; the mean decides. On
 * failure of fn its status, with the result as far as it came; STINT_E_FAILED: a value
 * is not a number. */
stint_status sti_search_bisect(const sti_search_desc *desc, sti_search_fn *fn,
                               void *user, sti_search_result *result_out);

/* By a Gaussian process of what was seen (base/gaussian_process.h), which says where
 * the next look tells most about the crossing. Otherwise as sti_search_bisect. */
stint_status sti_search_bayes(const sti_search_desc *desc, sti_search_fn *fn,
                              void *user, sti_search_result *result_out);

/* Even steps over the whole range, each looked at once, for comparison. */
stint_status sti_search_grid(const sti_search_desc *desc, sti_search_fn *fn, void *user,
                             sti_search_result *result_out);

#endif
