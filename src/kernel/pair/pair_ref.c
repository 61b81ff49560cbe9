/* Steps of sequential minimal optimisation in plain C. */
#include <math.h>

#define TABLE sti_pair_kernels_ref

typedef struct lanes {
    double x[8];
} lanes;

#define EACH(expression)            \
    do {                            \
        lanes r;                    \
        for (int i = 0; i < 8; i++) \
            r.x[i] = (expression);  \
        return r;                   \
    } while (0)

static inline lanes lanes_load(const double *from)
{
    EACH(from[i]);
}

static inline void lanes_store(double *to, lanes a)
{
    for (int i = 0; i < 8; i++)
        to[i] = a.x[i];
}

static inline lanes lanes_all(double x)
{
    EACH(x);
}

static inline lanes lanes_floats(const float *from)
{
    EACH((double)from[i]);
}

static inline lanes lanes_fma(lanes a, lanes b, lanes c)
{
    EACH(fma(a.x[i], b.x[i], c.x[i]));
}

static inline lanes lanes_add(lanes a, lanes b)
{
    EACH(a.x[i] + b.x[i]);
}

static inline lanes lanes_sub(lanes a, lanes b)
{
    EACH(a.x[i] - b.x[i]);
}

static inline lanes lanes_mul(lanes a, lanes b)
{
    EACH(a.x[i] * b.x[i]);
}

static inline lanes lanes_div(lanes a, lanes b)
{
    EACH(a.x[i] / b.x[i]);
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
