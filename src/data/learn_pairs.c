/* Pairs of neighbours: how often, where, and which is the most frequent. */
#include <string.h>

#include "base/fail.h"
#include "base/memory.h"
#include "data/learn.h"

#define SLACK 65536 /* pairs and positions that are not worth a collection */

stint_status sti_learn_room(void **array, int64_t wanted, int64_t *capacity,
                            size_t each_bytes)
{
    if (wanted <= *capacity)
        return STINT_OK;
    int64_t more = *capacity ? 2 * *capacity : 1024;
    if (more < wanted)
        more = wanted;
    size_t bytes;
    void *larger = sti_mul_bytes(more, each_bytes, &bytes)
                       ? sti_realloc(*array, bytes, "byte pairs")
                       : NULL;
    if (!larger)
        return STINT_E_MEMORY;
    *array = larger;
    *capacity = more;
    return STINT_OK;
}

void sti_learn_pairs_fini(sti_learn_pairs *p)
{
    sti_free(p->pair);
    sti_free(p->index);
    sti_free(p->position);
    sti_free(p->heap);
    *p = (sti_learn_pairs){0};
}

size_t sti_learn_pairs_bytes(const sti_learn_pairs *p)
{
    return (size_t)p->count * sizeof *p->pair + (size_t)p->slots * sizeof *p->index +
           (size_t)p->used * sizeof *p->position + (size_t)p->heaped * sizeof *p->heap;
}

/* ---- the heap ---- */

static bool comes_before(const sti_learn_pairs *p, struct sti_learn_entry a,
                         struct sti_learn_entry b)
{
    const sti_learn_pair *x = &p->pair[a.pair], *y = &p->pair[b.pair];
    if (a.times != b.times)
        return a.times > b.times;
    return x->left != y->left ? x->left < y->left : x->right < y->right;
}

/* There is room: a pair is in the heap once. */
static void heap_push(sti_learn_pairs *p, struct sti_learn_entry e)
{
    int64_t i = p->heaped++;
    for (; i > 0 && comes_before(p, e, p->heap[(i - 1) / 2]); i = (i - 1) / 2)
        p->heap[i] = p->heap[(i - 1) / 2];
    p->heap[i] = e;
}

static void heap_sink(sti_learn_pairs *p, int64_t i, struct sti_learn_entry e)
{
    for (int64_t child; (child = 2 * i + 1) < p->heaped; i = child) {
        if (child + 1 < p->heaped &&
            comes_before(p, p->heap[child + 1], p->heap[child]))
            child++;
        if (!comes_before(p, p->heap[child], e))
            break;
        p->heap[i] = p->heap[child];
    }
    p->heap[i] = e;
}

/* The entry on top is brought up to date, or leaves with its pair, until it is right.
 */
int32_t sti_learn_pairs_best(sti_learn_pairs *p)
{
    while (p->heaped > 0) {
        struct sti_learn_entry top = p->heap[0];
        const int64_t times = p->pair[top.pair].times;
        const bool right = top.times == times;
        top.times = times;
        if (right || times < STI_LEARN_FEWEST) {
            const int32_t best = p->heap[0].pair;
            p->heaped--;
            if (p->heaped > 0)
                heap_sink(p, 0, p->heap[p->heaped]);
            if (right)
                return best;
        } else {
            heap_sink(p, 0, top);
        }
    }
    return -1;
}

/* ---- records ---- */

static int64_t slot_of(const sti_learn_pairs *p, int32_t left, int32_t right)
{
    uint64_t h = (uint64_t)(uint32_t)left << 32 | (uint32_t)right;
    h = (h ^ h >> 31) * UINT64_C(0x9e3779b97f4a7c15);
    int64_t slot = (int64_t)((h ^ h >> 29) & (uint64_t)(p->slots - 1));
    for (; p->index[slot] != 0; slot = (slot + 1) & (p->slots - 1)) {
        const sti_learn_pair *pair = &p->pair[p->index[slot] - 1];
        if (pair->left == left && pair->right == right)
            break;
    }
    return slot;
}

