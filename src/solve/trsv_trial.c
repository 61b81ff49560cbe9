/* What solves take, by doing some of zeros, which take the time of any other side. */
#include <math.h>

#include "base/clock.h"
#include "base/memory.h"
#include "base/pages.h"
#include "solve/trsv_choose.h"

enum { TRIAL_SOLVES = 50, RUNS = 3 };

/* A run that takes no more than so many times what was expected is not made again;
 * others may have been disturbed. */
#define NEAR 1.25

double sti_trsv_time(sti_trsv *plan, void *x, double expected_s)
{
    double least = INFINITY;
    for (int run = 0; run < RUNS && least > NEAR * expected_s; run++) {
        const int64_t start = sti_clock_ns();
        sti_trsv_solve(plan, 1, x, x);
        least = fmin(least, sti_seconds_since(start));
    }
    return least;
}

double sti_trsv_time_natural(const sti_trsv *plan, void *x, double expected_s)
{
    sti_trsv as_it_lies = {.d = plan->d, .natural = plan->natural};
    as_it_lies.info = (sti_trsv_info){.strategy = STI_TRSV_NATURAL, .threads = 1};
    return sti_trsv_time(&as_it_lies, x, expected_s);
}

void *sti_trsv_trial_vector(const sti_trsv *plan, double solves)
{
    if (plan->d.room_bytes > 0 || solves < TRIAL_SOLVES || plan->natural.n == 0)
        return NULL;
    return sti_pages_array(plan->natural.n, sti_trsv_real_bytes(&plan->d),
                           "trsv.trial");
}
