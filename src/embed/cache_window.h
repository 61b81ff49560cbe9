/* The batches that come next, as far as the order of samples says and memory allows:
 * for each row of a batch in the window, the batch that uses it next. */
#ifndef STI_EMBED_CACHE_WINDOW_H
#define STI_EMBED_CACHE_WINDOW_H

#include "embed/cache_index.h"

/* The different rows of a batch, ascending, into rank_out (room for the most ids of a
 * batch); *count_out 0 and on. Called for batches in their order. */
typedef stint_status sti_cache_look_fn(void *user, int64_t batch, uint32_t *rank_out,
                                       int64_t *count_out);

typedef struct sti_cache_window {
    int64_t lookahead, capacity; /* batches; entries */
    int64_t first, end;          /* batches in it: [first, end) */
    int64_t head, tail;          /* entries in use: [head, tail), modulo capacity */
    uint32_t *rank, *next;       /* [capacity] */
    int64_t *start;              /* [lookahead + 2] of a batch's entries, modulo that */
    uint32_t *table;             /* [table_mask + 1] a rank's last entry + 1, or 0 */
    uint32_t table_mask;
} sti_cache_window;

size_t sti_cache_window_bytes(int64_t capacity);
/* first: the batch that comes first. STINT_E_MEMORY. */
stint_status sti_cache_window_init(sti_cache_window *window, int64_t lookahead,
                                   int64_t capacity, int64_t first);
void sti_cache_window_fini(sti_cache_window *window); /* also of a zeroed one */
/* Is there room for a further batch of up to `most` rows? */
bool sti_cache_window_has_room(const sti_cache_window *window, int64_t most);
/* The next batch's rows are in sight; the index hears of those that it holds. */
void sti_cache_window_add(sti_cache_window *window, sti_cache_index *index,
                          const uint32_t *rank, int64_t count);
/* The batch that uses row i of batch `batch` next, or STI_CACHE_NEVER: none in sight.
 */
uint32_t sti_cache_window_next(const sti_cache_window *window, int64_t batch,
                               int64_t i);
/* The first batch is done with. */
void sti_cache_window_drop(sti_cache_window *window);

#endif
