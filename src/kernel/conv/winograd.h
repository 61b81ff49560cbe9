/* The transforms of Winograd's minimal filtering F(2 x 2, 3 x 3) (Lavin and Gray, "Fast
 * Algorithms for Convolutional Neural Networks", 2016, section 4.1), a row of tiles at
 * a time. A tile is 4 x 4 inputs and 2 x 2 outputs; element e = 4 i + j of a
 * transformed tile is a vector over channels. Channels are multiples of 16. Private to
 * the kernel room.
 *
 *     inputs   V = B' d B     columns, then rows: d0 - d2, d1 + d2, d2 - d1, d1 - d3
 *     outputs  Y = A' M A     (m0 + m1) + m2, (m1 - m2) - m3
 *     filters  U = G g G'     g0, ((g0 + g2) + g1) / 2, ((g0 + g2) - g1) / 2, g2
 *     and, transposed, for the gradient of the filters:
 *     output gradients  D = A dy A'   d0, d0 + d1, d0 - d1, -d1
 *     filter gradients  dg = G' dU G  u0 + (u1 + u2) / 2, (u1 - u2) / 2,
 *                                     (u1 + u2) / 2 + u3 */
#ifndef STI_KERNEL_WINOGRAD_H
#define STI_KERNEL_WINOGRAD_H

#include <stdbool.h>
#include <stdint.h>

#include "kernel/lane/dispatch.h"

enum { STI_WINOGRAD_ELEMENTS = 16 };

/* A row of tiles: tile t, element e at tiles + t * tile + e * element. */
typedef struct sti_winograd_row {
    float *tiles;
    int64_t tile, element;
    int64_t count;           /* tiles */
    const float *line[4];    /* inputs: 4 lines of pixels; output gradients: 2 */
    int64_t line_channel[4]; /* floats between pixels; 0 with a line of zeros */
    float *out[2];           /* outputs; out[1] may be NULL */
    int64_t first;           /* inputs: pixel of the first tile's left column */
    int64_t pixels;          /* of a line; others count as zeros or are not written */
    int64_t channels;        /* also floats between pixels of `out` */
    const float *bias;       /* outputs: [channels] or NULL */
    bool relu;
} sti_winograd_row;

typedef struct sti_winograd_kernels {
    void (*input)(const sti_winograd_row *row);
    void (*output)(const sti_winograd_row *row);
    void (*output_grad)(const sti_winograd_row *row);
    /* count filters, taps `tap` floats apart, to elements `element` apart; and back. */
    void (*filter)(const float *filter, int64_t tap, int64_t count, float *out,
                   int64_t element);
    void (*filter_grad)(const float *grad, int64_t element, int64_t count, float *out,
                        int64_t tap);
} sti_winograd_kernels;

extern const sti_winograd_kernels sti_winograd_kernels_ref;
#if defined(__x86_64__)
extern const sti_winograd_kernels sti_winograd_kernels_avx2;
extern const sti_winograd_kernels sti_winograd_kernels_avx512;
#endif

#endif
