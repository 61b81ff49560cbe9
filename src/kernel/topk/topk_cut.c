/* Exact selection from lists: radix selection where the elements lie, radix sort. */
#include <string.h>

#include "kernel/topk/topk_priv.h"

static int bits_of(uint64_t x)
{
    return x == 0 ? 0 : 64 - __builtin_clzll(x);
}

/* Digits of about the list's length: counters are cleared and walked once a pass. */
static int digit_bits(int64_t count)
{
    int bits = bits_of((uint64_t)count) - 1;
    return bits < 4 ? 4 : bits > 11 ? 11 : bits;
}

/* ---- packed ---- */

typedef struct cut_state {
    const sti_topk_run *runs;
    int64_t run_count, live; /* elements in the runs */
    uint64_t lo, hi;         /* the cut lies between them */
    int64_t k;               /* rank of the cut among those */
    sti_topk_run spare;
} cut_state;

static void find_bounds(cut_state *c)
{
    uint64_t lo = UINT64_MAX, hi = 0;
    for (int64_t r = 0; r < c->run_count; r++)
        for (int64_t i = 0; i < c->runs[r].count; i++) {
            const uint64_t x = c->runs[r].at[i];
            lo = x < lo ? x : lo;
            hi = x > hi ? x : hi;
        }
    c->lo = lo;
    c->hi = hi;
}

static void count_digits(const cut_state *c, int shift, uint32_t *counts)
{
    const uint64_t lo = c->lo, span = c->hi - c->lo;
    for (int64_t r = 0; r < c->run_count; r++) {
        const uint64_t *x = c->runs[r].at;
        for (int64_t i = 0; i < c->runs[r].count; i++)
            if (x[i] - lo <= span)
                counts[(x[i] - lo) >> shift]++;
    }
}

/* The digit where the running count from above reaches k; k becomes the rank in it. */
static int64_t find_digit(cut_state *c, int bits, const uint32_t *counts)
{
    int64_t digit = (INT64_C(1) << bits) - 1;
    while (c->k > counts[digit])
        c->k -= counts[digit--];
    return digit;
}

/* Survivors move to the spare list once they are few; before that they are read again
 * where they are, which touches no more memory than they do. */
static void keep_survivors(cut_state *c, int64_t survivors, int64_t room)
{
    if (survivors > room || (c->live < 2 * survivors && c->runs != &c->spare))
        return;
    const uint64_t lo = c->lo, span = c->hi - c->lo;
    int64_t count = 0;
    for (int64_t r = 0; r < c->run_count; r++) {
        const uint64_t *x = c->runs[r].at;
        for (int64_t i = 0; i < c->runs[r].count; i++)
            if (x[i] - lo <= span)
                c->spare.at[count++] = x[i];
    }
    c->spare.count = c->live = count;
    c->runs = &c->spare;
    c->run_count = 1;
}

/* The spare list holds the keys of all: the loops for keys are fast enough to look at
 * them a few dozen times. Of equal keys the first ones in the runs are winners. */
static uint64_t cut_by_keys(const cut_state *c)
{
    uint32_t *keys = (uint32_t *)(void *)c->spare.at;
    int64_t count = 0, at_least;
    for (int64_t r = 0; r < c->run_count; r++)
        for (int64_t i = 0; i < c->runs[r].count; i++)
            keys[count++] = (uint32_t)(c->runs[r].at[i] >> 32);
    const uint32_t key =
        sti_topk_ops_now(STI_TOPK_KEYS)->bisect(keys, count, c->k, &at_least);
    if (at_least == c->k)
        return (uint64_t)key << 32;
    int64_t ties = c->k, i = 0, r = 0;
    for (int64_t j = 0; j < count; j++)
        ties -= keys[j] > key;
    while (ties -= keys[i] == key)
        i++;
    for (; i >= c->runs[r].count; r++)
        i -= c->runs[r].count;
    return c->runs[r].at[i];
}

