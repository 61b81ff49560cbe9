/* Where a row of a table lies: records in the order of ranks, packed into pages. */
#ifndef STI_EMBED_ROW_LAYOUT_H
#define STI_EMBED_ROW_LAYOUT_H

#include "base/page_file.h"

/* A record is `width` weights and `state` floats of the optimiser, filled up to 16
 * bytes. Page 0 says what the table is. */
typedef struct sti_row_layout {
    int64_t rows, width, state;
    uint64_t seed;
    float scale;           /* of new rows: uniform between -scale and scale */
    int64_t first, stride; /* row k here is row first + k stride of the whole table */
    int64_t record_bytes, per_page, pages; /* pages: with page 0 */
    size_t page_bytes;
} sti_row_layout;

/* STINT_E_UNSUPPORTED: a record is larger than 64 KiB. */
stint_status sti_row_layout_of(int64_t rows, int64_t width, int64_t state,
                               uint64_t seed, float scale, sti_row_layout *layout_out);

/* The rows of which `part` is the rank modulo `parts`, as a table of its own. */
void sti_row_layout_part(sti_row_layout *layout, int64_t part, int64_t parts);

static inline int64_t sti_row_page(const sti_row_layout *l, uint32_t rank)
{
    return 1 + (int64_t)rank / l->per_page;
}

static inline size_t sti_row_offset(const sti_row_layout *l, uint32_t rank)
{
    return (size_t)((int64_t)rank % l->per_page * l->record_bytes);
}

/* A record that was never written: a function of seed and the whole table's rank. */
void sti_row_make(const sti_row_layout *layout, uint32_t rank, void *record);
/* All records of a page that was never written. */
void sti_row_make_page(const sti_row_layout *layout, int64_t page, void *bytes);

#endif
