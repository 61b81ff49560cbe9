/* (K + D) times vectors, K the kernel matrix of some rows and D diagonal, by tiles on
 * and below the diagonal of which each serves both halves. As many tiles as there is
 * room for are kept after they were first made; the others are made again every time,
 * with the same bits. Sums run over bands of tiles in ascending order, so neither the
 * room nor the threads change a bit. */
#ifndef STI_SVM_KERNEL_PRODUCT_H
#define STI_SVM_KERNEL_PRODUCT_H

#include <stdbool.h>

#include "base/team.h"
#include "kernel/gram/gram.h"

/* Rows [begin, begin + count). */
typedef struct sti_row_range {
    int64_t begin, count;
} sti_row_range;

typedef struct sti_kernel_product sti_kernel_product;

/* Tiles of one range, or of two side by side (the other's count 0: one). */
int64_t sti_kernel_product_tiles(int64_t count, int64_t other_count);
/* Bytes beside the tiles kept, for at most so many rows and columns of vectors. */
size_t sti_kernel_product_bytes(const sti_gram_rows *rows, int64_t n, int64_t columns,
                                int threads);

/* Room for products of at most n rows and so many columns, `kept` tiles resident. What
 * is pointed to must outlive it. */
stint_status sti_kernel_product_create(const sti_team *team, const sti_gram_rows *rows,
                                       const sti_gram_function *function, int64_t n,
                                       int64_t columns, int64_t kept,
                                       sti_kernel_product **product_out);
void sti_kernel_product_destroy(sti_kernel_product *product); /* NULL is fine */

/* Begin with other rows, the two ranges one after the other, and their D [rows]. */
void sti_kernel_product_select(sti_kernel_product *product,
                               const sti_row_range range[2], const double *diagonal);

/* A sti_krylov_product_fn; arg is the product. Fails where a stop was asked for. */
stint_status sti_kernel_product_run(void *arg, int64_t count, const double *const *x,
                                    double *const *y);

#endif
