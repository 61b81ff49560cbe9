/* Numbers from files: are they numbers at all? */
#ifndef STI_BASE_FINITE_H
#define STI_BASE_FINITE_H

#include <math.h>
#include <stdint.h>

/* The first element that is infinite or NaN; -1: none is. */
static inline int64_t sti_first_not_finite(const float *x, int64_t count)
{
    for (int64_t i = 0; i < count; i++)
        if (!isfinite(x[i]))
            return i;
    return -1;
}

#endif
