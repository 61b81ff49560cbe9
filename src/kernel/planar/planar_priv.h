/* Inside kernel/planar: loops of each instruction set. */
#ifndef STI_KERNEL_PLANAR_PRIV_H
#define STI_KERNEL_PLANAR_PRIV_H

#include "kernel/planar/planar.h"

/* A kept weight: where its inputs begin in a tile's block, in floats. */
typedef struct sti_planar_tap {
    int32_t offset;
    float weight;
} sti_planar_tap;

/* A tile of sums, rows * columns vectors of 16 one after another, and the inputs of its
 * first tap, whose rows are row_floats apart. rows * columns <= STI_PLANAR_VECTORS;
 * rows 1, 2 or 4, and columns likewise where there are several rows. */
typedef struct sti_planar_tile {
    int64_t rows, columns, row_floats;
    const float *x;
    bool first; /* sums begin at zero, else with what they are */
    float *sum;
} sti_planar_tile;

/* Where a vector of 16 of a tile's inputs comes from, in each channel. */
typedef struct sti_planar_source {
    int32_t from; /* floats from the channel's first; may lie before it */
    uint32_t set; /* bit i: number i is inside of the image, else it is zero */
} sti_planar_source;

/* A channel of a tile: `vectors` of them, [channels][vectors][16] in all. Number i of a
 * vector is i * step floats after its first. */
typedef struct sti_planar_copy {
    const float *x;
    int64_t plane, channels; /* floats of a channel */
    const sti_planar_source *source;
    int64_t vectors, step;
    int64_t ahead; /* floats to what will be copied next */
} sti_planar_copy;

/* What a filter's sums become: rows of `width` floats. */
typedef struct sti_planar_rows {
    int64_t rows, width;
    int64_t sum_row, residual_row, y_row; /* floats from a row to the next */
    int64_t ahead;                        /* of y, to rows that will be written soon */
    const float *scale, *shift;           /* NULL or one number */
    const float *residual;                /* NULL, or as y */
    bool relu;
} sti_planar_rows;

/* Maxima of windows of 2 x 2: rows of `width` pixels, each of `lanes` floats. */
typedef struct sti_planar_windows {
    int64_t rows, width, lanes, x_row, y_row; /* the first two of y */
} sti_planar_windows;

/* Inputs of a tile: vectors of 16, or one of 4. */
typedef struct sti_planar_inputs {
    const float *x;
    int64_t floats;   /* of a filter's sums: 4, or 16, 32, 48, 64 */
    int64_t place[4]; /* of each vector of 16, in floats */
} sti_planar_inputs;

typedef struct sti_planar_kernels {
    /* Chains over taps. */
    void (*taps)(const sti_planar_tile *tile, const sti_planar_tap *tap, int64_t count);
    /* As taps, of several filters side by side, [count][filters]: 8 where a tile has
     * one vector, 4 where two, 2 where three or four; sums [filters][columns]. */
    void (*bundle)(const sti_planar_tile *tile, const sti_planar_tap *tap,
                   int64_t count);
    /* sum[f][v][i] += weight * x[offset + place[v] + i] over the entries of a list, in
     * its order. An entry: taps (1 to 4), filters, taps offsets; then for each filter
     * its number and taps weights, which are floats. */
    void (*outer)(const sti_planar_inputs *in, const int32_t *list, const int32_t *end,
                  float *sum);
    void (*copy)(const sti_planar_copy *copy, float *out);
    /* sum and y begin with the first row, and may be the same. */
    void (*finish)(const sti_planar_rows *rows, const float *sum, float *y);
    void (*pool)(const sti_planar_windows *windows, const float *x, float *y);
} sti_planar_kernels;

enum { STI_PLANAR_VECTORS = 16 }; /* sums that stay in registers, AVX-512 */

/* ---- tiles: planar_tile.c ---- */

/* Vectors of 16 in a row of outputs. */
int64_t sti_planar_row_vectors(const sti_planar_plan *plan);
/* Floats of one channel of a tile's block; where the inputs of tap (i, j) of the
 * block's channel-th begin. Not of flat plans. */
int64_t sti_planar_channel_floats(const sti_planar_plan *plan);
int32_t sti_planar_tap_offset(const sti_planar_plan *plan, int64_t channel, int64_t i,
                              int64_t j);

/* A tile of a group of images. */
typedef struct sti_planar_place {
    int64_t group, tile_y, tile_x;
} sti_planar_place;

/* The sources of a tile's channel, channel_floats / 16 of them. */
void sti_planar_sources(const sti_planar_plan *plan, const sti_planar_place *place,
                        sti_planar_source *source_out);
/* The epilogue of some filters' sums of a tile. */
void sti_planar_finish(const sti_planar_kernels *kernels, const sti_planar_plan *plan,
                       const sti_planar_epilogue *epilogue,
                       const sti_planar_place *place, int64_t first, int64_t filters,
                       float *sum, float *y);

/* ---- small maps: planar_flat.c ---- */

/* A plan whose shape, lanes and groups are set. */
bool sti_planar_flat_fits(const sti_planar_plan *plan);
/* Sets flat, vectors and sum_floats. */
void sti_planar_flat_shape(sti_planar_plan *plan);
void sti_planar_flat_plan(sti_planar_plan *plan, const sti_planar_zeros *zeros,
                          int threads);
/* The inputs of all taps of a group, [channels][taps][sum_floats]. */
void sti_planar_flat_lay(const sti_team *team, const sti_planar_plan *plan,
                         const float *x, float *input_out);
/* The steps that bundles of weights [rows, filters] take; false: no memory. */
bool sti_planar_flat_steps(const float *w, int64_t rows, int64_t filters,
                           int64_t steps_out[STI_PLANAR_BUNDLES]);
bool sti_planar_flat_pack(const sti_planar_plan *plan, const float *w,
                          void *packed_out);
void sti_planar_flat_run(const sti_team *team, const sti_planar_plan *plan,
                         const float *x, const void *packed,
                         const sti_planar_epilogue *epilogue, float *y_out,
                         void *scratch);

/* ---- by inputs: planar_outer.c ---- */

bool sti_planar_outer_fits(const sti_planar_shape *shape,
                           const sti_planar_zeros *zeros);
void sti_planar_outer_plan(sti_planar_plan *plan, const sti_planar_zeros *zeros,
                           int threads);
/* Words of the list of such a plan; -1: out of memory, recorded. */
int64_t sti_planar_outer_words(const sti_planar_plan *plan, const float *w);
bool sti_planar_outer_pack(const sti_planar_plan *plan, const float *w,
                           void *packed_out);
void sti_planar_outer_run(const sti_team *team, const sti_planar_plan *plan,
                          const float *x, const void *packed,
                          const sti_planar_epilogue *epilogue, float *y_out,
                          void *scratch);

extern const sti_planar_kernels sti_planar_kernels_ref, sti_planar_kernels_avx2,
    sti_planar_kernels_avx512;

#endif
