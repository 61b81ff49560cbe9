/* The highest rate that a machine bears, found by simulation, and the cut that bears
 * it. */
#ifndef STI_SERVE_SERVE_REHEARSE_H
#define STI_SERVE_SERVE_REHEARSE_H

#include "serve/serve_plan.h"
#include "serve/simulate.h"

/* Where the best goes: as of sti_simulate_rate, and the bound of its cut. */
typedef struct sti_serve_rehearsed {
    double *per_s, *bound_per_s;
    sti_serve_result *result;
} sti_serve_rehearsed;

/* sti_simulate_rate of the plan of the options. Where the cut is to be chosen (auto),
 * of several, for a bound knows of no waiting: the climb by the bound and PARIS's cut,
 * each for all batches in time and for all but the rarest largest (tables->late), and
 * the equal cuts; the best is taken. desc: all but the scheduler; seed: its. */
stint_status sti_serve_rehearse(const sti_serve_options *options,
                                sti_serve_tables *tables, const sti_simulate_desc *desc,
                                double quantile, uint64_t seed,
                                const sti_serve_rehearsed *out);

#endif
