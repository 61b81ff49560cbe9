#include "embed/cache_index.h"

#include <assert.h>

#include "base/memory.h"

const char *sti_cache_policy_name(sti_cache_policy policy)
{
    static const char *const names[] = {"future", "static", "lfu", "lru"};
    return names[policy];
}

/* rank, use, heap, at, pins, dirty, time, and up to 4 table entries. */
size_t sti_cache_index_slot_bytes(void)
{
    return 4 + 4 + 4 + 4 + 1 + 1 + 8 + 4 * 3;
}

stint_status sti_cache_index_init(sti_cache_index *c, sti_cache_policy policy,
                                  int64_t rows, int64_t hot, int64_t slots)
{
    uint64_t size = 16;
    *c = (sti_cache_index){.policy = policy, .rows = rows, .hot = hot, .slots = slots};
    while (size < (uint64_t)slots + (uint64_t)slots / 2)
        size *= 2;
    c->table_mask = (uint32_t)(size - 1);
    c->rank = sti_alloc_array(slots + 1, sizeof *c->rank, "embed.index");
    c->use = sti_alloc_array(slots + 1, sizeof *c->use, "embed.index");
    c->time = sti_alloc_array(slots + 1, sizeof *c->time, "embed.index");
    c->heap = sti_alloc_array(slots + 1, sizeof *c->heap, "embed.index");
    c->at = sti_alloc_array(slots + 1, sizeof *c->at, "embed.index");
    c->pins = sti_alloc((size_t)slots + 1, "embed.index");
    c->dirty = sti_alloc((size_t)slots + 1, "embed.index");
    c->table = sti_alloc_array((int64_t)size, sizeof *c->table, "embed.index");
    return c->rank && c->use && c->time && c->heap && c->at && c->pins && c->dirty &&
                   c->table
               ? STINT_OK
               : STINT_E_MEMORY;
}

void sti_cache_index_fini(sti_cache_index *c)
{
    sti_free(c->rank);
    sti_free(c->use);
    sti_free(c->time);
    sti_free(c->heap);
    sti_free(c->at);
    sti_free(c->pins);
    sti_free(c->dirty);
    sti_free(c->table);
    *c = (sti_cache_index){.rows = 0};
}

/* ---- the hash ---- */

static uint32_t home(const sti_cache_index *c, uint32_t rank)
{
    return (uint32_t)(rank * 0x9e3779b97f4a7c15u >> 32) & c->table_mask;
}

uint32_t sti_cache_index_find(const sti_cache_index *c, uint32_t rank)
{
    if (rank < c->hot)
        return rank;
    for (uint32_t i = home(c, rank); c->table[i]; i = (i + 1) & c->table_mask)
        if (c->rank[c->table[i] - 1] == rank)
            return (uint32_t)c->hot + c->table[i] - 1;
    return STI_CACHE_NONE;
}

static void enter(sti_cache_index *c, uint32_t rank, uint32_t s)
{
    uint32_t i = home(c, rank);
    while (c->table[i])
        i = (i + 1) & c->table_mask;
    c->table[i] = s + 1;
    c->rank[s] = rank;
}

/* Take one out, and move back what had to step aside for it. */
static void leave(sti_cache_index *c, uint32_t rank)
{
    uint32_t i = home(c, rank);
    while (c->rank[c->table[i] - 1] != rank)
        i = (i + 1) & c->table_mask;
    for (uint32_t j = (i + 1) & c->table_mask; c->table[j];
         j = (j + 1) & c->table_mask) {
        const uint32_t from = home(c, c->rank[c->table[j] - 1]);
        if (((j - from) & c->table_mask) >= ((j - i) & c->table_mask)) {
            c->table[i] = c->table[j];
            i = j;
        }
    }
    c->table[i] = 0;
}

/* ---- the heap of victims ---- */

/* The larger goes first. */
static uint64_t key_of(const sti_cache_index *c, uint32_t s)
{
    switch (c->policy) {
    case STI_CACHE_FUTURE:
        return c->use[s] == STI_CACHE_NEVER
                   ? (uint64_t)1 << 63 | c->rank[s]
                   : (uint64_t)c->use[s] << 30 | c->rank[s] >> 2;
    case STI_CACHE_STATIC:
        return c->rank[s];
    case STI_CACHE_LFU:
        return (uint64_t)(UINT16_MAX -
                          (c->use[s] < UINT16_MAX ? c->use[s] : UINT16_MAX))
                   << 48 |
               (((uint64_t)1 << 48) - 1 - c->time[s]);
    case STI_CACHE_LRU:
        break;
    }
    return UINT64_MAX - c->time[s];
}

