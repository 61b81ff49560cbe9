/* Convolutions with many zero weights, on planar images: vectors run along pixels, and
 * a weight is one number for all of them, so that every other weight may be left out.
 *
 *     x [groups * channels, h, w, lanes]   y [groups * filters, oh, ow, lanes]
 *     dense weights [kh, kw, channels, filters]
 *
 * lanes is 1, and a group an image; or 16, and a group 16 images beside each other, of
 * which those beyond n are of no meaning. The number of images decides
 * (sti_planar_lanes).
 *
 * An output is one chain of fused multiply-adds from zero over the kept weights, by
 * channel, then by tap in the order of rows; what lies outside of the image is zero.
 * Then acc * scale + shift in one rounding (without scale: acc + shift), the residual
 * is added, and ReLU taken. On any instruction set, threads, lanes: the same bits, but
 * for the sign of a zero that they are of the chain over all weights.
 *
 * A tile of outputs is computed at a time: the inputs that it needs of a few channels
 * are copied so that every tap reads whole aligned vectors which lie in the first
 * cache. Small maps of one image are a tile, whose inputs are laid out once for all
 * filters. There are two ways to go over them:
 *
 * - by inputs (planar_outer.c), where kernels keep a few taps or more: the vectors of
 * up to four taps of a channel stay in registers while the sums of all filters whose
 *   kernels keep just these taps go by. Taps and filters share loads, and nothing
 *   depends on which taps they are.
 * - by filters: the sums of one filter stay in registers while its weights go by; on
 *   small maps those of several filters side by side (planar_flat.c). */
#ifndef STI_KERNEL_PLANAR_H
#define STI_KERNEL_PLANAR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/team.h"

enum { STI_PLANAR_LANES = 16, STI_PLANAR_BUNDLES = 4, STI_PLANAR_TAPS = 4 };

/* Lanes for so many images: 16 where few of them would stand empty. */
int64_t sti_planar_lanes(int64_t n);

typedef struct sti_planar_shape {
    int64_t n, h, w, channels, filters, kh, kw, stride, pad, oh, ow;
    int64_t pool; /* 1: y is the maximum of windows of 2 x 2, see the epilogue */
} sti_planar_shape;

/* What a plan wants to know of the weights. */
typedef struct sti_planar_zeros {
    int64_t kept; /* weights that are not zero */
    /* A kernel's weights in chunks of up to four, all together. */
    int64_t chunks;
    /* Steps that bundles of 1, 2, 4, 8 filters take, the longest each, all together. */
    int64_t steps[STI_PLANAR_BUNDLES];
    int64_t words; /* of the list of chunks, going by inputs; else 0 */
} sti_planar_zeros;

/* Look at dense weights [kh, kw, channels, filters] of such a layer. False: out of
 * memory, recorded. */
bool sti_planar_look(const sti_planar_shape *shape, const float *w,
                     sti_planar_zeros *zeros_out);

/* All that is decided about a layer before it runs, also where its weights lie. */
typedef struct sti_planar_plan {
    sti_planar_shape shape;
    int64_t lanes, groups;
    bool flat;             /* all outputs of a group are a tile of a few vectors */
    bool outer;            /* go by inputs, else by filters */
    bool margins;          /* tiles lie with their margins, not once a column of taps */
    int64_t rows, columns; /* of a tile, columns in vectors of 16 */
    int64_t tiles_y, tiles_x;
    int64_t vectors, together; /* of a tile; filters side by side */
    int64_t sum_floats;        /* of a filter's sums of a tile */
    int64_t block, blocks;     /* channels that are copied at a time */
    int64_t filters, pieces;   /* of one piece of work; pieces of all filters */
    int64_t input_floats;      /* of a tile's copied block */
    size_t weights_bytes, scratch_bytes;
} sti_planar_plan;

/* scratch_bytes is for a team of `threads`; all else is the same for any. */
sti_planar_plan sti_planar_plan_of(const sti_planar_shape *shape,
                                   const sti_planar_zeros *zeros, int threads);

/* Weights in the order of a plan, plan->weights_bytes, 8-byte aligned. The plan must be
 * of what sti_planar_look says of them. False: out of memory, recorded. */
bool sti_planar_pack(const sti_planar_plan *plan, const float *w, void *packed_out);

typedef struct sti_planar_epilogue {
    const float *scale, *shift; /* [filters], or NULL; scale only with shift */
    const float *residual;      /* of y's shape, or NULL */
    bool relu;
    /* With shape.pool, y is [groups * filters, oh / 2, ow / 2, lanes]: the first of the
     * largest of each window by rows, a NaN before any number, as kernel/pool has it. A
     * last odd row or column goes nowhere. Only where plans go by inputs. */
} sti_planar_epilogue;

/* scratch: plan->scratch_bytes, 64-byte aligned. 2 kept oh ow n flop. */
void sti_planar_conv_f32(const sti_team *team, const sti_planar_plan *plan,
                         const float *x, const void *packed,
                         const sti_planar_epilogue *epilogue, float *y_out,
                         void *scratch);

/* Channels-last images [n, h, w, c] to planar ones, the images beyond n zeros; and
 * back. */
void sti_planar_from_f32(const sti_team *team, int64_t n, int64_t area, int64_t c,
                         int64_t lanes, const float *x, float *planar_out);
void sti_planar_to_f32(const sti_team *team, int64_t n, int64_t area, int64_t c,
                       int64_t lanes, const float *planar, float *x_out);

#endif
