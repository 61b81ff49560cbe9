/* Eight doubles side by side, in plain C. eight_avx2.h and eight_avx512.h give the same
 * names, and every operation has the same bits in all three. */
#ifndef STI_KERNEL_EIGHT_REF_H
#define STI_KERNEL_EIGHT_REF_H

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

/* Eight floats, widened. */
static inline lanes lanes_load_f32(const float *from)
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

/* a b + c, rounded once. */
static inline lanes lanes_fma(lanes a, lanes b, lanes c)
{
    for (int i = 0; i < 8; i++)
        c.x[i] = fma(a.x[i], b.x[i], c.x[i]);
    return c;
}

#define LANES_REF_OF_TWO(name, expression)             \
    static inline lanes lanes_##name(lanes a, lanes b) \
    {                                                  \
        for (int i = 0; i < 8; i++)                    \
            a.x[i] = (expression);                     \
        return a;                                      \
    }
LANES_REF_OF_TWO(add, a.x[i] + b.x[i])
LANES_REF_OF_TWO(sub, a.x[i] - b.x[i])
LANES_REF_OF_TWO(mul, a.x[i] * b.x[i])
LANES_REF_OF_TWO(div, a.x[i] / b.x[i])
LANES_REF_OF_TWO(max, a.x[i] > b.x[i] ? a.x[i] : b.x[i])

static inline lanes lanes_abs(lanes a)
{
    for (int i = 0; i < 8; i++)
        a.x[i] = fabs(a.x[i]);
    return a;
}

#endif
