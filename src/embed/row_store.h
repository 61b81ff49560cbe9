/* The rows of a table that may be larger than memory: pages in a file, some rows in
 * memory, those of the next batches on their way.
 *
 * Rows below `hot` stay in memory; others share slots (cache_index.h). A thread of the
 * store's prepares batch b + depth while batch b is computed: it reads the ids, chooses
 * slots, writes dirty rows that gave way, and reads what is missing. Nothing that is in
 * memory, on its way or on disk shows in a row's bits: there is one copy that counts.
 *
 * Dirty rows go to their pages in place, the old bytes into a journal first
 * (row_journal.h). One thread at a time uses a store; two stores never share a folder:
 * the second is refused. */
#ifndef STI_EMBED_ROW_STORE_H
#define STI_EMBED_ROW_STORE_H

#include "base/async_io.h"
#include "embed/cache_flow.h"
#include "embed/row_batch.h"
#include "embed/row_layout.h"

/* The ids of a batch into slot `ring` of the caller's buffers, and their ranks and
 * vectors to the store; on the store's thread, or before the first step on the
 * caller's. */
typedef stint_status sti_row_load_fn(void *user, int64_t batch, int ring,
                                     uint32_t *rank, uint32_t *vector,
                                     int64_t *ids_out);

typedef struct sti_row_store_desc {
    const char *folder;   /* that holds rows.bin and journals; made if need be */
    const char *identity; /* one line: what ids and rule the rows are of */
    sti_row_layout layout;
    int64_t cached; /* rows in memory; at least layout.rows: all, and no look-ups */
    double hot;     /* share of them that stays */
    sti_cache_policy policy;
    int64_t lookahead, entries; /* of the window: batches; rows of all of them */
    int depth;                  /* batches prepared beyond the one at hand */
    sti_async_way io;
    size_t io_bytes; /* sti_async_bytes of it, where a budget counts */
    int64_t most;    /* ids of a batch */
    bool read_only;
    bool resume; /* the file is there, of this very identity; else it begins anew */
} sti_row_store_desc;

/* What is run through it: batches [first, batches). */
typedef struct sti_row_course {
    int64_t first, batches;
    sti_row_load_fn *load;
    void *user;
    sti_cache_look_fn *look;
    void *look_user;
    bool trained; /* rows change */
} sti_row_course;

/* Since the store was opened, but for rows: of the course. */
typedef struct sti_row_counts {
    int64_t rows_touched, rows_missed, rows_given, rows_given_dirty;
    int64_t pages_read, pages_written, journal_bytes;
    double waited_s; /* for rows */
} sti_row_counts;

typedef struct sti_row_store sti_row_store;

/* Bytes in memory of a store. */
size_t sti_row_store_bytes(const sti_row_store_desc *desc);
/* That part of them that is not for rows: pages and batches on their way. */
size_t sti_row_store_fixed_bytes(const sti_row_store_desc *desc);
/* Rows of such a store that fit into `bytes`; 0: not even those of the batches under
 * way. */
int64_t sti_row_store_fit(const sti_row_store_desc *desc, size_t bytes);

/* The cache that such a store runs a course through. */
sti_cache_desc sti_row_store_cache(const sti_row_store_desc *desc,
                                   const sti_row_course *course);

/* STINT_E_INPUT: a file that is there is cut short, or of another table (what differs
 * is said); STINT_E_USAGE: another process has it; STINT_E_IO; STINT_E_MEMORY. */
stint_status sti_row_store_open(const sti_row_store_desc *desc,
                                sti_row_store **store_out);
void sti_row_store_close(sti_row_store *store); /* NULL is fine; writes nothing */

/* Take the table back to a checkpoint's generation, before anything is read; 0: new. */
stint_status sti_row_store_rewind(sti_row_store *store, int64_t generation,
                                  int64_t keep);

/* Begin a course; every batch of the one before is done. */
stint_status sti_row_store_begin(sti_row_store *store, const sti_row_course *course);
/* The rows of batch `batch`, courses' batches in order: the batch by row, and the
 * record of each of its rows, which are the caller's until _done. Ring slot batch %
 * (depth + 1) of the caller's buffers is that batch's. */
stint_status sti_row_store_step(sti_row_store *store, int64_t batch,
                                const sti_row_batch **batch_out,
                                float *const **rows_out);
/* Rows are as they are to be. STINT_E_IO: what the store's thread met. */
stint_status sti_row_store_done(sti_row_store *store, int64_t batch);

/* All dirty rows to disk, synced: between batches. */
stint_status sti_row_store_flush(sti_row_store *store);
/* A checkpoint of this generation holds: what is flushed is what it goes back to. */
stint_status sti_row_store_commit(sti_row_store *store, int64_t generation,
                                  int64_t keep);

/* All records in the order of ranks, flushed ones: of `count` rows from `first` on. */
typedef stint_status sti_row_fn(void *user, int64_t first, int64_t count,
                                const void *records, int64_t record_bytes);
stint_status sti_row_store_each(sti_row_store *store, sti_row_fn *fn, void *user);

/* Records of rows [first, first + count), flushed ones, without a course. */
stint_status sti_row_store_take(sti_row_store *store, int64_t first, int64_t count,
                                void *records_out);
/* Fill a new table without a course, from row 0 on: the next rows. The last one's page
 * is synced. */
stint_status sti_row_store_put(sti_row_store *store, int64_t first, int64_t count,
                               const void *records);

sti_row_counts sti_row_store_counts(const sti_row_store *store);
const char *sti_row_store_io(const sti_row_store *store); /* "uring, O_DIRECT" */

#endif
