#include "recommend/row_share.h"

#include <string.h>

#include "base/memory.h"
#include "net/tree_sum.h"

void sti_row_share_samples(int64_t shards, int64_t batch, int ranks, int rank,
                           int64_t *first_out, int64_t *count_out)
{
    const sti_shard_range own = sti_tree_sum_shards(shards, ranks, rank);
    *first_out = own.first * (batch / shards);
    *count_out = own.count * (batch / shards);
}

/* ---- memory ---- */

static int64_t slots_of(const sti_feed_desc *d)
{
    return d->clicks->slots > 0 ? d->clicks->slots : 1;
}

/* Ids of a rank's samples, where it has the most. */
static int64_t most_own(const sti_feed_desc *d, int64_t shards, int ranks)
{
    const int64_t most = (shards + ranks - 1) / ranks * (d->batch / shards);
    return most * slots_of(d);
}

size_t sti_row_share_bytes(const sti_feed_desc *d, int64_t shards, int64_t width,
                           int ranks)
{
    const size_t ids = (size_t)sti_feed_most(d);
    const size_t own = (size_t)most_own(d, shards, ranks);
    return (size_t)d->rings * (size_t)sti_row_batch_bytes((int64_t)own) +
           (own + ids) * (size_t)width * sizeof(float) + own * sizeof(float *) +
           3 * ids * sizeof(uint32_t) + (size_t)ranks * 32;
}

static stint_status make_rings(sti_row_share *s, int64_t own)
{
    const int rings = s->desc.feed->desc.rings;
    stint_status st = STINT_OK;
    s->need = sti_alloc_array(rings, sizeof *s->need, "share");
    if (!s->need)
        return STINT_E_MEMORY;
    for (int i = 0; i < rings && st == STINT_OK; i++)
        st = sti_row_batch_init(&s->need[i], own);
    return st;
}

stint_status sti_row_share_init(sti_row_share *s, const sti_row_share_desc *desc)
{
    const sti_feed_desc *d = &desc->feed->desc;
    const int ranks = sti_comm_size(desc->comm);
    const int64_t ids = sti_feed_most(d), own = most_own(d, desc->shards, ranks);
    const size_t row_bytes = (size_t)desc->width * sizeof(float);
    *s = (sti_row_share){
        .desc = *desc, .rank = sti_comm_rank(desc->comm), .ranks = ranks};
    sti_row_share_samples(desc->shards, d->batch, ranks, s->rank, &s->first, &s->count);
    s->bound = sti_alloc_array(ranks + 1, sizeof *s->bound, "share");
    s->id = sti_alloc_array(ids, sizeof *s->id, "share");
    s->vector = sti_alloc_array(ids, sizeof *s->vector, "share");
    s->index = sti_alloc_array(ids, sizeof *s->index, "share");
    s->row = sti_alloc_array(own, sizeof *s->row, "share");
    s->near = sti_alloc_array(own, row_bytes, "share");
    s->far = sti_alloc_array(ids, row_bytes, "share");
    s->send = sti_alloc_array(ranks, sizeof *s->send, "share");
    s->receive = sti_alloc_array(ranks, sizeof *s->receive, "share");
    s->at = sti_alloc_array(ranks, sizeof *s->at, "share");
    if (!s->bound || !s->id || !s->vector || !s->index || !s->row || !s->near ||
        !s->far || !s->send || !s->receive || !s->at)
        return STINT_E_MEMORY;
    for (int r = 0; r <= ranks; r++) {
        int64_t first = d->batch, count;
        if (r < ranks)
            sti_row_share_samples(desc->shards, d->batch, ranks, r, &first, &count);
        s->bound[r] = (uint32_t)(first * d->clicks->fields);
    }
    return make_rings(s, own);
}

void sti_row_share_fini(sti_row_share *s)
{
    for (int i = 0; s->need && i < s->desc.feed->desc.rings; i++)
        sti_row_batch_fini(&s->need[i]);
    sti_free(s->need);
    sti_free(s->bound);
    sti_free(s->id);
    sti_free(s->vector);
    sti_free(s->index);
    sti_free(s->row);
    sti_free(s->near);
    sti_free(s->far);
    sti_free(s->send);
    sti_free(s->receive);
    sti_free(s->at);
    *s = (sti_row_share){.ranks = 0};
}

/* ---- ids ---- */

