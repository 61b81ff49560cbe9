/* Inside of a store: row_store.c opens it and runs batches through it, row_pages.c
 * moves records to and from pages. */
#ifndef STI_EMBED_ROW_STORE_PRIV_H
#define STI_EMBED_ROW_STORE_PRIV_H

#include <pthread.h>

#include "embed/row_journal.h"
#include "embed/row_store.h"

enum { STI_ROW_STAGE = 256, STI_ROW_DEPTH_MOST = 8 }; /* pages moved at once */

typedef struct sti_row_ring {
    sti_row_batch batch;
    uint32_t *slot; /* [most] of its rows */
    float **row;    /* [most] */
} sti_row_ring;

/* The thread that prepares: at most one batch at a time. */
typedef struct sti_row_worker {
    pthread_t thread;
    bool started, ends;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    int64_t job; /* the batch that is to be prepared; -1: none */
    stint_status status;
    char text[1024]; /* of its failure */
} sti_row_worker;

struct sti_row_store {
    sti_row_store_desc desc;
    char *folder, *identity;
    int lock_fd;
    sti_paged_file file;
    sti_async *io;
    sti_row_journal journal;
    sti_cache_flow flow;
    bool flow_is; /* flow is there */
    int64_t hot, slots;
    char *records;      /* [hot + slots][record_bytes] */
    uint8_t *hot_dirty; /* a bit each */
    sti_row_ring ring[STI_ROW_DEPTH_MOST + 1];
    uint32_t *rank, *vector; /* [most] ids of a batch on its way */
    sti_row_course course;
    bool running;
    sti_row_worker worker;
    /* Pages on their way. */
    char *stage_room, *stage; /* [STI_ROW_STAGE][page_bytes], aligned */
    sti_async_op op[STI_ROW_STAGE];
    int64_t page[STI_ROW_STAGE];
    sti_cache_place *places; /* [hot + slots most], of a flush */
    int64_t places_most;
    sti_row_counts counts;
};

static inline char *sti_row_record(const sti_row_store *s, uint32_t slot)
{
    return s->records + (int64_t)slot * s->desc.layout.record_bytes;
}

/* Records of these places from their pages; ascending ranks. STINT_E_INPUT: a page is
 * damaged (it is named). */
stint_status sti_row_pages_read(sti_row_store *store, const sti_cache_place *places,
                                int64_t count);
/* Records into their pages, old bytes into the journal first; ascending ranks. Dirty
 * rows beside them go along and are clean then, but for those in use. */
stint_status sti_row_pages_write(sti_row_store *store, const sti_cache_place *places,
                                 int64_t count);
/* Pages [first, first + count) as they are, made where they never were written, to
 * store->stage; at most STI_ROW_STAGE. */
stint_status sti_row_pages_look(sti_row_store *store, int64_t first, int64_t count);
/* Page 0: written anew, or compared. */
stint_status sti_row_pages_head(sti_row_store *store, bool write);
/* For qsort: by rank. */
int sti_cache_place_order(const void *a, const void *b);
/* What sti_row_journal_undo calls. */
sti_row_undo_fn sti_row_pages_undo;

#endif
