/* The plan of a convolution: everything that its size, its direction and the machine
 * decide, made once, by one planner, for the question of how much scratch it takes and
 * for the call that takes it. A call lays its scratch out as the plan says and derives
 * no length of its own.
 *
 * Other rooms read `scratch_bytes` and hand the plan to the call (conv.h, conv_bf16.h).
 * The rest belongs to the algorithms, each of which fills in its member of the union.
 */
#ifndef STI_KERNEL_CONV_PLAN_H
#define STI_KERNEL_CONV_PLAN_H

#include "base/cpu.h"
#include "kernel/conv/conv_chunks.h"
#include "kernel/conv/conv_shape.h"
#include "kernel/gemm/gemm.h"

typedef enum sti_conv_direction {
    STI_CONV_FORWARD,
    STI_CONV_BACKWARD_DATA,
    STI_CONV_BACKWARD_WEIGHT
} sti_conv_direction;

/* The algorithms, which conv_priv.h describes. */
typedef enum sti_conv_algorithm {
    STI_CONV_EMPTY, /* y has no element: gradients are zeros */
    STI_CONV_WINOGRAD,
    STI_CONV_PRODUCT,
    STI_CONV_ROWS,
    STI_CONV_DEPTHWISE,
    STI_CONV_PER_PIXEL,
    STI_CONV_GATHER,
    STI_CONV_BF16 /* of all directions on bfloat16 */
} sti_conv_algorithm;

/* Members named `..._at` are where a part of scratch begins, in bytes from its first
 * multiple of 64; every thread of a team has worker_bytes of the part workers_at. */

/* Products of matrices: one, or in the weight gradient one a chunk of pixels. */
typedef struct sti_conv_product_plan {
    sti_gemm_shape product; /* of a whole chunk */
    sti_conv_chunks tree;
    size_t sums_at, copy_at, product_at;
} sti_conv_product_plan;

/* Rows of input, as the rows algorithm reads them. */
typedef struct sti_conv_row_source {
    int64_t images, h, w, c; /* the tensor */
    int64_t y0, x0;          /* its pixel that the first line of result 0 begins with */
    int64_t cols, ld;        /* pixels a line, floats a pixel */
    int64_t every;           /* lines and pixels of the tensor that one of ours takes */
    bool in_place;
    /* Results [r0, r1) need lines [r0 * step, (r1 - 1) * step + reach). */
    int64_t rows, step, reach;
    int64_t piece_rows, pieces_an_image, piece_images, block_rows;
} sti_conv_row_source;

typedef struct sti_conv_rows_plan {
    sti_conv_row_source source;
    int64_t panel_floats; /* packed weights */
    size_t panels_at, workers_at, worker_bytes;
} sti_conv_rows_plan;

/* The weight gradient by rows. */
typedef struct sti_conv_rows_weight_plan {
    sti_conv_shape shape; /* a 1x1 convolution without stride is one row of pixels */
    sti_conv_chunks tree;
    int64_t parts, part_taps;    /* pieces a row of taps or one for all; rows a piece */
    int64_t in_group, out_group; /* channels a group, of which a slice takes */
    int64_t slice_in, slice_out; /* so many */
    int64_t slices_in, slices_out;
    int64_t line_cols; /* pixels of a padded row of x */
    int64_t width;     /* columns of a panel of dy */
    int64_t block_rows, block_pixels;
    bool x_in_place, dy_in_place;
    int64_t x_floats, dy_floats; /* of a worker, before its stack of sums */
    size_t grad_floats, slice_floats;
    size_t results_at, workers_at, worker_bytes;
} sti_conv_rows_weight_plan;

/* Depthwise, forward and backward data: images are cut into blocks of rows. */
typedef struct sti_conv_depthwise_plan {
    int64_t block_rows, blocks, rows; /* of a block; blocks an image; of an image */
} sti_conv_depthwise_plan;

typedef struct sti_conv_depthwise_weight_plan {
    sti_conv_chunks tree;
    int64_t slice, slices; /* channels of one */
    size_t grad_floats, level_floats;
    size_t results_at, workers_at, worker_bytes;
} sti_conv_depthwise_weight_plan;

/* The per-pixel algorithm; one cut for all phases of the stride. */
typedef struct sti_conv_per_pixel_plan {
    int64_t image_parts, part_images, col_parts, part_cols, block_cols;
    int64_t pass_k; /* channels of a tap at a time */
    bool keep;      /* several blocks of pixels read the weights of a pass */
    int64_t a_floats, b_floats, partial_floats; /* of a worker */
    size_t workers_at, worker_bytes;
} sti_conv_per_pixel_plan;

typedef struct sti_conv_gather_plan {
    size_t product_at;
} sti_conv_gather_plan;

/* Minimal filtering: forward and backward data. */
typedef struct sti_conv_winograd_plan {
    int64_t images, h, w, c, pad; /* what is read */
    int64_t oh, ow, co;           /* what is written */
    int64_t tiles_y, tiles_x, block_rows;
    int64_t in_element, out_element, filter_element; /* floats */
    bool far; /* filters do not stay in the second-level cache */
    size_t filters_at, zeros_at, workers_at, worker_bytes;
} sti_conv_winograd_plan;

