/* Inside kernel/planar: loops of each instruction set. */
#ifndef STI_KERNEL_PLANAR_PRIV_H
#define STI_KERNEL_PLANAR_PRIV_H

#include "kernel/planar/planar.h"

/* A kept weight: where its inputs begin in a tile's block, in floats. */
typedef struct sti_planar_tap {
    int32_t offset;
    float weight;
} sti_planar_tap;

/* A kept kernel of 3 x 3: one of the shapes of planar_shapes.h, its taps' weights in
 * ascending order. */
typedef struct sti_planar_kernel {
    int32_t offset, shape;
    float weight[4];
} sti_planar_kernel;

/* A tile of sums, rows * columns vectors of 16 one after another, and the inputs of its
 * first tap, whose rows are row_floats apart. rows * columns <= STI_PLANAR_VECTORS;
 * rows 1, 2 or 4, and columns likewise where there are several rows. */
typedef struct sti_planar_tile {
    int64_t rows, columns, row_floats;
    const float *x;
    bool first; /* sums begin at zero, else with what they are */
    float *sum;
} sti_planar_tile;

typedef struct sti_planar_kernels {
    /* Chains over taps. */
    void (*taps)(const sti_planar_tile *tile, const sti_planar_tap *tap, int64_t count);
    /* Chains over the taps of kernels; rows are those of a tile with its margin,
     * row_floats = 16 (columns + 2); rows and columns both 4, 2 and 4, or both 2. NULL:
     * there are none for this instruction set. */
    void (*kernels)(const sti_planar_tile *tile, const sti_planar_kernel *kernel,
                    int64_t count);
    /* As taps, of several filters side by side, [count][filters]: 8 where a tile has
     * one vector, 4 where two, 2 where three or four; sums [filters][columns]. */
    void (*bundle)(const sti_planar_tile *tile, const sti_planar_tap *tap,
                   int64_t count);
    /* y[0..n) from sums by one filter's factors: scale NULL or one number, and so on.
     */
    void (*finish)(int64_t n, const float *sum, const float *scale, const float *shift,
                   const float *residual, bool relu, float *y);
} sti_planar_kernels;

enum { STI_PLANAR_VECTORS = 16 }; /* sums that stay in registers, AVX-512 */

/* ---- small maps: planar_flat.c ---- */

/* A plan whose shape, lanes and groups are set. */
bool sti_planar_flat_fits(const sti_planar_plan *plan);
void sti_planar_flat_plan(sti_planar_plan *plan, const sti_planar_zeros *zeros,
                          int threads);
/* The steps that bundles of weights [rows, filters] take; false: no memory. */
bool sti_planar_flat_steps(const float *w, int64_t rows, int64_t filters,
                           int64_t steps_out[STI_PLANAR_BUNDLES]);
bool sti_planar_flat_pack(const sti_planar_plan *plan, const float *w,
                          void *packed_out);
void sti_planar_flat_run(const sti_team *team, const sti_planar_plan *plan,
                         const float *x, const void *packed,
                         const sti_planar_epilogue *epilogue, float *y_out,
                         void *scratch);

extern const sti_planar_kernels sti_planar_kernels_ref, sti_planar_kernels_avx2,
    sti_planar_kernels_avx512;

#endif
