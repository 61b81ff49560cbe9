/* Depthwise convolution: one input and one output channel a group, so vectors lie along
 * the channels, no operand is packed and nothing is copied: pixels at an edge leave out
 * the taps that lie outside. Private to the kernel room. */
#ifndef STI_KERNEL_CONV_DEPTHWISE_H
#define STI_KERNEL_CONV_DEPTHWISE_H

#include "kernel/conv/conv_priv.h"

/* What will be read soon: `each` cache lines, one after the other, for every vector of
 * results. May lie outside of arrays. */
typedef struct sti_depthwise_prefetch {
    const float *at;
    int64_t each;
} sti_depthwise_prefetch;

/* c[p * c_row + j] = chain over runs i of a[a_run[i] + p * a_row + j] * b[b_run[i] +
 * j], then bias[j] and ReLU, for p < pixels, j < channels. */
typedef struct sti_depthwise_line {
    const float *a;
    int64_t a_row;
    const int64_t *a_run;
    const float *b;
    const int64_t *b_run;
    int64_t runs;
    float *c;
    int64_t c_row;
    int64_t pixels, channels;
    const float *bias; /* or NULL */
    bool relu;
    sti_depthwise_prefetch prefetch;
} sti_depthwise_line;

/* c[t * c_tap + j] goes on as a chain over pixels p of a[p * a_step + t * a_tap + j] *
 * dy[p * a_tap + j], for taps t and channels j. The first pixel leaves out the first
 * `left` taps, the last pixel (another one) the last `right` taps. */
typedef struct sti_depthwise_grad {
    const float *a;
    int64_t a_step, a_tap;
    const float *dy;
    int64_t pixels;
    int64_t taps, channels;
    int left, right; /* 0 or 1 */
    float *c;
    int64_t c_tap;
} sti_depthwise_grad;

/* One or two rows of results of 3 x 3 taps: c[r * c_y + p * c_x + j] = chain over taps
 * (i, t), i ascending and then t, of a[(r + i) a_y + (step p + t) a_x + j] *
 * b[i b_y + t b_x + j], then bias[j] and ReLU, for r < rows, p < results, j < channels.
 * Only rows [first, end) of a lie inside, of 2 + rows; `left`: the first result
 * leaves out its first column of taps, `right`: the last one its last. */
typedef struct sti_depthwise_block {
    const float *a;
    int64_t a_x, a_y;
    const float *b;
    int64_t b_x, b_y;
    float *c;
    int64_t c_x, c_y;
    int64_t results, channels;
    int64_t first, end;
    int rows, step; /* two rows only with a step of 1 */
    bool left, right;
    const float *bias; /* or NULL */
    bool relu;
    const float *prefetch; /* what the next rows read, perhaps outside of the array */
} sti_depthwise_block;

/* All taps of 3 x 3 at once: c[(i * 3 + t) * channels + j] goes on as a chain over rows
 * r and pixels p of a[(step r + i) a_y + (step p + t) a_x + j] * dy[r dy_y + p a_x +
 * j]. `top` and `bottom` leave out the first and last row of taps, `left` the first
 * column of the first pixel of a row, `right` the last column of the last one. */
typedef struct sti_depthwise_nine {
    const float *a, *dy;
    int64_t a_x, a_y, dy_y;
    int64_t rows, pixels, channels, step;
    bool top, bottom, left, right;
    float *c;
} sti_depthwise_nine;

typedef struct sti_depthwise_kernels {
    void (*line)(const sti_depthwise_line *line);
    void (*grad)(const sti_depthwise_grad *grad);
    void (*block)(const sti_depthwise_block *block); /* or NULL, */
    void (*nine)(const sti_depthwise_nine *grad);    /* both */
} sti_depthwise_kernels;

extern const sti_depthwise_kernels sti_depthwise_kernels_ref;
#if defined(__x86_64__)
extern const sti_depthwise_kernels sti_depthwise_kernels_avx2;
extern const sti_depthwise_kernels sti_depthwise_kernels_avx512;
#endif

/* The three directions as in conv.h; forward and data take no scratch, and at most
 * STI_CONV_MAX_TAPS taps. squares as in sti_conv_rows_weight. */
void sti_conv_plan_depthwise(sti_conv_plan *plan);
void sti_conv_depthwise_forward(const sti_team *team, const sti_conv_plan *plan,
                                const float *x, const float *w,
                                const sti_epilogue *epilogue, float *y_out);
void sti_conv_depthwise_data(const sti_team *team, const sti_conv_plan *plan,
                             const float *dy, const float *w, float *dx_out);
void sti_conv_plan_depthwise_weight(sti_conv_plan *plan);
void sti_conv_depthwise_weight(const sti_team *team, const sti_conv_plan *plan,
                               const float *x, const float *dy, float *dw_out,
                               float *squares, void *scratch);

#endif
