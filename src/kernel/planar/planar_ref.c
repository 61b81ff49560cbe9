/* Planar convolutions in plain C: the definition that the fast ones must equal. */
#include <math.h>

#define STI_LANES      8
#define PLANAR_AT_ONCE 4
#define PLANAR_KERNELS sti_planar_kernels_ref
#include "kernel/lane/lane.h"

static inline lane_f planar_fma(lane_f a, lane_f b, lane_f c)
{
    for (int i = 0; i < STI_LANES; i++)
        c[i] = fmaf(a[i], b[i], c[i]);
    return c;
}

#include "kernel/planar/planar_body.h"
