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

typedef struct spot {
    size_t begin, end;
    int32_t first, last;
} spot;

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

/* Lowest offset that is free while e lives; `spots` is sorted by begin. */
static size_t lowest_gap(const spot *spots, int64_t count, const entry *e)
{
    size_t at = 0;
    for (int64_t i = 0; i < count; i++) {
        if (spots[i].last < e->first || spots[i].first > e->last)
            continue;
        if (spots[i].begin >= at && spots[i].begin - at >= e->bytes)
            break;
        if (spots[i].end > at)
            at = spots[i].end;
    }
    return at;
}

static void insert_spot(spot *spots, int64_t count, const entry *e, size_t at)
{
    int64_t i = count;
    while (i > 0 && spots[i - 1].begin > at)
        i--;
    memmove(&spots[i + 1], &spots[i], (size_t)(count - i) * sizeof *spots);
    spots[i] = (spot){at, at + e->bytes, e->first, e->last};
}

/* Place all entries in their order; offsets go to offset[row]. */
static size_t place_all(const entry *entries, int64_t count, spot *spots,
                        size_t *offset)
{
    size_t total = 0;
    for (int64_t i = 0; i < count; i++) {
        size_t at = lowest_gap(spots, i, &entries[i]);
        insert_spot(spots, i, &entries[i], at);
        offset[entries[i].row] = at;
        if (at + entries[i].bytes > total)
            total = at + entries[i].bytes;
    }
    return total;
}

/* The most bytes alive at once: no placement can do with less. Marks who is alive
 * there. Sweeps over the starts, since a maximum begins where something begins. */
static size_t mark_peak(entry *entries, int64_t count)
{
    size_t most = 0;
    int32_t when = 0;
    for (int64_t i = 0; i < count; i++) {
        size_t live = 0;
        for (int64_t k = 0; k < count; k++)
            if (entries[k].first <= entries[i].first &&
                entries[k].last >= entries[i].first)
                live += entries[k].bytes;
        if (live > most) {
            most = live;
            when = entries[i].first;
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

stint_status sti_plan_offsets(sti_interval *intervals, int64_t count, size_t *total_out)
{
    entry *entries = sti_alloc_array(count, sizeof *entries, "plan.offsets");
    spot *spots = sti_alloc_array(count, sizeof *spots, "plan.offsets");
    size_t *offset = sti_alloc_array(count, sizeof *offset, "plan.offsets");
    size_t best = SIZE_MAX;
    int64_t used = 0;
    stint_status status = STINT_E_MEMORY;

    if (!entries || !spots || !offset)
        goto done;
    status = make_entries(intervals, count, entries, &used);
    if (status)
        goto done;
    size_t bound = mark_peak(entries, used);
    for (size_t o = 0; o < sizeof orders / sizeof *orders && best > bound; o++) {
        qsort(entries, (size_t)used, sizeof *entries, orders[o]);
        size_t total = place_all(entries, used, spots, offset);
        if (total >= best)
            continue;
        best = total;
        for (int64_t i = 0; i < count; i++)
            intervals[i].offset = offset[i];
    }
    *total_out = best;
done:
    sti_free(entries);
    sti_free(spots);
    sti_free(offset);
    return status;
}
