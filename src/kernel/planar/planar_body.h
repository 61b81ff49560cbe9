/* Body of the loops of planar_priv.h, included once by each instruction set's file,
 * which has defined STI_LANES, PLANAR_KERNELS (the table's name), PLANAR_AT_ONCE
 * (vectors of sums in registers) and planar_fma(a, b, c) on vectors. */
#include "kernel/lane/lane.h"
#include "kernel/planar/planar_priv.h"

/* `vectors` is known where this is inlined, so that the sums are registers. */
static inline __attribute__((always_inline)) void
sums_of(const int vectors, const float *x, const sti_planar_tap *tap, int64_t taps,
        bool first, float *sum)
{
    lane_f acc[PLANAR_AT_ONCE];
#pragma GCC unroll 16
    for (int v = 0; v < vectors; v++)
        acc[v] = first ? lane_splat(0.0f) : lane_load(sum + v * STI_LANES);
    for (int64_t i = 0; i < taps; i++) {
        const float *from = x + tap[i].offset;
        const lane_f weight = lane_splat(tap[i].weight);
#pragma GCC unroll 16
        for (int v = 0; v < vectors; v++)
            acc[v] = planar_fma(weight, lane_load(from + v * STI_LANES), acc[v]);
    }
#pragma GCC unroll 16
    for (int v = 0; v < vectors; v++)
        lane_store(sum + v * STI_LANES, acc[v]);
}

static void sums_at_once(int64_t vectors, const float *x, const sti_planar_tap *tap,
                         int64_t taps, bool first, float *sum)
{
    switch (vectors) {
#define CASE(V)                               \
    case V:                                   \
        sums_of(V, x, tap, taps, first, sum); \
        break;
        CASE(1)
        CASE(2)
        CASE(3)
        CASE(4)
#if PLANAR_AT_ONCE > 4
        CASE(5)
        CASE(6)
        CASE(7)
        CASE(8)
        CASE(9)
        CASE(10)
        CASE(11)
        CASE(12)
#endif
#if PLANAR_AT_ONCE > 12
        CASE(13)
        CASE(14)
#endif
#undef CASE
    default:
        break;
    }
}

static void planar_sums(int64_t n, const float *x, const sti_planar_tap *tap,
                        int64_t taps, bool first, float *sum)
{
    const int64_t vectors = n / STI_LANES;
    for (int64_t v = 0; v < vectors; v += PLANAR_AT_ONCE) {
        const int64_t left = vectors - v;
        sums_at_once(left < PLANAR_AT_ONCE ? left : PLANAR_AT_ONCE, x + v * STI_LANES,
                     tap, taps, first, sum + v * STI_LANES);
    }
}

static void planar_finish(int64_t n, const float *sum, const float *scale,
                          const float *shift, const float *residual, bool relu,
                          float *y)
{
    float last[3][STI_LANES] = {{0}};
    for (int64_t i = 0; i < n; i += STI_LANES) {
        const bool whole = n - i >= STI_LANES;
        const size_t rest = (size_t)(whole ? STI_LANES : n - i) * sizeof(float);
        const float *from = sum + i; /* (sums are whole vectors) */
        lane_f v = lane_load(from);
        if (scale)
            v = planar_fma(v, lane_splat(*scale), lane_splat(*shift));
        else if (shift)
            v += lane_splat(*shift);
        if (residual) {
            const float *add = residual + i;
            if (!whole)
                add = memcpy(last[0], add, rest);
            v += lane_load(add);
        }
        if (relu)
            v = lane_keep(v, lane_passes(v));
        if (whole) {
            lane_store(y + i, v);
        } else {
            lane_store(last[1], v);
            memcpy(y + i, last[1], rest);
        }
    }
}

const sti_planar_kernels PLANAR_KERNELS = {planar_sums, planar_finish};
