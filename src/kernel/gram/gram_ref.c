/* Kernel tiles in plain C. */
#define TABLE sti_gram_kernels_ref
#define MR    2

#include <math.h>

typedef struct lanes {
    double x[8];
} lanes;

static inline lanes lanes_load(const double *from)
{
    lanes r;
    for (int i = 0; i < 8; i++)
        r.x[i] = from[i];
    return r;
}

static inline void lanes_store(double *to, lanes a)
{
    for (int i = 0; i < 8; i++)
        to[i] = a.x[i];
}

static inline lanes lanes_all(double x)
{
    lanes r;
    for (int i = 0; i < 8; i++)
        r.x[i] = x;
    return r;
}

static inline lanes lanes_fma(lanes a, lanes b, lanes c)
{
    for (int i = 0; i < 8; i++)
        c.x[i] = fma(a.x[i], b.x[i], c.x[i]);
    return c;
}

#include "kernel/gram/gram_body.h"
