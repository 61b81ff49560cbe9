/* Kernels of 3 x 3 that keep four taps, a body for each of the 126 shapes: every input
 * of a tile and its margin is loaded once and serves all taps and sums that want it.
 * Going over the inputs by rows, a sum meets its taps in ascending order. Included by
 * planar_body.h where there are registers for 16 sums. */
#include "kernel/planar/planar_shapes.h"

/* Which of the shape's taps this is. */
#define WHICH(shape, tap) __builtin_popcount((shape) & ((1 << (tap)) - 1))

/* All but x and the sums is known where it is inlined, and the conditions vanish. */
PLANAR_INLINE void shape_of(const int shape, const int rows, const int columns,
                            const float *x, const lane_f *weight, lane_f *acc)
{
#pragma GCC unroll 16
    for (int y = 0; y < rows + 2; y++)
#pragma GCC unroll 16
        for (int q = 0; q < columns + 2; q++) {
            const lane_f at = lane_load(x + (y * (columns + 2) + q) * STI_LANES);
#pragma GCC unroll 16
            for (int tap = 0; tap < 9; tap++) {
                const int r = y - tap / 3, c = q - tap % 3;
                if (shape >> tap & 1 && r >= 0 && r < rows && c >= 0 && c < columns)
                    acc[r * columns + c] =
                        planar_fma(weight[WHICH(shape, tap)], at, acc[r * columns + c]);
            }
        }
}

PLANAR_INLINE void kernels_of(const int rows, const int columns,
                              const sti_planar_tile *tile,
                              const sti_planar_kernel *kernel, int64_t count)
{
    lane_f acc[PLANAR_AT_ONCE], weight[4];
    load_sums(rows * columns, tile, acc);
    for (int64_t i = 0; i < count; i++) {
        const float *x = tile->x + kernel[i].offset;
#pragma GCC unroll 4
        for (int k = 0; k < 4; k++)
            weight[k] = lane_splat(kernel[i].weight[k]);
        switch (kernel[i].shape) {
#define SHAPE(S)                                    \
    case S:                                         \
        shape_of(S, rows, columns, x, weight, acc); \
        break;
            STI_PLANAR_SHAPES(SHAPE)
#undef SHAPE
        default:
            __builtin_unreachable();
        }
    }
    store_sums(rows * columns, tile, acc);
}

static void planar_kernels_4_4(const sti_planar_tile *tile,
                               const sti_planar_kernel *kernel, int64_t count)
{
    kernels_of(4, 4, tile, kernel, count);
}

static void planar_kernels_2_4(const sti_planar_tile *tile,
                               const sti_planar_kernel *kernel, int64_t count)
{
    kernels_of(2, 4, tile, kernel, count);
}

static void planar_kernels_2_2(const sti_planar_tile *tile,
                               const sti_planar_kernel *kernel, int64_t count)
{
    kernels_of(2, 2, tile, kernel, count);
}

static void planar_by_kernels(const sti_planar_tile *tile,
                              const sti_planar_kernel *kernel, int64_t count)
{
    if (tile->columns == 2)
        planar_kernels_2_2(tile, kernel, count);
    else if (tile->rows == 2)
        planar_kernels_2_4(tile, kernel, count);
    else
        planar_kernels_4_4(tile, kernel, count);
}
