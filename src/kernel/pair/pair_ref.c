/* Steps of sequential minimal optimisation in plain C. */
#include "kernel/lane/eight_ref.h"

#define TABLE sti_pair_kernels_ref

#define EACH(expression)            \
    do {                            \
        lanes r;                    \
        for (int i = 0; i < 8; i++) \
            r.x[i] = (expression);  \
        return r;                   \
    } while (0)

static inline lanes lanes_floats(const float *from)
{
    EACH((double)from[i]);
}

static inline lanes lanes_over(lanes a, lanes b, lanes c, lanes d)
{
    EACH(a.x[i] > b.x[i] ? c.x[i] : d.x[i]);
}

static inline lanes lanes_least(lanes a, lanes b)
{
    EACH(a.x[i] < b.x[i] ? a.x[i] : b.x[i]);
}

#include "kernel/pair/pair_body.h"
