/* Shared by the files of the convolution. Forward and backward data take one of these
 * algorithms, chosen by their shape alone (conv_plan.c); all but the first give the
 * same bits.
 *
 * winograd: minimal filtering, where the shape asks for it (conv_winograd.h).
 *
 * rows: rows of four pixels and more. Weights packed once a call, rows of the image in
 * place or copied with zero padding, taps are address offsets (conv_row_product.h).
 *
 * depthwise: one channel a group, all three directions, with vectors along channels and
 * nothing copied (conv_depthwise.h).
 *
 * product: 1x1, stride 1, no padding, one group, and not fit for rows: GEMM as it
 * stands.
 *
 * per pixel: few pixels that meet many weights, which would take longer to pack than to
 * multiply, and narrow images. Rows of the product are the same pixel of all images
 * (conv_per_pixel.c).
 *
 * gather: the rest, among them the same of few images. The blocked product, its blocks
 * gathered from the tensors.
 *
 * The weight gradient goes by rows, a slice of it at a time, or where a 1x1 convolution
 * has many weights, as a product (conv_product.c).
 *
 * An algorithm is a planner, which fills in its part of a plan whose shape, direction
 * and threads are set, and one call a direction, which takes the finished plan. */
#ifndef STI_KERNEL_CONV_PRIV_H
#define STI_KERNEL_CONV_PRIV_H

#include <assert.h>

#include "kernel/conv/conv.h"
#include "kernel/gemm/gemm_block.h"

enum {
    STI_CONV_PACK_FLOATS = 2560 << 10,  /* packed weights of the rows algorithm */
    STI_CONV_NARROW_FLOATS = 160 << 10, /* and where the narrow order ends: numerics */
    STI_CONV_NARROW_WIDTH = 7,
    STI_CONV_ROWS_FLOATS = 64 << 10, /* padded rows a piece */
    STI_CONV_MIN_WIDTH = 4,          /* pixels a tile of one image row */
    STI_CONV_MAX_TAPS = 128,         /* of the rows algorithm */
    STI_CONV_RUN_K = 288,            /* k of a panel of 32 columns kept in cache */
    STI_CONV_ALIGN = 64              /* bytes: parts of scratch begin at multiples */
};

static inline int64_t sti_conv_ceil_div(int64_t a, int64_t b)
{
    return (a + b - 1) / b;
}

static inline int64_t sti_conv_round_up(int64_t a, int64_t to)
{
    return (a + to - 1) / to * to;
}

