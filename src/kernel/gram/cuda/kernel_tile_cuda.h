/* Tiles of a kernel matrix on a CUDA device, made and used up at once: K times a block
 * of vectors without K (gram.h), with the bits that the CPU gives where denormals are
 * flushed (sti_float_mode_enter). One exception: sums u.v in double that are denormal
 * on the way stay so.
 *
 * Kinds linear, polynomial, rbf and sigmoid of dense rows, tiles in double or in float,
 * vectors and their sums in double.
 *
 * The program is not linked with CUDA: this is what the plug-in libstint_cuda.so gives
 * under the name "stint_kernel_tiles". Every call that can fail gives NULL, or what
 * CUDA says went wrong (a static text). */
#ifndef STI_KERNEL_CUDA_KERNEL_TILE_CUDA_H
#define STI_KERNEL_CUDA_KERNEL_TILE_CUDA_H

#include "kernel/gram/gram.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Rows on a device. One thread at a time; several of them at once are fine. */
typedef struct sti_kernel_tile_cuda sti_kernel_tile_cuda;

typedef struct sti_kernel_tile_cuda_desc {
    sti_gram_function function; /* of the kinds above */
    const sti_gram_rows *rows;  /* dense, with terms, in host memory; copied */
    /* At most so many rows and bands of a selection, and vectors of a product. */
    int64_t places, bands, vectors;
} sti_kernel_tile_cuda_desc;

/* Consecutive rows that make a tile's side, and where they stand in vectors. */
typedef struct sti_kernel_tile_band {
    int64_t begin, count; /* count <= STI_GRAM_TILE */
    int64_t at;           /* the counts of all bands before it */
} sti_kernel_tile_band;

enum { STI_KERNEL_TILE_PLUGIN = 2 };

typedef struct sti_kernel_tile_plugin {
    int version; /* STI_KERNEL_TILE_PLUGIN */
    /* Devices that can be used; 0 without a driver. */
    int (*devices)(void);
    /* Take now what CUDA takes once a process, so that it can be measured. */
    const char *(*begin)(void);
    /* Takes device memory for the rows, for two blocks of vectors and for the tiles of
     * one band of rows. */
    const char *(*create)(const sti_kernel_tile_cuda_desc *desc,
                          sti_kernel_tile_cuda **tiles_out);
    void (*destroy)(sti_kernel_tile_cuda *tiles); /* NULL is fine */
    /* Begin with other rows, band after band. */
    const char *(*select)(sti_kernel_tile_cuda *tiles, int64_t count,
                          const sti_kernel_tile_band *bands);
    /* y_out[c] = the sum over bands [first, end), in ascending order, of their tiles on
     * and below the diagonal, each used for both halves, times x[c]: K x[c] for all
     * bands. single: tiles are of floats, as sti_gram_tile_f32 has them. x[c] and
     * y_out[c] [places] are host memory; count <= vectors. A band's tiles first add to
     * what lies above the diagonal, along columns as sti_gram_apply's `down`, then
     * their products from left to right to the band itself. Waits for the device. */
    const char *(*product)(sti_kernel_tile_cuda *tiles, bool single, int64_t first,
                           int64_t end, int64_t count, const double *const *x,
                           double *const *y_out);
} sti_kernel_tile_plugin;

extern const sti_kernel_tile_plugin stint_kernel_tiles;

#ifdef __cplusplus
}
#endif

#endif
