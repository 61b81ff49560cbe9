#include "solve/rank_spread.h"

#include <string.h>

#include "base/fail.h"
#include "base/memory.h"

enum { TAG = 0x3980000 };

/* How often a rank has given its stretch, and taken all others; lines apart. */
typedef struct counters {
    atomic_llong given;
    char apart[128 - sizeof(atomic_llong)];
    atomic_llong taken;
} counters;

static counters *counters_of(const sti_rank_spread *s, int rank)
{
    return sti_window_part(&s->flags, rank);
}

static size_t bytes_of(const sti_rank_spread *s, int rank)
{
    return sizeof(double) * (size_t)(s->first[rank + 1] - s->first[rank]);
}

static bool is_shared(const sti_rank_spread *s, int rank)
{
    return sti_window_is_shared(&s->values, rank) &&
           sti_window_is_shared(&s->flags, rank);
}

stint_status sti_rank_spread_init(sti_comm *comm, const int64_t *first, bool share,
                                  sti_rank_spread *spread_out)
{
    sti_rank_spread *s = spread_out;
    stint_status st;
    *s = (sti_rank_spread){.comm = comm, .first = first};
    s->requests = sti_alloc_array(2 * (int64_t)sti_comm_size(comm), sizeof *s->requests,
                                  "ranks.spread");
    STI_TRY(sti_comm_agree(comm, s->requests ? STINT_OK : STINT_E_MEMORY));
    STI_TRY(
        sti_window_create(comm, bytes_of(s, sti_comm_rank(comm)), share, &s->values));
    st = sti_window_create(comm, sizeof(counters), share, &s->flags);
out:
    if (st != STINT_OK)
        sti_rank_spread_fini(s);
    return st;
}

void sti_rank_spread_fini(sti_rank_spread *spread)
{
    sti_window_destroy(&spread->values);
    sti_window_destroy(&spread->flags);
    sti_free(spread->requests);
    *spread = (sti_rank_spread){0};
}

/* To and from ranks elsewhere, past all windows. */
static void post_messages(sti_rank_spread *s, double *y)
{
    const int own = sti_comm_rank(s->comm);
    for (int r = 0; r < sti_comm_size(s->comm); r++) {
        if (is_shared(s, r))
            continue;
        sti_comm_receive(s->comm, r, TAG, y + s->first[r], bytes_of(s, r),
                         &s->requests[2 * r]);
        sti_comm_send(s->comm, r, TAG, y + s->first[own], bytes_of(s, own),
                      &s->requests[2 * r + 1]);
    }
}

stint_status sti_rank_spread_run(sti_rank_spread *spread, double *y)
{
    sti_rank_spread *s = spread;
    const int own = sti_comm_rank(s->comm), size = sti_comm_size(s->comm);
    stint_status st = STINT_OK;
    s->turns++;
    post_messages(s, y);
    /* Who shares this rank's part has done with what it last held. */
    for (int r = 0; st == STINT_OK && r < size; r++)
        if (r != own && is_shared(s, r))
            st = sti_window_wait(&s->flags, r, &counters_of(s, r)->taken, s->turns - 1);
    if (st != STINT_OK)
        return st;
    memcpy(sti_window_part(&s->values, own), y + s->first[own], bytes_of(s, own));
    atomic_store_explicit(&counters_of(s, own)->given, s->turns, memory_order_release);
    for (int r = 0; st == STINT_OK && r < size; r++) {
        if (r == own || !is_shared(s, r))
            continue;
        st = sti_window_wait(&s->flags, r, &counters_of(s, r)->given, s->turns);
        if (st == STINT_OK)
            memcpy(y + s->first[r], sti_window_part(&s->values, r), bytes_of(s, r));
    }
    atomic_store_explicit(&counters_of(s, own)->taken, s->turns, memory_order_release);
    return st == STINT_OK ? sti_comm_wait_all(s->comm, s->requests, 2 * size) : st;
}

void sti_rank_spread_count(const sti_rank_spread *spread, int64_t *messages_out,
                           int64_t *bytes_out)
{
    const sti_rank_spread *s = spread;
    const int size = sti_comm_size(s->comm);
    *messages_out = *bytes_out = 0;
    for (int r = 0; r < size; r++)
        if (!is_shared(s, r)) {
            *messages_out += 1;
            *bytes_out += (int64_t)bytes_of(s, sti_comm_rank(s->comm));
        }
}
