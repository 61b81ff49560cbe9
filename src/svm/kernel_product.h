/* (K + D) times vectors, K the kernel matrix of one range of rows or of two and D
 * diagonal, by tiles on and below the diagonal of which each serves both halves.
 *
 * A tile comes from the store, from the product's own room for tiles between the two
 * ranges, or is made here and now: always with the same bits. Sums run over bands of
 * tiles in ascending order within shards of such bands, and over the shards along the
 * tree of net/shard_tree.h. So neither room nor threads change a bit, nor do ranks that
 * share the shards, nor a device that makes the tiles. */
#ifndef STI_SVM_KERNEL_PRODUCT_H
#define STI_SVM_KERNEL_PRODUCT_H

#include "net/comm.h"
#include "svm/kernel_columns.h"
#include "svm/kernel_store.h"
#include "svm/svm_device.h"

/* A matrix: the second range is empty where there is one only. */
typedef struct sti_kernel_ranges {
    sti_row_range rows[2];
    int64_t index[2]; /* among the ranges of the store */
} sti_kernel_ranges;

typedef struct sti_kernel_product sti_kernel_product;

/* Most rows and columns of vectors, and values of tiles between two ranges that are
 * kept. */
typedef struct sti_kernel_product_size {
    int64_t n, columns, crossing;
    int threads;
    sti_comm *comm; /* ranks that share the work of one range; NULL: alone */
    /* Makes all tiles and uses them up: rows are dense and nothing is kept. NULL: the
     * tiles are made here. */
    const sti_kernel_tile_plugin *device;
} sti_kernel_product_size;

/* The bands of a range of n rows whose tiles are a rank's to multiply. */
typedef struct sti_band_range {
    int64_t first, end;
} sti_band_range;
sti_band_range sti_kernel_product_bands(int64_t n, int ranks, int rank);

/* Bytes for that. */
size_t sti_kernel_product_bytes(const sti_kernel_source *source,
                                sti_kernel_product_size size);
stint_status sti_kernel_product_create(const sti_kernel_source *source,
                                       const sti_kernel_store *store,
                                       sti_kernel_product_size size,
                                       const sti_team *team,
                                       sti_kernel_product **product_out);
void sti_kernel_product_destroy(sti_kernel_product *product); /* NULL is fine */

/* Begin with other rows, the two ranges one after the other, and their D [rows]; makes
 * the tiles between them that are kept. Fails where a stop was asked for. */
stint_status sti_kernel_product_select(sti_kernel_product *product,
                                       const sti_kernel_ranges *ranges,
                                       const double *diagonal);

/* A sti_krylov_product_fn; arg is the product. Fails where a stop was asked for. */
stint_status sti_kernel_product_run(void *arg, int64_t count, const double *const *x,
                                    double *const *y);

/* The same with values in double, of tiles made here and now: the true product where
 * the source's tiles are in float. */
stint_status sti_kernel_product_run_exact(void *arg, int64_t count,
                                          const double *const *x, double *const *y);

/* ---- columns of K, for a preconditioner (solve/low_rank.h) ---- */

/* K's diagonal of the rows selected. */
void sti_kernel_product_diagonal(const sti_kernel_product *product, double *out);
/* A sti_low_rank_pivots_fn and a sti_low_rank_columns_fn; arg is the product. */
stint_status sti_kernel_product_pivots(void *arg, int64_t count, const int64_t *pivot);
void sti_kernel_product_columns(void *arg, int64_t begin, int64_t rows, double *out,
                                int64_t ld, int worker);

#endif
