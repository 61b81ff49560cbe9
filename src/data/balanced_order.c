#include "data/balanced_order.h"

#include <assert.h>
#include <string.h>

#include "base/memory.h"
#include "base/rng.h"

struct sti_balanced_order {
    int64_t count;
    int32_t classes;
    int64_t *first;  /* [classes + 1]: where a class begins in `sample` */
    int32_t *sample; /* [count], by class */
    int32_t *turn;   /* [count]: the samples of an epoch before it is shuffled */
    int32_t *within; /* [count]: an order of one class */
};

size_t sti_balanced_order_bytes(int64_t count, int32_t classes)
{
    return sizeof(sti_balanced_order) + ((size_t)classes + 1) * sizeof(int64_t) +
           3 * (size_t)count * sizeof(int32_t);
}

static void sort_by_class(const stint_data *data, sti_balanced_order *o)
{
    sti_data_count_classes(data, o->first + 1);
    o->first[0] = 0;
    for (int32_t c = 0; c < o->classes; c++)
        o->first[c + 1] += o->first[c];
    /* first[c] runs ahead to the end of its class, where the next one begins. */
    for (int64_t i = 0; i < o->count; i++)
        o->sample[o->first[sti_data_label(data, i)]++] = (int32_t)i;
    memmove(o->first + 1, o->first, (size_t)o->classes * sizeof *o->first);
    o->first[0] = 0;
}

stint_status sti_balanced_order_create(const stint_data *data,
                                       sti_balanced_order **order_out)
{
    const stint_data_info *info = stint_data_describe(data);
    sti_balanced_order *o = sti_alloc(sizeof *o, "order by class");
    if (!o)
        return STINT_E_MEMORY;
    *o = (sti_balanced_order){.count = info->count, .classes = info->classes};
    o->first =
        sti_alloc_array((int64_t)o->classes + 1, sizeof *o->first, "order by class");
    o->sample = sti_alloc_array(o->count, sizeof *o->sample, "order by class");
    o->turn = sti_alloc_array(o->count, sizeof *o->turn, "order by class");
    o->within = sti_alloc_array(o->count, sizeof *o->within, "order by class");
    if (!o->first || !o->sample || !o->turn || !o->within) {
        sti_balanced_order_destroy(o);
        return STINT_E_MEMORY;
    }
    sort_by_class(data, o);
    *order_out = o;
    return STINT_OK;
}

void sti_balanced_order_destroy(sti_balanced_order *o)
{
    if (!o)
        return;
    sti_free(o->first);
    sti_free(o->sample);
    sti_free(o->turn);
    sti_free(o->within);
    sti_free(o);
}

/* The places of one class among those from `begin` on, count of them. */
static void draw_class(sti_balanced_order *o, uint64_t seed, int64_t begin, int32_t c)
{
    const int64_t k = o->classes, n = o->first[c + 1] - o->first[c];
    const int32_t *sample = o->sample + o->first[c];
    int64_t drawn = -1; /* the time round that `within` is of */
    assert(n > 0);
    for (int64_t s = begin + (c - begin % k + k) % k; s < begin + o->count; s += k) {
        const int64_t t = s / k, round = t / n;
        if (round != drawn)
            sti_shuffle(seed, STI_STREAM_BALANCE, (uint64_t)(round * k + c), n,
                        o->within);
        drawn = round;
        o->turn[s - begin] = sample[o->within[t % n]];
    }
}

void sti_balanced_order_draw(sti_balanced_order *o, uint64_t seed, int64_t epoch,
                             int32_t *order_out)
{
    for (int32_t c = 0; c < o->classes; c++)
        draw_class(o, seed, epoch * o->count, c);
    sti_shuffle(seed, STI_STREAM_SHUFFLE, (uint64_t)epoch, o->count, order_out);
    for (int64_t i = 0; i < o->count; i++)
        order_out[i] = o->turn[order_out[i]];
}
