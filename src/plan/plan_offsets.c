/* Offsets for intervals: dynamic storage allocation, offline.
 *
 * The problem is NP-hard; greedy placement in a good order comes close. Each order here
 * places one interval after another into the lowest gap that is free for its whole
 * life. Saved activations nest like brackets, which "longest life first" stacks
 * perfectly; odd mixtures suit "largest first" better. All orders are tried until one
 * meets the lower bound, the most bytes alive at once. */
#include <stdlib.h>
#include <string.h>

#include "base/fail.h"
#include "plan/plan_priv.h"

typedef struct entry {
    size_t bytes;
    int32_t first, last;
    int32_t row; /* in the caller's array */
    bool at_peak;
} entry;

/* What is placed, sorted by begin; in columns, so that lives are compared several at a
 * time. */
typedef struct spots {
    size_t *begin, *end;
    int32_t *first, *last;
    uint8_t
        *meets; /* [count + 8]: does its life overlap with that of the entry at hand?
                 */
} spots;

/* Ties end with the row, so that qsort's order is fixed. */
static int by_row(const entry *a, const entry *b)
{
    return (a->row > b->row) - (a->row < b->row);
}

static int by_bytes(const void *pa, const void *pb)
{
    const entry *a = pa, *b = pb;
    if (a->bytes != b->bytes)
        return a->bytes < b->bytes ? 1 : -1;
    if (a->first != b->first)
        return a->first > b->first ? 1 : -1;
    return by_row(a, b);
}

static int by_length(const void *pa, const void *pb)
{
    const entry *a = pa, *b = pb;
    int64_t la = (int64_t)a->last - a->first, lb = (int64_t)b->last - b->first;
    return la != lb ? (la < lb ? 1 : -1) : by_bytes(pa, pb);
}

static int by_first(const void *pa, const void *pb)
{
    const entry *a = pa, *b = pb;
    return a->first != b->first ? (a->first > b->first ? 1 : -1) : by_bytes(pa, pb);
}

static int by_area(const void *pa, const void *pb)
{
    const entry *a = pa, *b = pb;
    double la = (double)a->bytes * ((double)a->last - a->first + 1);
    double lb = (double)b->bytes * ((double)b->last - b->first + 1);
    return la < lb ? 1 : la > lb ? -1 : by_bytes(pa, pb);
}

/* What is alive at the peak first, by length; the rest by size. */
static int by_peak(const void *pa, const void *pb)
{
    const entry *a = pa, *b = pb;
    if (a->at_peak != b->at_peak)
        return a->at_peak ? -1 : 1;
    return a->at_peak ? by_length(pa, pb) : by_bytes(pa, pb);
}

typedef int order_fn(const void *, const void *);
static order_fn *const orders[] = {by_bytes, by_length, by_area, by_peak, by_first};

static void find_meetings(const spots *s, int64_t count, const entry *e)
{
    const int32_t first = e->first, last = e->last;
    const int32_t *restrict begins = s->first, *restrict ends = s->last;
    uint8_t *restrict meets = s->meets;
    for (int64_t i = 0; i < count; i++)
        meets[i] = (uint8_t)((begins[i] <= last) & (ends[i] >= first));
    memset(meets + count, 0, 8);
}

/* Lowest offset that is free while e lives. */
static size_t lowest_gap(const spots *s, int64_t count, const entry *e)
{
    size_t at = 0;
    find_meetings(s, count, e);
    for (int64_t k = 0; k < count; k += 8) {
        uint64_t any;
        memcpy(&any, s->meets + k, sizeof any);
        for (int64_t i = k; any && i < k + 8; i++) {
            if (!s->meets[i])
                continue;
            if (s->begin[i] >= at && s->begin[i] - at >= e->bytes)
                return at;
            at = s->end[i] > at ? s->end[i] : at;
        }
    }
    return at;
}

static void insert_spot(const spots *s, int64_t count, const entry *e, size_t at)
{
    int64_t i = count;
    while (i > 0 && s->begin[i - 1] > at)
        i--;
    const size_t n = (size_t)(count - i);
    memmove(&s->begin[i + 1], &s->begin[i], n * sizeof *s->begin);
    memmove(&s->end[i + 1], &s->end[i], n * sizeof *s->end);
    memmove(&s->first[i + 1], &s->first[i], n * sizeof *s->first);
    memmove(&s->last[i + 1], &s->last[i], n * sizeof *s->last);
    s->begin[i] = at;
    s->end[i] = at + e->bytes;
    s->first[i] = e->first;
    s->last[i] = e->last;
}

