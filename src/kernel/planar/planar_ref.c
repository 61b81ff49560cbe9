/* Planar convolutions in plain C: the definition that the fast ones must equal. */
#include <math.h>

#define STI_LANES      8
#define PLANAR_AT_ONCE 4
#define PLANAR_HELD    1
#define PLANAR_KERNELS sti_planar_kernels_ref
#include "kernel/lane/lane.h"

typedef float planar_four __attribute__((vector_size(16), aligned(4), may_alias));

static inline lane_f planar_fma(lane_f a, lane_f b, lane_f c)
{
    for (int i = 0; i < STI_LANES; i++)
        c[i] = fmaf(a[i], b[i], c[i]);
    return c;
}

static inline planar_four planar_fma_four(planar_four a, planar_four b, planar_four c)
{
    for (int i = 0; i < 4; i++)
        c[i] = fmaf(a[i], b[i], c[i]);
    return c;
}

static inline lane_f planar_load_some(const float *p, uint32_t set)
{
    lane_f v = {0};
    for (int i = 0; i < STI_LANES; i++)
        if (set >> i & 1)
            v[i] = p[i];
    return v;
}

#include "kernel/planar/planar_body.h"