stint_status sti_row_share_load(void *user, int64_t batch, int ring, uint32_t *rank,
                                uint32_t *vector, int64_t *ids_out)
{
    sti_row_share *s = user;
    sti_feed_slot *slot = &s->desc.feed->slot[ring];
    int64_t ids = 0, owned = 0;
    const stint_status st =
        sti_feed_load(s->desc.feed, batch, ring, s->id, s->vector, &ids);
    if (st != STINT_OK)
        return st;
    for (int64_t i = 0; i < ids; i++) {
        if (s->id[i] % (uint32_t)s->ranks != (uint32_t)s->rank)
            continue;
        rank[owned] = s->id[i] / (uint32_t)s->ranks;
        vector[owned++] = s->vector[i];
    }
    *ids_out = owned;
    const uint32_t from = slot->id_from[s->first],
                   end = slot->id_from[s->first + s->count];
    sti_row_batch_build(&s->need[ring], s->id + from, s->vector + from, end - from);
    for (int64_t i = s->first; i < s->first + s->count; i++)
        slot->id_from[i] -= from; /* an id's place among those of own samples */
    return STINT_OK;
}

/* ---- to and fro ---- */

/* Counts of vectors in `at` become bytes for each rank, and where each rank's begin. */
static void lay_out(const sti_row_share *s, size_t *bytes)
{
    int64_t sum = 0;
    for (int r = 0; r < s->ranks; r++) {
        const int64_t here = s->at[r];
        bytes[r] = (size_t)(here * s->desc.width) * sizeof(float);
        s->at[r] = sum;
        sum += here;
    }
}

static void copy_vector(const sti_row_share *s, float *block, int64_t at,
                        const float *from)
{
    memcpy(block + at * s->desc.width, from, (size_t)s->desc.width * sizeof *from);
}

/* The rank whose sample has this vector; q: of one before it in the batch. */
static int rank_of(const sti_row_share *s, uint32_t vector, int q)
{
    while (vector >= s->bound[q + 1])
        q++;
    return q;
}

/* Once for each rank that needs a row: into at alone, or with the row's weights. */
static void hand_out(sti_row_share *s, const sti_row_batch *owned, float *const *record)
{
    for (int64_t u = 0; u < owned->count; u++) {
        int q = 0, last = -1;
        for (uint32_t k = owned->start[u]; k < owned->start[u + 1]; k++) {
            q = rank_of(s, owned->vector[k], q);
            if (q == last)
                continue;
            if (record)
                copy_vector(s, s->far, s->at[q], record[u]);
            s->at[q]++;
            last = q;
        }
    }
}

static void clear(const sti_row_share *s)
{
    memset(s->at, 0, (size_t)s->ranks * sizeof *s->at);
}

stint_status sti_row_share_rows(sti_row_share *s, int ring, const sti_row_batch *owned,
                                float *const *record)
{
    const sti_row_batch *need = &s->need[ring];
    clear(s);
    hand_out(s, owned, NULL);
    lay_out(s, s->send);
    hand_out(s, owned, record);
    clear(s);
    for (int64_t u = 0; u < need->count; u++)
        s->at[need->rank[u] % (uint32_t)s->ranks]++;
    lay_out(s, s->receive);
    for (int64_t u = 0; u < need->count; u++)
        s->row[u] =
            s->near + s->at[need->rank[u] % (uint32_t)s->ranks]++ * s->desc.width;
    return sti_comm_all_to_all(s->desc.comm, s->far, s->send, s->near, s->receive);
}

/* Gradients of own samples, by owner; a rank's in the order of its rows, those of a row
 * in the order of the batch. */
static void pack_gradients(sti_row_share *s, const sti_row_batch *need,
                           const float *gradient)
{
    clear(s);
    for (int64_t u = 0; u < need->count; u++)
        s->at[need->rank[u] % (uint32_t)s->ranks] +=
            need->start[u + 1] - need->start[u];
    lay_out(s, s->send);
    for (int64_t u = 0; u < need->count; u++) {
        int64_t *at = &s->at[need->rank[u] % (uint32_t)s->ranks];
        for (uint32_t k = need->start[u]; k < need->start[u + 1]; k++)
            copy_vector(s, s->near, (*at)++,
                        gradient + (int64_t)(need->vector[k] - s->bound[s->rank]) *
                                       s->desc.width);
    }
}

/* Counts the owned ids by the rank whose gradient is to come, or gives them places. */
static void expect_gradients(sti_row_share *s, const sti_row_batch *owned, bool place)
{
    for (int64_t u = 0; u < owned->count; u++) {
        int q = 0;
        for (uint32_t k = owned->start[u]; k < owned->start[u + 1]; k++) {
            q = rank_of(s, owned->vector[k], q);
            if (place)
                s->index[k] = (uint32_t)s->at[q];
            s->at[q]++;
        }
    }
}

stint_status sti_row_share_gradients(sti_row_share *s, int ring,
                                     const sti_row_batch *owned, const float *gradient)
{
    pack_gradients(s, &s->need[ring], gradient);
    clear(s);
    expect_gradients(s, owned, false);
    lay_out(s, s->receive);
    expect_gradients(s, owned, true);
    return sti_comm_all_to_all(s->desc.comm, s->near, s->send, s->far, s->receive);
}