/* Place all entries in their order; offsets go to offset[row]. */
static size_t place_all(const entry *entries, int64_t count, const spots *placed,
                        size_t *offset)
{
    size_t total = 0;
    for (int64_t i = 0; i < count; i++) {
        size_t at = lowest_gap(placed, i, &entries[i]);
        insert_spot(placed, i, &entries[i], at);
        offset[entries[i].row] = at;
        if (at + entries[i].bytes > total)
            total = at + entries[i].bytes;
    }
    return total;
}

static int by_last(const void *pa, const void *pb)
{
    const entry *a = pa, *b = pb;
    return a->last != b->last ? (a->last > b->last ? 1 : -1) : by_row(a, b);
}

/* The most bytes alive at once: no placement can do with less. Marks who is alive
 * there. Sweeps over the starts, since a maximum begins where something begins; of
 * equal ones that of the first row. `ends` is room for as many entries. */
static size_t mark_peak(entry *entries, int64_t count, entry *ends)
{
    size_t most = 0, live = 0;
    int32_t when = 0, first_row = 0;
    memcpy(ends, entries, (size_t)count * sizeof *ends);
    qsort(entries, (size_t)count, sizeof *entries, by_first);
    qsort(ends, (size_t)count, sizeof *ends, by_last);
    for (int64_t i = 0, gone = 0; i < count;) {
        const int32_t now = entries[i].first;
        int32_t row = INT32_MAX; /* the first of those that begin now */
        for (; ends[gone].last < now; gone++)
            live -= ends[gone].bytes;
        for (; i < count && entries[i].first == now; i++) {
            live += entries[i].bytes;
            row = entries[i].row < row ? entries[i].row : row;
        }
        if (live > most || (live == most && row < first_row)) {
            most = live;
            when = now;
            first_row = row;
        }
    }
    for (int64_t i = 0; i < count; i++)
        entries[i].at_peak = entries[i].first <= when && entries[i].last >= when;
    return most;
}

/* Entries of the intervals that have bytes; their sum must fit a size_t. */
static stint_status make_entries(const sti_interval *intervals, int64_t count,
                                 entry *entries, int64_t *used)
{
    size_t sum = 0;
    *used = 0;
    for (int64_t i = 0; i < count; i++) {
        const sti_interval *in = &intervals[i];
        if (in->last < in->first)
            return sti_fail(STINT_E_BUG, "plan: interval %lld ends before it begins",
                            (long long)i);
        if (in->bytes == 0)
            continue;
        if (!sti_add_bytes(sum, in->bytes, &sum) ||
            !sti_add_bytes(sum, STI_PLAN_ALIGN, &sum))
            return sti_fail(STINT_E_INPUT, "plan: the arena is larger than memory can "
                                           "be addressed; take a smaller batch");
        entries[(*used)++] = (entry){.bytes = STI_ALIGN_UP(in->bytes, STI_PLAN_ALIGN),
                                     .first = in->first,
                                     .last = in->last,
                                     .row = (int32_t)i};
    }
    return STINT_OK;
}

/* One block for all columns, the widest first. */
static bool spots_create(int64_t count, spots *s)
{
    const size_t each = 2 * sizeof(size_t) + 2 * sizeof(int32_t) + 1;
    uint8_t *block = sti_alloc_array(count + 8, (int64_t)each, "plan.offsets");
    s->begin = (size_t *)(void *)block;
    s->end = s->begin + count;
    s->first = (int32_t *)(void *)(s->end + count);
    s->last = s->first + count;
    s->meets = (uint8_t *)(void *)(s->last + count);
    return block != NULL;
}

stint_status sti_plan_offsets(sti_interval *intervals, int64_t count, size_t *total_out)
{
    entry *entries = sti_alloc_array(2 * count, sizeof *entries, "plan.offsets");
    size_t *offset = sti_alloc_array(count, sizeof *offset, "plan.offsets");
    spots placed = {NULL};
    size_t best = SIZE_MAX;
    int64_t used = 0;
    stint_status status = STINT_E_MEMORY;

    if (!spots_create(count, &placed) || !entries || !offset)
        goto done;
    status = make_entries(intervals, count, entries, &used);
    if (status)
        goto done;
    size_t bound = mark_peak(entries, used, entries + used);
    for (size_t o = 0; o < sizeof orders / sizeof *orders && best > bound; o++) {
        qsort(entries, (size_t)used, sizeof *entries, orders[o]);
        size_t total = place_all(entries, used, &placed, offset);
        if (total >= best)
            continue;
        best = total;
        for (int64_t i = 0; i < count; i++)
            intervals[i].offset = offset[i];
    }
    *total_out = best;
done:
    sti_free(entries);
    sti_free(placed.begin);
    sti_free(offset);
    return status;
}
