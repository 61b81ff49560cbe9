/* A table as a whole: what it is of, and the parts that ranks have as one table of rank
 * 0's, which a model is. */
#include <stdio.h>
#include <string.h>

#include "base/fail.h"
#include "recommend/learner.h"

void sti_learner_identity(const sti_clicks *clicks, int rule, char line_out[160])
{
    static const char *const rules[] = {"sgd", "adagrad", "rowwise-adagrad",
                                        "lazy-adam"};
    snprintf(line_out, 160, "optimiser %s\nids of %s", rules[rule], clicks->sha256);
}

#define PIECE_BYTES ((int64_t)64 << 10)

/* Rows a rank sends at once. */
static int64_t piece_of(const sti_row_layout *l)
{
    return l->record_bytes < PIECE_BYTES ? PIECE_BYTES / l->record_bytes : 1;
}

/* Row k of the piece is of rank k modulo ranks. */
static void interleave(const char *all, int64_t rows, int ranks, int64_t piece,
                       int64_t bytes, char *out)
{
    for (int64_t k = 0; k < rows; k++)
        memcpy(out + k * bytes, all + (k % ranks * piece + k / ranks) * bytes,
               (size_t)bytes);
}

/* Pieces of all ranks' parts, in their order, to rank 0's new table. */
static stint_status move_rows(sti_learner *l, sti_comm *comm, sti_row_store *whole,
                              char *mine, char *all)
{
    const int64_t piece = piece_of(&l->rows.layout), rows = l->clicks.rows,
                  bytes = l->rows.layout.record_bytes;
    char *out = all ? all + l->ranks * piece * bytes : NULL;
    stint_status st = STINT_OK;
    for (int64_t at = 0; at < rows && st == STINT_OK; at += l->ranks * piece) {
        const int64_t first = at / l->ranks, left = l->rows.layout.rows - first;
        const int64_t n = rows - at < l->ranks * piece ? rows - at : l->ranks * piece;
        st = sti_row_store_take(l->store, first, left < piece ? left : piece, mine);
        if (st == STINT_OK)
            st = sti_comm_gather(comm, 0, mine, (size_t)(piece * bytes), all);
        if (st != STINT_OK || !whole)
            continue;
        interleave(all, n, l->ranks, piece, bytes, out);
        st = sti_row_store_put(whole, at, n, out);
    }
    return st;
}

/* The table of all rows, in the memory of a part's: less of it for rows. */
static sti_row_store_desc describe_whole(const sti_learner *l, const char *folder,
                                         const char *identity)
{
    sti_row_store_desc d = l->rows;
    d.folder = folder;
    d.identity = identity;
    d.layout.first = 0;
    d.layout.stride = 1;
    d.layout.rows = l->clicks.rows;
    d.layout.pages = 1 + (d.layout.rows + d.layout.per_page - 1) / d.layout.per_page;
    d.resume = false;
    d.depth = 0;
    d.entries = 0;
    d.policy = STI_CACHE_STATIC;
    d.most = l->batch / l->shards * l->eval_parts *
             (l->clicks.slots > 0 ? l->clicks.slots : 1);
    d.cached = 1;
    return d;
}

/* What was a part's becomes the whole table, for reading. */
static stint_status open_whole(sti_learner *l, sti_row_store_desc *d)
{
    const size_t bytes = sti_row_store_bytes(&l->rows) + sti_learner_join_bytes(l);
    sti_row_store_close(l->store);
    l->store = NULL;
    d->read_only = true;
    d->cached = sti_row_store_fit(d, bytes);
    return sti_row_store_open(d, &l->store);
}

size_t sti_learner_join_bytes(const sti_learner *l)
{
    const sti_row_store_desc d = describe_whole(l, NULL, NULL);
    return sti_row_store_bytes(&d) +
           (size_t)((1 + 2 * l->ranks) * piece_of(&d.layout) * d.layout.record_bytes);
}

stint_status sti_learner_join(sti_learner *l, sti_comm *comm, const char *folder)
{
    const int64_t bytes = piece_of(&l->rows.layout) * l->rows.layout.record_bytes;
    sti_row_store *whole = NULL;
    char identity[160], *mine = NULL, *all = NULL;
    stint_status st = STINT_OK;
    sti_comm_set_context(comm, "the table that is put together", 0);
    sti_learner_identity(&l->clicks, l->embedding.optimizer, identity);
    sti_row_store_desc d = describe_whole(l, folder, identity);
    sti_row_share_fini(&l->share); /* its memory is what this takes */
    mine = sti_alloc((size_t)bytes, "join");
    if (l->rank == 0)
        all = sti_alloc((size_t)(2 * l->ranks * bytes), "join");
    if (!mine || (l->rank == 0 && !all))
        st = STINT_E_MEMORY;
    if (st == STINT_OK && l->rank == 0)
        st = sti_row_store_open(&d, &whole);
    st = sti_comm_agree(comm, st);
    if (st == STINT_OK)
        st = move_rows(l, comm, whole, mine, all);
    sti_row_store_close(whole);
    sti_free(mine);
    sti_free(all);
    if (st == STINT_OK && l->rank == 0)
        st = open_whole(l, &d);
    return st;
}