/* All records into an index with room for one more. */
static stint_status rebuild_index(sti_learn_pairs *p)
{
    sti_free(p->index);
    for (p->slots = 4096; 2 * p->slots < 3 * (p->count + 1);)
        p->slots *= 2;
    p->index = sti_alloc_array(p->slots, sizeof *p->index, "byte pairs");
    if (!p->index)
        return STINT_E_MEMORY;
    for (int64_t i = 0; i < p->count; i++)
        p->index[slot_of(p, p->pair[i].left, p->pair[i].right)] = (int32_t)i + 1;
    return STINT_OK;
}

stint_status sti_learn_pairs_add(sti_learn_pairs *p, int32_t left, int32_t right,
                                 int64_t times, int64_t count, int32_t *pair_out)
{
    stint_status st = STINT_OK;
    if (2 * p->slots < 3 * (p->count + 1))
        STI_TRY(rebuild_index(p));
    STI_TRY(
        sti_learn_room((void **)&p->pair, p->count + 1, &p->capacity, sizeof *p->pair));
    STI_TRY(sti_learn_room((void **)&p->heap, p->heaped + 1, &p->heap_capacity,
                           sizeof *p->heap));
    STI_TRY(sti_learn_room((void **)&p->position, p->used + count,
                           &p->position_capacity, sizeof *p->position));
    const int32_t at = (int32_t)p->count++;
    p->pair[at] = (sti_learn_pair){.left = left,
                                   .right = right,
                                   .times = times,
                                   .first = (uint32_t)p->used,
                                   .count = (uint32_t)count};
    p->index[slot_of(p, left, right)] = at + 1;
    p->used += count;
    heap_push(p, (struct sti_learn_entry){.times = times, .pair = at});
    *pair_out = at;
out:
    return st;
}

void sti_learn_pairs_take(sti_learn_pairs *p, int32_t left, int32_t right,
                          int64_t times)
{
    if (p->slots == 0)
        return;
    const int32_t at = p->index[slot_of(p, left, right)];
    if (at != 0)
        p->pair[at - 1].times -= times;
}

/* ---- collection ---- */

/* Positions where the pair still stands, moved down to `to`. */
static uint32_t keep_positions(sti_learn_pairs *p, const sti_learn_words *words,
                               const sti_learn_pair *pair, int64_t to)
{
    uint32_t kept = 0;
    for (uint32_t i = 0; i < pair->count; i++) {
        const uint32_t at = p->position[(int64_t)pair->first + i];
        if (sti_slot_pair(words, at, pair->left, pair->right) >= 0)
            p->position[to + kept++] = at;
    }
    return kept;
}

static void keep_pairs(sti_learn_pairs *p, const sti_learn_words *words)
{
    int64_t pairs = 0, positions = 0;
    for (int64_t i = 0; i < p->count; i++) {
        sti_learn_pair pair = p->pair[i];
        if (pair.times < STI_LEARN_FEWEST)
            continue;
        pair.count = keep_positions(p, words, &pair, positions);
        pair.first = (uint32_t)positions;
        positions += pair.count;
        p->pair[pairs++] = pair;
    }
    p->count = p->kept_pairs = pairs;
    p->used = p->kept_positions = positions;
}

stint_status sti_learn_pairs_collect(sti_learn_pairs *p, const sti_learn_words *words)
{
    if (p->count < p->kept_pairs + p->kept_pairs / 2 + SLACK &&
        p->used < p->kept_positions + p->kept_positions / 2 + SLACK)
        return STINT_OK;
    keep_pairs(p, words);
    const stint_status st = rebuild_index(p);
    if (st != STINT_OK)
        return st;
    p->heaped = 0; /* as many records as ever were in it at once, or fewer */
    for (int64_t i = 0; i < p->count; i++)
        p->heap[p->heaped++] =
            (struct sti_learn_entry){.times = p->pair[i].times, .pair = (int32_t)i};
    for (int64_t i = p->heaped / 2 - 1; i >= 0; i--)
        heap_sink(p, i, p->heap[i]);
    return STINT_OK;
}
