/* Body of the loops of planar_priv.h, included once by each instruction set's file,
 * which has defined STI_LANES, PLANAR_KERNELS (the table's name), PLANAR_AT_ONCE
 * (vectors of sums in registers: 4, 12, 16) and planar_fma(a, b, c) on vectors. */
#include "kernel/lane/lane.h"
#include "kernel/planar/planar_priv.h"

enum { UNIT = STI_PLANAR_LANES / STI_LANES }; /* vectors of the machine in one of 16 */

#define PLANAR_INLINE static inline __attribute__((always_inline))

/* `rows` and `vectors` (of a row) are known where this is inlined, so that the sums are
 * registers. */
PLANAR_INLINE void load_sums(const int count, const sti_planar_tile *tile, lane_f *acc)
{
#pragma GCC unroll 16
    for (int v = 0; v < count; v++)
        acc[v] = tile->first ? lane_splat(0.0f) : lane_load(tile->sum + v * STI_LANES);
}

PLANAR_INLINE void store_sums(const int count, const sti_planar_tile *tile,
                              const lane_f *acc)
{
#pragma GCC unroll 16
    for (int v = 0; v < count; v++)
        lane_store(tile->sum + v * STI_LANES, acc[v]);
}

PLANAR_INLINE void taps_of(const int rows, const int vectors,
                           const sti_planar_tile *tile, const sti_planar_tap *tap,
                           int64_t count)
{
    lane_f acc[PLANAR_AT_ONCE];
    load_sums(rows * vectors, tile, acc);
    for (int64_t i = 0; i < count; i++) {
        const float *from = tile->x + tap[i].offset;
        const lane_f weight = lane_splat(tap[i].weight);
#pragma GCC unroll 16
        for (int v = 0; v < rows * vectors; v++) {
            const float *at =
                from + v / vectors * tile->row_floats + v % vectors * STI_LANES;
            acc[v] = planar_fma(weight, lane_load(at), acc[v]);
        }
    }
    store_sums(rows * vectors, tile, acc);
}

/* One row of at most PLANAR_AT_ONCE vectors. */
static void taps_of_row(const sti_planar_tile *tile, int64_t vectors,
                        const sti_planar_tap *tap, int64_t count)
{
    switch (vectors) {
#define CASE(V)                          \
    case V:                              \
        taps_of(1, V, tile, tap, count); \
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
        CASE(15)
        CASE(16)
#endif
#undef CASE
    default:
        break;
    }
}

/* Row by row, as many vectors at a time as there are registers. */
static void taps_by_rows(const sti_planar_tile *tile, const sti_planar_tap *tap,
                         int64_t count)
{
    const int64_t vectors = tile->columns * UNIT;
    for (int64_t r = 0; r < tile->rows; r++)
        for (int64_t v = 0; v < vectors; v += PLANAR_AT_ONCE) {
            const int64_t left = vectors - v;
            sti_planar_tile part = *tile;
            part.x += r * tile->row_floats + v * STI_LANES;
            part.sum += (r * vectors + v) * STI_LANES;
            taps_of_row(&part, left < PLANAR_AT_ONCE ? left : PLANAR_AT_ONCE, tap,
                        count);
        }
}

static void planar_taps(const sti_planar_tile *tile, const sti_planar_tap *tap,
                        int64_t count)
{
#if PLANAR_AT_ONCE == 16
    switch (tile->rows == 1 ? 0 : tile->rows * 8 + tile->columns) {
#define CASE(R, C)                       \
    case R * 8 + C:                      \
        taps_of(R, C, tile, tap, count); \
        return;
        CASE(2, 1)
        CASE(2, 2)
        CASE(2, 4)
        CASE(4, 1)
        CASE(4, 2)
        CASE(4, 4)
#undef CASE
    default:
        break;
    }
#endif
    taps_by_rows(tile, tap, count);
}

#if PLANAR_AT_ONCE == 16
#include "kernel/planar/planar_kernels_body.h"
#define PLANAR_BY_KERNELS planar_by_kernels
#else
#define PLANAR_BY_KERNELS NULL
#endif

PLANAR_INLINE void bundle_of(const int filters, const int vectors,
                             const sti_planar_tile *tile, const sti_planar_tap *tap,
                             int64_t count)
{
    lane_f acc[16 * UNIT];
#pragma GCC unroll 32
    for (int v = 0; v < filters * vectors; v++)
        acc[v] = lane_splat(0.0f);
    for (int64_t i = 0; i < count; i++, tap += filters)
#pragma GCC unroll 32
        for (int v = 0; v < filters * vectors; v++) {
            const sti_planar_tap *t = &tap[v / vectors];
            const float *at = tile->x + t->offset + v % vectors * STI_LANES;
            acc[v] = planar_fma(lane_splat(t->weight), lane_load(at), acc[v]);
        }
#pragma GCC unroll 32
    for (int v = 0; v < filters * vectors; v++)
        lane_store(tile->sum + v * STI_LANES, acc[v]);
}

static void planar_bundle(const sti_planar_tile *tile, const sti_planar_tap *tap,
                          int64_t count)
{
    if (tile->columns == 1)
        bundle_of(8, 1 * UNIT, tile, tap, count);
    else if (tile->columns == 2)
        bundle_of(4, 2 * UNIT, tile, tap, count);
    else if (tile->columns == 3)
        bundle_of(2, 3 * UNIT, tile, tap, count);
    else
        bundle_of(2, 4 * UNIT, tile, tap, count);
}

static void planar_finish(int64_t n, const float *sum, const float *scale,
                          const float *shift, const float *residual, bool relu,
                          float *y)
{
    float last[2][STI_LANES] = {{0}};
    for (int64_t i = 0; i < n; i += STI_LANES) {
        const bool whole = n - i >= STI_LANES;
        const size_t rest = (size_t)(whole ? STI_LANES : n - i) * sizeof(float);
        lane_f v = lane_load(sum + i); /* (sums are whole vectors) */
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

const sti_planar_kernels PLANAR_KERNELS = {planar_taps, PLANAR_BY_KERNELS,
                                           planar_bundle, planar_finish};
