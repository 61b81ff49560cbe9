/* Register tiles of bfloat16 products for any machine. Where the machine has no mode
 * that flushes denormals, it is done by hand. */
#include <float.h>
#include <math.h>

#define STI_LANES            8
#define EMULATE_ROWS         1
#define EMULATE_FMA(a, b, c) fma_lanes(a, b, c)
#define EMULATE_ADD(a, b)    add_lanes(a, b)
#define TILE_KERNELS         sti_bf16_tiles_ref

#include "kernel/lane/lane.h"

static inline float flushed(float x)
{
    return fabsf(x) < FLT_MIN ? copysignf(0.0f, x) : x;
}

static inline lane_f fma_lanes(lane_f a, lane_f b, lane_f c)
{
    for (int i = 0; i < STI_LANES; i++)
        c[i] = flushed(fmaf(flushed(a[i]), flushed(b[i]), flushed(c[i])));
    return c;
}

static inline lane_f add_lanes(lane_f a, lane_f b)
{
    for (int i = 0; i < STI_LANES; i++)
        a[i] = flushed(flushed(a[i]) + flushed(b[i]));
    return a;
}

#include "kernel/gemm/gemm_bf16_emulate.h"
