/* Tiles of a kernel matrix that stay in memory.
 *
 * Rows stand in ranges (classes, or all of them in one). A range is cut into equal
 * bands, and of the matrix within a range there are the tiles on and below the
 * diagonal, band by band behind one another. A store keeps the first of all these tiles
 * for as long as it lives; a machine of two ranges shares it with others that have one
 * of them. Where a tile lies follows from the numbers of rows alone. */
#ifndef STI_SVM_KERNEL_STORE_H
#define STI_SVM_KERNEL_STORE_H

#include <stdbool.h>

#include "base/team.h"
#include "kernel/gram/gram.h"
#include "stint/status.h"

/* Rows [begin, begin + count). */
typedef struct sti_row_range {
    int64_t begin, count;
} sti_row_range;

/* Consecutive rows of a range that make a tile's side; bands before the last are of
 * `side` rows. */
int64_t sti_band_side(int64_t rows);
int64_t sti_band_count(int64_t rows);
sti_row_range sti_band_of(sti_row_range range, int64_t band);
/* Values from row to row of a tile whose columns are a band. */
int64_t sti_band_stride(sti_row_range band);

/* Values before tile (band, other), other <= band, of a range; of band = count of
 * bands: all of them. */
int64_t sti_triangle_values(int64_t rows, int64_t band, int64_t other);
/* Likewise of the tiles between the bands of one range, from top to bottom, and those
 * of another. */
int64_t sti_rectangle_values(int64_t rows, int64_t other_rows, int64_t band,
                             int64_t other);

/* How entries are made. What is pointed to must outlive whoever has this. */
typedef struct sti_kernel_source {
    const sti_gram_rows *rows;
    const sti_gram_function *function;
    bool single; /* tiles are of floats, else of doubles */
} sti_kernel_source;

/* Bytes of a value of its tiles. */
size_t sti_kernel_source_value_bytes(const sti_kernel_source *source);

/* Make the tile of two ranges of rows of at most STI_GRAM_TILE into `tile`. */
void sti_kernel_source_tile(const sti_kernel_source *source, sti_row_range u,
                            sti_row_range v, void *tile, void *scratch);

typedef struct sti_kernel_store sti_kernel_store;

/* Keep the first `values` of all ranges' tiles; of a single range those from
 * `first_band` on. ranges [count] is borrowed. */
stint_status sti_kernel_store_create(const sti_kernel_source *source, int64_t count,
                                     const sti_row_range *ranges, int64_t values,
                                     int64_t first_band, sti_kernel_store **store_out);
void sti_kernel_store_destroy(sti_kernel_store *store); /* NULL is fine */
/* Make all that is kept. Fails where there is no memory for that (a worker's scratch of
 * sti_gram_tile each), or a stop was asked for. */
stint_status sti_kernel_store_fill(sti_kernel_store *store, const sti_team *team);

/* The tile (band, other) of a range, or NULL: it is not kept. */
const void *sti_kernel_store_tile(const sti_kernel_store *store, int64_t range,
                                  int64_t band, int64_t other);

#endif
