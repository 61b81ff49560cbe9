/* Tiles of a kernel matrix on a CUDA device, made and used up at once: K times a block
 * of vectors without K (gram.h), with the bits that the CPU gives where denormals are
 * flushed (sti_float_mode_enter). One exception: sums u.v in double that are denormal
 * on the way stay so.
 *
 * Kinds linear, polynomial, rbf and sigmoid of dense rows, tiles in double or in float,
 * vectors and their sums in double. */
#ifndef STI_KERNEL_CUDA_KERNEL_TILE_CUDA_H
#define STI_KERNEL_CUDA_KERNEL_TILE_CUDA_H

#include "kernel/gram/gram.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Devices that can be used; 0 without a driver. */
int sti_kernel_tile_cuda_devices(void);

/* Rows on a device. */
typedef struct sti_kernel_tile_cuda sti_kernel_tile_cuda;

typedef struct sti_kernel_tile_cuda_desc {
    sti_gram_function function; /* of the kinds above */
    const sti_gram_rows *rows;  /* dense, with terms, in host memory; copied */
    bool single;                /* tiles are of floats, as sti_gram_tile_f32 has them */
    int64_t side; /* rows of a band but the last, a multiple of 8, <= STI_GRAM_TILE */
    int64_t vectors; /* at most so many a product */
} sti_kernel_tile_cuda_desc;

/* Takes device memory for the rows, for two blocks of vectors and for the tiles of one
 * band of rows. NULL and *tiles_out, or what CUDA says went wrong (a static text). */
const char *sti_kernel_tile_cuda_create(const sti_kernel_tile_cuda_desc *desc,
                                        sti_kernel_tile_cuda **tiles_out);
void sti_kernel_tile_cuda_destroy(sti_kernel_tile_cuda *tiles); /* NULL is fine */

/* y_out[c] = the sum over bands of rows [first, end), in ascending order, of their
 * tiles on and below the diagonal, each used for both halves, times x[c]: K x[c] for
 * all bands. x[c] and y_out[c] [rows] are host memory; count <= vectors. A band's tiles
 * first add to what lies above the diagonal, along columns as sti_gram_apply's `down`,
 * then their products from left to right to the band itself. Waits for the device;
 * returns as above. */
const char *sti_kernel_tile_cuda_product(sti_kernel_tile_cuda *tiles, int64_t first,
                                         int64_t end, int64_t count,
                                         const double *const *x, double *const *y_out);

#ifdef __cplusplus
}
#endif

#endif