static void put(sti_cache_index *c, int64_t i, uint32_t s)
{
    c->heap[i] = s;
    c->at[s] = (uint32_t)i;
}

static void up(sti_cache_index *c, int64_t i, uint32_t s)
{
    const uint64_t key = key_of(c, s);
    while (i > 0 && key_of(c, c->heap[(i - 1) / 2]) < key) {
        put(c, i, c->heap[(i - 1) / 2]);
        i = (i - 1) / 2;
    }
    put(c, i, s);
}

static void down(sti_cache_index *c, int64_t i, uint32_t s)
{
    const uint64_t key = key_of(c, s);
    for (int64_t child; (child = 2 * i + 1) < c->heap_count; i = child) {
        if (child + 1 < c->heap_count &&
            key_of(c, c->heap[child + 1]) > key_of(c, c->heap[child]))
            child++;
        if (key_of(c, c->heap[child]) <= key)
            break;
        put(c, i, c->heap[child]);
    }
    put(c, i, s);
}

static void settle(sti_cache_index *c, int64_t i, uint32_t s)
{
    up(c, i, s);
    down(c, c->at[s], s);
}

static void heap_add(sti_cache_index *c, uint32_t s)
{
    up(c, c->heap_count++, s);
}

static void heap_remove(sti_cache_index *c, uint32_t s)
{
    const int64_t i = c->at[s];
    const uint32_t last = c->heap[--c->heap_count];
    c->at[s] = STI_CACHE_NONE;
    if (last != s)
        settle(c, i, last);
}

/* ---- uses ---- */

int64_t sti_cache_index_warm(sti_cache_index *c)
{
    int64_t count = 0;
    for (int64_t r = c->hot; r < c->rows && c->filled < c->slots; r++, count++) {
        const uint32_t s = (uint32_t)c->filled++;
        c->use[s] = c->policy == STI_CACHE_FUTURE ? STI_CACHE_NEVER : 0;
        enter(c, (uint32_t)r, s);
        /* The order of the slots: with no use yet the first is the youngest. */
        c->time[s] = 0;
        heap_add(c, s);
    }
    return count;
}

void sti_cache_index_pin(sti_cache_index *c, uint32_t slot)
{
    if (slot < c->hot)
        return;
    const uint32_t s = slot - (uint32_t)c->hot;
    assert(c->pins[s] < UINT8_MAX);
    if (c->pins[s]++ == 0)
        heap_remove(c, s);
}

uint32_t sti_cache_index_take(sti_cache_index *c, uint32_t rank, uint32_t *victim_out)
{
    uint32_t s;
    *victim_out = STI_CACHE_NONE;
    if (c->filled < c->slots) {
        s = (uint32_t)c->filled++;
    } else {
        if (c->heap_count == 0)
            return STI_CACHE_NONE;
        s = c->heap[0];
        *victim_out = c->rank[s];
        heap_remove(c, s);
        leave(c, c->rank[s]);
    }
    enter(c, rank, s);
    c->use[s] = c->policy == STI_CACHE_FUTURE ? STI_CACHE_NEVER : 0;
    c->time[s] = ++c->clock;
    c->pins[s] = 1;
    c->at[s] = STI_CACHE_NONE;
    return (uint32_t)c->hot + s;
}

void sti_cache_index_release(sti_cache_index *c, uint32_t slot, uint32_t next)
{
    if (slot < c->hot)
        return;
    const uint32_t s = slot - (uint32_t)c->hot;
    if (c->policy == STI_CACHE_FUTURE)
        c->use[s] = next;
    else if (c->use[s] < UINT32_MAX)
        c->use[s]++;
    if (c->policy == STI_CACHE_LRU)
        c->time[s] = ++c->clock;
    if (--c->pins[s] == 0)
        heap_add(c, s);
}

void sti_cache_index_forget(sti_cache_index *c)
{
    for (int64_t s = 0; s < c->filled; s++)
        c->use[s] = STI_CACHE_NEVER;
    for (int64_t i = c->heap_count - 1; i >= 0; i--)
        down(c, i, c->heap[i]);
}

void sti_cache_index_expect(sti_cache_index *c, uint32_t rank, uint32_t next)
{
    const uint32_t slot =
        c->policy == STI_CACHE_FUTURE ? sti_cache_index_find(c, rank) : STI_CACHE_NONE;
    if (slot == STI_CACHE_NONE || slot < c->hot)
        return;
    const uint32_t s = slot - (uint32_t)c->hot;
    if (c->use[s] != STI_CACHE_NEVER)
        return;
    c->use[s] = next;
    if (c->pins[s] == 0)
        settle(c, c->at[s], s);
}