static inline int64_t sti_conv_min(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

static inline int64_t sti_conv_max(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

/* No pixel of y: no images, or windows that fit nowhere. No algorithm is asked then. */
static inline bool sti_conv_is_empty(const sti_conv_shape *s)
{
    return s->n == 0 || s->oh == 0 || s->ow == 0;
}

/* Bytes of so many elements of scratch, that the next part begins at a boundary. */
static inline size_t sti_conv_part_bytes(int64_t count, size_t element_bytes)
{
    return (size_t)sti_conv_round_up(count * (int64_t)element_bytes, STI_CONV_ALIGN);
}

/* Adds a part of so many bytes to the scratch of a plan and returns where it begins. */
static inline size_t sti_conv_plan_add(sti_conv_plan *plan, size_t bytes)
{
    enum { SLACK = STI_CONV_ALIGN - 1 }; /* before the first boundary */
    const size_t end = plan->scratch_bytes > 0 ? plan->scratch_bytes - SLACK : 0;
    const size_t at = sti_conv_part_bytes((int64_t)end, 1);
    plan->scratch_bytes = SLACK + at + bytes;
    return at;
}

/* The same of so many bytes for each thread. */
static inline size_t sti_conv_plan_add_workers(sti_conv_plan *plan, size_t bytes)
{
    return sti_conv_plan_add(plan, (size_t)plan->threads * bytes);
}

/* The part of scratch that begins at `at` of the plan. */
static inline void *sti_conv_part(void *scratch, size_t at)
{
    return (char *)sti_block_align(scratch) + at;
}

/* What a plan was made for is what a call does. */
static inline void sti_conv_plan_check(const sti_conv_plan *plan,
                                       sti_conv_direction direction,
                                       const sti_team *team)
{
    assert(plan->direction == direction);
    assert(team->threads <= plan->threads);
    assert(plan->isa == sti_isa_now());
    (void)plan, (void)direction, (void)team;
}

/* One channel a group, more than one group. */
bool sti_conv_is_depthwise(const sti_conv_shape *shape);

/* Floats of the packed weights of the rows algorithm, in the direction that takes more.
 */
int64_t sti_conv_pack_floats(const sti_conv_shape *shape);

/* Copy a window of an image [h][w][c] whose top left corner is pixel (y0, x0), perhaps
 * outside, to dst [rows][cols][c]; pixels outside are zero. */
void sti_conv_copy_window(const float *image, int64_t h, int64_t w, int64_t c,
                          int64_t y0, int64_t x0, int64_t rows, int64_t cols,
                          float *dst);

/* One phase of the backward-data pass: the input pixels (y0 + s q, x0 + s r), q < rows,
 * r < cols, which meet the taps (first_y + s t, first_x + s u), t < taps_y, u < taps_x,
 * at output pixel (out_y + q - t, out_x + r - u). */
typedef struct sti_conv_phase {
    int64_t y0, x0, rows, cols;
    int64_t first_y, first_x, taps_y, taps_x;
    int64_t out_y, out_x;
} sti_conv_phase;

/* Phases are numbered 0 .. stride * stride - 1. */
sti_conv_phase sti_conv_phase_of(const sti_conv_shape *shape, int64_t phase);

/* Window of dy that q in [q0, q1) needs over all phases, in output pixels; x spans a
 * row. */
typedef struct sti_conv_window {
    int64_t y0, x0, rows, cols;
} sti_conv_window;
sti_conv_window sti_conv_dy_window(const sti_conv_shape *shape, int64_t q0, int64_t q1);

/* 1x1 convolutions as products of matrices: any direction. */
void sti_conv_plan_product(sti_conv_plan *plan);
void sti_conv_product_forward(const sti_team *team, const sti_conv_plan *plan,
                              const float *x, const float *w,
                              const sti_epilogue *epilogue, float *y_out,
                              void *scratch);
void sti_conv_product_data(const sti_team *team, const sti_conv_plan *plan,
                           const float *dy, const float *w, float *dx_out,
                           void *scratch);
void sti_conv_plan_product_weight(sti_conv_plan *plan);
void sti_conv_product_weight(const sti_team *team, const sti_conv_plan *plan,
                             const float *x, const float *dy, float *dw_out,
                             void *scratch);

/* The gather algorithm. */
void sti_conv_plan_gather(sti_conv_plan *plan);
void sti_conv_gather_forward(const sti_team *team, const sti_conv_plan *plan,
                             const float *x, const float *w,
                             const sti_epilogue *epilogue, float *y_out, void *scratch);
void sti_conv_gather_data(const sti_team *team, const sti_conv_plan *plan,
                          const float *dy, const float *w, float *dx_out,
                          void *scratch);

/* The per-pixel algorithm. It takes one group of channels, enough images and chunks of
 * k that end with a tap. */
bool sti_conv_per_pixel_fits(const sti_conv_shape *shape);
void sti_conv_plan_per_pixel(sti_conv_plan *plan);
void sti_conv_per_pixel_forward(const sti_team *team, const sti_conv_plan *plan,
                                const float *x, const float *w,
                                const sti_epilogue *epilogue, float *y_out,
                                void *scratch);
void sti_conv_per_pixel_data(const sti_team *team, const sti_conv_plan *plan,
                             const float *dy, const float *w, float *dx_out,
                             void *scratch);

/* The rows algorithm. */
void sti_conv_plan_rows(sti_conv_plan *plan);
/* behind: or NULL. */
void sti_conv_rows_forward(const sti_team *team, const sti_conv_plan *plan,
                           const float *x, const float *w, const sti_epilogue *epilogue,
                           const sti_conv_behind *behind, float *y_out, void *scratch);
/* conv_kept.h: packed weights of either direction, [plan->rows.panel_floats]. */
void sti_conv_rows_keep(const sti_team *team, const sti_conv_plan *plan, const float *w,
                        float *kept_out);
void sti_conv_rows_data(const sti_team *team, const sti_conv_plan *plan,
                        const float *dy, const float *w, float *dx_out, void *scratch);
/* squares [chunks][4][co] of conv_squares.h, or NULL. */
void sti_conv_plan_rows_weight(sti_conv_plan *plan);
void sti_conv_rows_weight(const sti_team *team, const sti_conv_plan *plan,
                          const float *x, const float *dy, float *dw_out,
                          float *squares, void *scratch);

#endif
