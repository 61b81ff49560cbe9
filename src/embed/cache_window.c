#include "embed/cache_window.h"

#include "base/memory.h"

size_t sti_cache_window_bytes(int64_t capacity)
{
    size_t size = 16;
    while (size < (size_t)capacity + (size_t)capacity / 2)
        size *= 2;
    return 8 * (size_t)capacity + 4 * size;
}

stint_status sti_cache_window_init(sti_cache_window *w, int64_t lookahead,
                                   int64_t capacity, int64_t first)
{
    *w = (sti_cache_window){
        .lookahead = lookahead, .capacity = capacity, .first = first, .end = first};
    uint64_t size = 16;
    while (size < (uint64_t)capacity + (uint64_t)capacity / 2)
        size *= 2;
    w->table_mask = (uint32_t)(size - 1);
    w->rank = sti_alloc_array(capacity + 1, sizeof *w->rank, "embed.window");
    w->next = sti_alloc_array(capacity + 1, sizeof *w->next, "embed.window");
    w->start = sti_alloc_array(lookahead + 2, sizeof *w->start, "embed.window");
    w->table = sti_alloc_array((int64_t)size, sizeof *w->table, "embed.window");
    return w->rank && w->next && w->start && w->table ? STINT_OK : STINT_E_MEMORY;
}

void sti_cache_window_fini(sti_cache_window *w)
{
    sti_free(w->rank);
    sti_free(w->next);
    sti_free(w->start);
    sti_free(w->table);
    *w = (sti_cache_window){.lookahead = 0};
}

bool sti_cache_window_has_room(const sti_cache_window *w, int64_t most)
{
    return w->end - w->first <= w->lookahead && w->tail - w->head + most <= w->capacity;
}

static uint32_t home(const sti_cache_window *w, uint32_t rank)
{
    return (uint32_t)(rank * 0x9e3779b97f4a7c15u >> 32) & w->table_mask;
}

/* Where a rank's last entry is named, or would be. */
static uint32_t find(const sti_cache_window *w, uint32_t rank)
{
    uint32_t i = home(w, rank);
    while (w->table[i] && w->rank[w->table[i] - 1] != rank)
        i = (i + 1) & w->table_mask;
    return i;
}

static void leave(sti_cache_window *w, uint32_t i)
{
    for (uint32_t j = (i + 1) & w->table_mask; w->table[j];
         j = (j + 1) & w->table_mask) {
        const uint32_t from = home(w, w->rank[w->table[j] - 1]);
        if (((j - from) & w->table_mask) >= ((j - i) & w->table_mask)) {
            w->table[i] = w->table[j];
            i = j;
        }
    }
    w->table[i] = 0;
}

static int64_t *start_of(const sti_cache_window *w, int64_t batch)
{
    return &w->start[batch % (w->lookahead + 2)];
}

void sti_cache_window_add(sti_cache_window *w, sti_cache_index *index,
                          const uint32_t *rank, int64_t count)
{
    const uint32_t batch = (uint32_t)w->end;
    *start_of(w, w->end++) = w->tail;
    for (int64_t k = 0; k < count; k++) {
        const uint32_t i = find(w, rank[k]);
        const int64_t e = w->tail++ % w->capacity;
        if (w->table[i])
            w->next[w->table[i] - 1] = batch;
        w->rank[e] = rank[k];
        w->next[e] = STI_CACHE_NEVER;
        w->table[i] = (uint32_t)e + 1;
        sti_cache_index_expect(index, rank[k], batch);
    }
}

uint32_t sti_cache_window_next(const sti_cache_window *w, int64_t batch, int64_t i)
{
    return w->next[(*start_of(w, batch) + i) % w->capacity];
}

void sti_cache_window_drop(sti_cache_window *w)
{
    const int64_t batch = w->first++;
    const int64_t stop = w->first < w->end ? *start_of(w, w->first) : w->tail;
    for (int64_t k = *start_of(w, batch); k < stop; k++) {
        const int64_t e = k % w->capacity;
        const uint32_t i = find(w, w->rank[e]);
        if (w->table[i] == (uint32_t)e + 1)
            leave(w, i);
    }
    w->head = stop;
}
