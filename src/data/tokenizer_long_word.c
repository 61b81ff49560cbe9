/* Byte pairs in a long word: a line of ten million letters is a word too.
 *
 * Ranks are gone through in ascending order, each with the list of the places where its
 * pair stands, so that a word is read from left to right again and again and not all
 * over. What a merge makes is put at the end of the list of its rank; a list that was
 * made by several merges is sorted when its turn comes. Where a merge makes a pair
 * whose rank has had its turn (a token that two pairs make: AC A and A CA), that one
 * waits in a heap and goes before the rest of the list. So the order is the one of a
 * heap of everything, which is what words take for which a list a rank is too much. */
#include "base/fail.h"
#include "base/stop.h"
#include "data/tokenizer.h"

enum { LOOK_EVERY = 1 << 16, HEAP_LEAST = 1024, SORT_LEVELS = 32 };

/* A possible merge of what stands at `at` with its successor; stale when the pair of
 * the rank no longer stands there. */
typedef struct candidate {
    int32_t rank, at;
} candidate;

/* The same in the list of a rank. */
typedef struct entry {
    int32_t at, next; /* -1: the last one */
} entry;

/* A word as it merges, in the slots of its bytes: what has merged is a token at its
 * first slot, and of the slots that it covers the second and the last hold its length,
 * negated. */
typedef struct long_word {
    const stint_tokenizer *t;
    int32_t *slot;
    int32_t count;
    int32_t rank;            /* whose turn it is; no list is used with the greatest */
    int32_t *first, *last;   /* [merges]: list of each rank, -1: none */
    bool *mixed;             /* [merges]: the list does not ascend */
    entry *entry;            /* [2 count]: a merge takes one out and puts two in */
    int32_t entries, unused; /* used so far; those given back, -1: none */
    candidate *heap;
    int64_t heaped, heap_capacity;
    int64_t looked;
    bool failed; /* no memory */
} long_word;

/* A long text takes long; whoever was asked to stop stops. */
stint_status sti_bpe_look(void)
{
    const stint_status stop = sti_stop_asked();
    return stop == STINT_OK ? STINT_OK : sti_fail(stop, "stopped while encoding text");
}

/* The slot after a token; `count` after the last. */
static int32_t next_of(const long_word *w, int32_t at)
{
    return at + 1 < w->count && w->slot[at + 1] < 0 ? at - w->slot[at + 1] : at + 1;
}

/* ---- the heap ---- */

static bool comes_before(const candidate *a, const candidate *b)
{
    return a->rank != b->rank ? a->rank < b->rank : a->at < b->at;
}

static bool heap_room(long_word *w, int64_t capacity)
{
    candidate *larger =
        sti_realloc(w->heap, (size_t)capacity * sizeof *larger, "long word");
    if (!larger)
        return false;
    w->heap = larger;
    w->heap_capacity = capacity;
    return true;
}

static void heap_push(long_word *w, candidate c)
{
    if (w->heaped == w->heap_capacity && !heap_room(w, 2 * w->heap_capacity)) {
        w->failed = true;
        return;
    }
    int64_t i = w->heaped++;
    for (; i > 0 && comes_before(&c, &w->heap[(i - 1) / 2]); i = (i - 1) / 2)
        w->heap[i] = w->heap[(i - 1) / 2];
    w->heap[i] = c;
}

static candidate heap_pop(long_word *w)
{
    const candidate top = w->heap[0], last = w->heap[--w->heaped];
    int64_t i = 0;
    for (int64_t child; (child = 2 * i + 1) < w->heaped; i = child) {
        if (child + 1 < w->heaped && comes_before(&w->heap[child + 1], &w->heap[child]))
            child++;
        if (!comes_before(&w->heap[child], &last))
            break;
        w->heap[i] = w->heap[child];
    }
    w->heap[i] = last;
    return top;
}

/* ---- lists ---- */

static void list_push(long_word *w, candidate c)
{
    int32_t e = w->unused;
    if (e >= 0)
        w->unused = w->entry[e].next;
    else
        e = w->entries++;
    w->entry[e] = (entry){c.at, -1};
    if (w->first[c.rank] < 0) {
        w->first[c.rank] = e;
    } else {
        entry *before = &w->entry[w->last[c.rank]];
        before->next = e;
        w->mixed[c.rank] |= before->at > c.at;
    }
    w->last[c.rank] = e;
}

/* The list without its first entry, which can be used again. What the one after it
 * wants is asked for while this one's place is looked at: lists are read out of memory.
 */
static int32_t list_pop(long_word *w, int32_t e)
{
    const int32_t next = w->entry[e].next;
    if (next >= 0) {
        const entry *after = &w->entry[next];
        __builtin_prefetch(&w->slot[after->at]);
        if (after->next >= 0)
            __builtin_prefetch(&w->entry[after->next]);
    }
    w->entry[e].next = w->unused;
    w->unused = e;
    return next;
}

/* Cut a list after its ascending beginning; the rest. */
static int32_t cut_ascending(long_word *w, int32_t e)
{
    while (w->entry[e].next >= 0 && w->entry[w->entry[e].next].at >= w->entry[e].at)
        e = w->entry[e].next;
    const int32_t rest = w->entry[e].next;
    w->entry[e].next = -1;
    return rest;
}

