#include "recommend/feed.h"

#include <string.h>

#include "base/fail.h"
#include "base/memory.h"
#include "base/rng.h"
#include "embed/row_batch.h"

int64_t sti_feed_most(const sti_feed_desc *d)
{
    return d->batch * (d->clicks->slots > 0 ? d->clicks->slots : 1);
}

int64_t sti_feed_batches(const sti_feed_desc *d)
{
    return (d->count + d->batch - 1) / d->batch;
}

size_t sti_feed_bytes(const sti_feed_desc *d)
{
    return (size_t)(d->rings + 1) * (size_t)d->batch * (d->clicks->sample_bytes + 4) +
           8 * (size_t)sti_feed_most(d);
}

stint_status sti_feed_init(sti_feed *feed, const sti_feed_desc *desc)
{
    const size_t bytes = desc->clicks->sample_bytes;
    *feed = (sti_feed){.desc = *desc};
    feed->slot = sti_alloc_array(desc->rings, sizeof *feed->slot, "feed");
    feed->look = sti_alloc_array(desc->batch, bytes, "feed");
    feed->scratch = sti_alloc_array(2 * sti_feed_most(desc), 4, "feed");
    if (!feed->slot || !feed->look || !feed->scratch)
        return STINT_E_MEMORY;
    for (int i = 0; i < desc->rings; i++) {
        feed->slot[i].samples = sti_alloc_array(desc->batch, bytes, "feed");
        feed->slot[i].id_from = sti_alloc_array(desc->batch + 1, 4, "feed");
        if (!feed->slot[i].samples || !feed->slot[i].id_from)
            return STINT_E_MEMORY;
    }
    return STINT_OK;
}

void sti_feed_fini(sti_feed *feed)
{
    for (int i = 0; feed->slot && i < feed->desc.rings; i++) {
        sti_free(feed->slot[i].samples);
        sti_free(feed->slot[i].id_from);
    }
    sti_free(feed->slot);
    sti_free(feed->look);
    sti_free(feed->scratch);
    *feed = (sti_feed){.slot = NULL};
}

static int64_t count_of(const sti_feed_desc *d, int64_t batch)
{
    const int64_t left = d->count - batch * d->batch;
    return d->once && left < d->batch ? left : d->batch;
}

static stint_status read_shuffled(const sti_feed_desc *d, int64_t batch, char *samples)
{
    stint_status st = STINT_OK;
    for (int64_t i = 0; i < d->batch && st == STINT_OK; i++) {
        const int64_t at = batch * d->batch + i;
        const int64_t k =
            sti_permute(d->seed, STI_STREAM_ORDER, (uint64_t)(at / d->count), d->count,
                        at % d->count);
        st = sti_clicks_read(d->clicks, d->first + k, 1,
                             samples + (size_t)i * d->clicks->sample_bytes);
    }
    return st;
}

/* In the order of the file, which begins again at its end. */
static stint_status read_straight(const sti_feed_desc *d, int64_t batch, int64_t count,
                                  char *samples)
{
    stint_status st = STINT_OK;
    for (int64_t i = 0, n; i < count && st == STINT_OK; i += n) {
        const int64_t at = (batch * d->batch + i) % d->count;
        n = d->count - at < count - i ? d->count - at : count - i;
        st = sti_clicks_read(d->clicks, d->first + at, n,
                             samples + (size_t)i * d->clicks->sample_bytes);
    }
    return st;
}

static stint_status read_batch(const sti_feed_desc *d, int64_t batch, int64_t count,
                               char *samples)
{
    return d->shuffle ? read_shuffled(d, batch, samples)
                      : read_straight(d, batch, count, samples);
}

/* The field that each slot of a sample belongs to, one after the other. */
static int field_at(const sti_clicks *c, int field, int slot)
{
    return field + 1 < c->fields && (uint32_t)slot >= c->field[field + 1].first
               ? field + 1
               : field;
}

stint_status sti_feed_load(void *user, int64_t batch, int ring, uint32_t *rank,
                           uint32_t *vector, int64_t *ids_out)
{
    sti_feed *feed = user;
    const sti_clicks *c = feed->desc.clicks;
    sti_feed_slot *slot = &feed->slot[ring];
    int64_t ids = 0;
    slot->count = count_of(&feed->desc, batch);
    const stint_status st = read_batch(&feed->desc, batch, slot->count, slot->samples);
    if (st != STINT_OK)
        return st;
    for (int64_t i = 0; i < slot->count; i++) {
        const uint32_t *own =
            sti_clicks_ranks(c, slot->samples + (size_t)i * c->sample_bytes);
        slot->id_from[i] = (uint32_t)ids;
        for (int k = 0, field = 0; k < c->slots; k++) {
            field = field_at(c, field, k);
            if (own[k] == STI_CLICKS_NO_ROW)
                continue;
            rank[ids] = own[k];
            vector[ids++] = (uint32_t)(i * c->fields + field);
        }
    }
    slot->id_from[slot->count] = (uint32_t)ids;
    *ids_out = ids;
    return STINT_OK;
}

stint_status sti_feed_look(void *user, int64_t batch, uint32_t *rank_out,
                           int64_t *count_out)
{
    sti_feed *feed = user;
    const sti_clicks *c = feed->desc.clicks;
    const int64_t count = count_of(&feed->desc, batch);
    const uint32_t parts = feed->desc.parts > 0 ? feed->desc.parts : 1;
    int64_t ids = 0;
    const stint_status st = read_batch(&feed->desc, batch, count, feed->look);
    if (st != STINT_OK)
        return st;
    for (int64_t i = 0; i < count; i++) {
        const uint32_t *own =
            sti_clicks_ranks(c, feed->look + (size_t)i * c->sample_bytes);
        for (int k = 0; k < c->slots; k++)
            if (own[k] != STI_CLICKS_NO_ROW && own[k] % parts == feed->desc.part)
                rank_out[ids++] = own[k] / parts;
    }
    *count_out = sti_row_batch_unique(rank_out, ids, feed->scratch);
    return STINT_OK;
}
