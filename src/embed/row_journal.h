/* Old pages of a table, so that it can be taken back to the last checkpoint.
 *
 * Pages are overwritten in their place. Before the first time after a checkpoint that a
 * page is, its old bytes are appended to journal-GENERATION beside the table and
 * synced. Generation g is the table as checkpoint g saw it; taking back all of
 * journal-g makes it so again, whatever was written since, half pages included. A
 * record that is not whole was never relied on: what it would take back was not
 * overwritten yet.
 *
 * A sync costs as much as dozens of pages, so one serves as many as it can: a page is
 * appended when it is read, long before it is overwritten, and only an overwriting
 * whose page came in since the last sync asks for one. */
#ifndef STI_EMBED_ROW_JOURNAL_H
#define STI_EMBED_ROW_JOURNAL_H

#include "base/page_file.h"

enum { STI_JOURNAL_FRESH = 4096 }; /* pages between two syncs, at most */

typedef struct sti_row_journal {
    const char *folder; /* borrowed */
    int fd;             /* -1: none is open */
    int64_t generation;
    int64_t pages;
    size_t page_bytes;
    uint8_t *held;  /* a bit a page: it is in the journal */
    uint8_t *fresh; /* likewise: since the last sync */
    int64_t *list;  /* [STI_JOURNAL_FRESH] these pages */
    int64_t fresh_count;
    int64_t offset; /* where the next record goes */
    int64_t bytes;  /* written by this process, to all journals */
} sti_row_journal;

/* STINT_E_MEMORY. */
stint_status sti_row_journal_init(sti_row_journal *journal, const char *folder,
                                  size_t page_bytes, int64_t pages);
void sti_row_journal_fini(sti_row_journal *journal); /* also of a zeroed one */
/* A new, empty journal of this generation, on disk; the one before is closed, and those
 * before the last `keep` are removed. */
stint_status sti_row_journal_begin(sti_row_journal *journal, int64_t generation,
                                   int64_t keep);

static inline bool sti_row_journal_holds(const sti_row_journal *journal, int64_t page)
{
    return journal->held[page / 8] >> page % 8 & 1;
}

static inline bool sti_row_journal_is_fresh(const sti_row_journal *journal,
                                            int64_t page)
{
    return journal->fresh[page / 8] >> page % 8 & 1;
}

/* Bytes in memory. */
size_t sti_row_journal_bytes(int64_t pages);
/* Append the old bytes of a page, which is fresh then; _sync before it is overwritten.
 */
stint_status sti_row_journal_add(sti_row_journal *journal, int64_t page,
                                 const void *bytes);
stint_status sti_row_journal_sync(sti_row_journal *journal);

/* Called for each page to be taken back: write it. */
typedef stint_status sti_row_undo_fn(void *user, int64_t page, const void *bytes);
/* Take back all journals of generations from the newest down to `generation`. Journals
 * stay: the caller syncs, then begins anew. STINT_E_INPUT: one in between is missing or
 * of another table. */
stint_status sti_row_journal_undo(sti_row_journal *journal, int64_t generation,
                                  sti_row_undo_fn *fn, void *user);
/* Remove those of this generation and later ones. */
stint_status sti_row_journal_remove_from(const char *folder, int64_t generation);
/* Remove all journals of a folder. */
stint_status sti_row_journal_remove_all(const char *folder);

#endif