uint64_t sti_topk_cut(const sti_topk_cutter *cutter, const sti_topk_run *runs,
                      int64_t run_count, int64_t k)
{
    cut_state c = {
        .runs = runs, .run_count = run_count, .k = k, .spare = {.at = cutter->spare}};
    for (int64_t r = 0; r < run_count; r++)
        c.live += runs[r].count;
    if (c.live == k)
        return 0;
    if (c.live <= 2 * cutter->spare_count)
        return cut_by_keys(&c);
    for (find_bounds(&c); c.hi > c.lo;) {
        const int span_bits = bits_of(c.hi - c.lo), wanted = digit_bits(c.live);
        const int bits = span_bits < wanted ? span_bits : wanted;
        const int shift = span_bits - bits;
        memset(cutter->counts, 0, sizeof(uint32_t) << bits);
        count_digits(&c, shift, cutter->counts);
        const int64_t digit = find_digit(&c, bits, cutter->counts);
        const int64_t survivors = cutter->counts[digit];
        c.lo += (uint64_t)digit << shift;
        const uint64_t width = (UINT64_C(1) << shift) - 1; /* no sum: it may wrap */
        c.hi = c.hi - c.lo > width ? c.lo + width : c.hi;
        if (survivors == c.k)
            return c.lo;
        keep_survivors(&c, survivors, cutter->spare_count);
    }
    return c.lo;
}

/* ---- bare keys ---- */

uint32_t sti_topk_kth(uint32_t *keys, int64_t count, int64_t rank, uint32_t *counts)
{
    uint32_t lo = UINT32_MAX, hi = 0;
    cut_state c = {.k = rank};
    for (int64_t i = 0; i < count; i++) {
        lo = keys[i] < lo ? keys[i] : lo;
        hi = keys[i] > hi ? keys[i] : hi;
    }
    while (hi > lo) {
        const int span_bits = bits_of(hi - lo), wanted = digit_bits(count);
        const int bits = span_bits < wanted ? span_bits : wanted;
        const int shift = span_bits - bits;
        memset(counts, 0, sizeof *counts << bits);
        for (int64_t i = 0; i < count; i++)
            counts[(keys[i] - lo) >> shift]++;
        const uint32_t digit = (uint32_t)find_digit(&c, bits, counts);
        int64_t kept = 0;
        for (int64_t i = 0; i < count; i++) {
            const uint32_t key = keys[i];
            if ((key - lo) >> shift == digit) {
                keys[i] = keys[kept];
                keys[kept++] = key;
            }
        }
        count = kept;
        lo += digit << shift;
        const uint32_t width = (UINT32_C(1) << shift) - 1;
        hi = hi - lo > width ? lo + width : hi;
    }
    return lo;
}

/* ---- sorting ---- */

static void insertion_sort(uint64_t *x, int64_t count)
{
    for (int64_t i = 1; i < count; i++) {
        const uint64_t one = x[i];
        int64_t j = i;
        for (; j > 0 && x[j - 1] < one; j--)
            x[j] = x[j - 1];
        x[j] = one;
    }
}

/* Indices ascend already and the passes are stable, so only the keys' differing bits
 * need sorting, last digit first. */
uint64_t *sti_topk_sort(uint64_t *packed, uint64_t *other, int64_t count,
                        uint32_t *counts)
{
    if (count <= 48) {
        insertion_sort(packed, count);
        return packed;
    }
    uint64_t differ = 0;
    for (int64_t i = 1; i < count; i++)
        differ |= packed[i] ^ packed[0];
    const int end = bits_of(differ >> 32), wanted = digit_bits(count);
    const int digit = wanted < 8 ? 8 : wanted;
    for (int at = 0; at < end; at += digit) {
        const int bits = end - at < digit ? end - at : digit;
        const uint64_t mask = (UINT64_C(1) << bits) - 1;
        const int shift = 32 + at;
        if ((differ >> shift & mask) == 0)
            continue;
        memset(counts, 0, sizeof *counts << bits);
        for (int64_t i = 0; i < count; i++)
            counts[packed[i] >> shift & mask]++;
        uint32_t place = 0;
        for (int64_t d = (int64_t)mask; d >= 0; d--) {
            const uint32_t here = counts[d];
            counts[d] = place;
            place += here;
        }
        for (int64_t i = 0; i < count; i++)
            other[counts[packed[i] >> shift & mask]++] = packed[i];
        uint64_t *swap = packed;
        packed = other;
        other = swap;
    }
    return packed;
}