static int32_t join_ascending(long_word *w, int32_t a, int32_t b)
{
    int32_t first = -1, *to = &first;
    while (a >= 0 && b >= 0) {
        int32_t *less = w->entry[b].at < w->entry[a].at ? &b : &a;
        *to = *less;
        to = &w->entry[*less].next;
        *less = *to;
    }
    *to = a >= 0 ? a : b;
    return first;
}

/* A list of few ascending stretches becomes one. */
static int32_t sort_list(long_word *w, int32_t rest)
{
    int32_t stretch[SORT_LEVELS], sorted = -1;
    int levels = 0; /* stretch[i]: of 2^i, or -1 */
    while (rest >= 0) {
        int32_t list = rest;
        int level = 0;
        rest = cut_ascending(w, list);
        for (; level < levels && stretch[level] >= 0; stretch[level++] = -1)
            list = join_ascending(w, stretch[level], list);
        stretch[level] = list;
        levels = level == levels ? levels + 1 : levels;
    }
    for (int level = 0; level < levels; level++)
        sorted = join_ascending(w, stretch[level], sorted);
    return sorted;
}

/* ---- merging ---- */

/* The pair at `at`, if it has a rank, waits for its turn. */
static void offer(long_word *w, int32_t at)
{
    const int32_t next = next_of(w, at);
    if (next >= w->count)
        return;
    const candidate c = {.rank = sti_pair_map_find(
                             &w->t->rank, sti_pair_key(w->slot[at], w->slot[next])),
                         .at = at};
    if (c.rank < 0)
        return;
    if (c.rank <= w->rank)
        heap_push(w, c);
    else
        list_push(w, c);
}

static void merge_at(long_word *w, candidate c)
{
    const int32_t at = c.at, next = next_of(w, at), *merge = w->t->merge[c.rank];
    if (w->slot[at] != merge[0] || next >= w->count || w->slot[next] != merge[1])
        return;
    const int32_t end = next_of(w, next);
    w->slot[at] = merge[2];
    w->slot[next] = -1;
    w->slot[at + 1] = w->slot[end - 1] = at - end;
    if (at > 0)
        offer(w, w->slot[at - 1] < 0 ? at + w->slot[at - 1] : at - 1);
    offer(w, at);
}

/* All of a list, and of what must go before it. */
static stint_status merge_list(long_word *w, int32_t list)
{
    while (list >= 0 || w->heaped > 0) {
        candidate c = {.rank = w->rank, .at = list >= 0 ? w->entry[list].at : 0};
        if (w->heaped > 0 && (list < 0 || comes_before(&w->heap[0], &c)))
            c = heap_pop(w);
        else
            list = list_pop(w, list);
        merge_at(w, c);
        if (w->failed)
            return STINT_E_MEMORY;
        if (w->looked++ % LOOK_EVERY == 0) {
            const stint_status status = sti_bpe_look();
            if (status != STINT_OK)
                return status;
        }
    }
    return STINT_OK;
}

static stint_status merge_by_heap(long_word *w)
{
    w->rank = INT32_MAX;
    if (!heap_room(w, 2 * (int64_t)w->count))
        return STINT_E_MEMORY;
    for (int32_t at = 0; at < w->count; at++)
        offer(w, at);
    return merge_list(w, -1);
}

static stint_status merge_by_lists(long_word *w)
{
    const int32_t merges = w->t->merge_count;
    stint_status status = STINT_OK;
    w->entry = sti_alloc_array(2 * (int64_t)w->count, sizeof *w->entry, "long word");
    w->first = sti_alloc_array(2 * (int64_t)merges, sizeof *w->first, "long word");
    w->mixed = sti_alloc_array(merges, sizeof *w->mixed, "long word");
    if (!w->entry || !w->first || !w->mixed || !heap_room(w, HEAP_LEAST))
        return STINT_E_MEMORY;
    w->last = w->first + merges;
    for (int32_t i = 0; i < 2 * merges; i++)
        w->first[i] = -1;
    sti_alloc_huge_pages(w->entry);
    w->rank = w->unused = -1;
    for (int32_t at = 0; at < w->count; at++)
        offer(w, at);
    for (int32_t rank = 0; rank < merges && status == STINT_OK; rank++) {
        w->rank = rank;
        const int32_t list = w->first[rank];
        status = merge_list(w, w->mixed[rank] ? sort_list(w, list) : list);
    }
    return status;
}

stint_status sti_bpe_merge_long(const stint_tokenizer *t, int32_t *token,
                                int64_t *count)
{
    /* STI_WORD_BYTES at most */
    long_word w = {.t = t, .slot = token, .count = (int32_t)*count};
    const stint_status status = t->merge_count <= *count / 5 && t->merge_count > 0
                                    ? merge_by_lists(&w)
                                    : merge_by_heap(&w);
    *count = 0;
    for (int32_t i = 0, next; i < w.count; i = next) {
        next = next_of(&w, i);
        token[(*count)++] = token[i];
    }
    sti_free(w.heap);
    sti_free(w.entry);
    sti_free(w.first);
    sti_free(w.mixed);
    return status;
}
