/* The inner loops of pooling: some channels of one output pixel. Lanes are channels and
 * never mix. Private to the kernel room. */
#ifndef STI_KERNEL_POOL_CELL_H
#define STI_KERNEL_POOL_CELL_H

#include "kernel/pool/pool.h"

/* Most channels of a cell: held in registers or the first cache. */
enum { STI_POOL_BLOCK = 64 };

/* A window clipped to the image, and n <= STI_POOL_BLOCK channels of it. */
typedef struct sti_pool_window {
    int64_t i0, i1, j0, j1; /* rows and columns of the window that are inside */
    int64_t size;
    int64_t row_stride, pixel_stride; /* elements */
    int64_t first; /* element of the image at window position (0, 0) and the first
                      channel; outside for a window that begins in the padding */
    int64_t n;
} sti_pool_window;

/* x and dx are images; the other arrays are [n]. Index: position i * size + j. */
typedef struct sti_pool_kernels {
    void (*max)(const sti_pool_window *p, const float *x, float *y, int32_t *index);
    void (*unpool)(const sti_pool_window *p, const float *dy, const int32_t *index,
                   float *dx);
    void (*gather)(const sti_pool_window *p, const float *x, const int32_t *index,
                   float *y);
    void (*average)(const sti_pool_window *p, float factor, const float *x, float *y);
    void (*average_unpool)(const sti_pool_window *p, float factor, const float *dy,
                           float *dx);
    /* y [n] = factor * sum over the rows of x [area, n], `stride` apart. */
    void (*global)(int64_t area, int64_t stride, int64_t n, float factor,
                   const float *x, float *y);
} sti_pool_kernels;

extern const sti_pool_kernels sti_pool_kernels_ref;
#if defined(__x86_64__)
extern const sti_pool_kernels sti_pool_kernels_avx2, sti_pool_kernels_avx512;
#endif

#endif