typedef struct sti_conv_winograd_weight_plan {
    int64_t tiles_y, tiles_x, rows; /* of all images */
    int64_t chunk_rows;
    sti_conv_chunks tree;
    int64_t slice, slices, block_rows;
    int64_t x_element, dy_element, grad_element; /* floats */
    size_t grad_floats;
    size_t results_at, zeros_at, workers_at, worker_bytes;
} sti_conv_winograd_weight_plan;

/* bfloat16, forward and backward data. A worker has rows of input, then, from live_at
 * on, a byte for each block of the longest run of taps. */
typedef struct sti_conv_bf16_plan {
    int64_t pairs;     /* of the channels of a pixel that is read */
    bool unpadded;     /* forward: rows of input are whole as they lie */
    int64_t line_cols; /* pixels of a row of input */
    int64_t rows, piece_rows, pieces_an_image; /* of results, of a phase */
    int64_t panel_pairs;                       /* packed weights of all phases */
    size_t run_at, panels_at, finite_at;
    size_t live_at, workers_at, worker_bytes;
} sti_conv_bf16_plan;

/* How the sum of the weight gradient on bfloat16 is cut: a group is `images` whole
 * images, or (when images is 1) `rows` output rows of one; a chunk is `groups` groups.
 * A function of the shape alone, whose y is not empty. */
typedef struct sti_conv_bf16_groups {
    int64_t images, rows, groups;
} sti_conv_bf16_groups;

/* The rasters of x: lengths in output pixels and rows. */
typedef struct sti_conv_bf16_raster {
    int64_t length;    /* sti_conv_bf16_weight_length */
    int64_t gap;       /* rows between images */
    int64_t phases;    /* rasters, for rows of the stride that taps meet */
    int64_t row_pairs; /* of one row of all phases */
} sti_conv_bf16_raster;

typedef struct sti_conv_bf16_weight_plan {
    sti_conv_bf16_raster raster;
    sti_conv_bf16_groups cut;
    int64_t groups_an_image, groups, chunks;
    int64_t slot_chunks, slot_count;  /* slots: partial gradients, of so many chunks */
    int levels;                       /* sums of a slot that live at a time */
    bool dense;                       /* less than 16 input channels */
    int64_t inputs, in_pieces;        /* input channels of a piece */
    int64_t block, blocks;            /* output channels of a piece */
    int64_t row_tiles;                /* of a row of taps, most */
    int64_t width;                    /* pairs of a pixel in a raster */
    int64_t raster_rows;              /* of a group */
    int64_t block_pairs, phase_pairs; /* a raster: 16 channels of one; all of one */
    int64_t dy_row, level_floats;
    /* Parts of a worker, from its beginning. */
    size_t raster_at, dy_at, sums_at, plain_at, live_at, list_at;
    size_t slots_at, workers_at, worker_bytes;
} sti_conv_bf16_weight_plan;

typedef struct sti_conv_plan {
    sti_conv_shape shape;
    sti_conv_direction direction;
    int threads; /* the most that a team of the call may have */
    sti_isa isa; /* whose tiles the lengths fit; the call's */
    sti_conv_algorithm algorithm;
    bool kept;            /* weights come as sti_conv_keep makes them (conv_kept.h) */
    size_t scratch_bytes; /* at any address. In float32: */
    /* Forward and data: the packed weights (at most 10 MiB; none where more than 1 MiB
     * of them meet 1024 results or fewer) plus, a thread, padded rows of the image
     * (about 256 KiB, 768 KiB where weights are larger than 1 MiB, more for very wide
     * rows), up to 3.7 MiB where rows are the same pixel of all images, or blocks as in
     * gemm.h (with stride in backward data 0.7 MiB more); nothing for depthwise ones.
     * Weight gradient: a thread, a slice of at most about 300 KiB for every doubling of
     * the chunks of 4096 pixels, and, where the gradient is smaller than four slices,
     * up to seven of them more. Of the 3x3 layers of ResNet-20 direct ones take 50 to
     * 170 KiB with one thread, filtered ones 150 to 770. */
    size_t squares_at; /* weight gradient: sums of squares (conv_squares.h) */
    union {
        sti_conv_product_plan product;
        sti_conv_rows_plan rows;
        sti_conv_rows_weight_plan rows_weight;
        sti_conv_depthwise_plan depthwise;
        sti_conv_depthwise_weight_plan depthwise_weight;
        sti_conv_per_pixel_plan per_pixel;
        sti_conv_gather_plan gather;
        sti_conv_winograd_plan winograd;
        sti_conv_winograd_weight_plan winograd_weight;
        sti_conv_bf16_plan bf16;
        sti_conv_bf16_weight_plan bf16_weight;
    };
} sti_conv_plan;

/* The plan of one direction in float32, for teams of up to so many threads (at least
 * 1). Plans of fewer threads take no more scratch. */
sti_conv_plan sti_conv_plan_f32(const sti_conv_shape *shape,
                                sti_conv_direction direction, int threads);

/* The same for weights that sti_conv_keep made ready (conv_kept.h). */
sti_conv_plan sti_conv_plan_kept_f32(const sti_conv_shape *shape,
                                     sti_conv_direction direction, int threads);

/* The same on bfloat16 images; shape->groups must be 1. */
sti_conv_plan sti_conv_plan_bf16(const sti_conv_shape *shape,
                                 sti_conv_direction direction, int threads);

#endif
