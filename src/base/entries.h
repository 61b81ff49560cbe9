/* Entries of a sparse matrix that come in batches, in whatever order they have: how a
 * matrix is looked at that no process holds as a whole. */
#ifndef STI_BASE_ENTRIES_H
#define STI_BASE_ENTRIES_H

#include <stdint.h>

#include "base/csr.h"
#include "stint/status.h"

/* Indices from 0. */
typedef struct sti_entries {
    const int32_t *row, *column; /* [count] */
    const double *value;         /* [count] */
    int64_t count;
} sti_entries;

/* Look at a batch, which is gone afterwards. A failure ends the pass. */
typedef stint_status sti_entries_fn(void *user, const sti_entries *batch);

/* Something that has entries: a pass gives each of them once, the same batches in the
 * same order every time. */
typedef struct sti_entry_source {
    int64_t rows, columns;
    stint_status (*pass)(const struct sti_entry_source *source, sti_entries_fn *fn,
                         void *user);
    /* Rows whose entries were added to a matrix as they came: columns made ascending,
     * entries at one place added up or refused. names: numbers of the rows, [rows]. */
    stint_status (*sort)(const struct sti_entry_source *source, const int32_t *names,
                         sti_csr *rows);
    const void *arg;
} sti_entry_source;

#endif
