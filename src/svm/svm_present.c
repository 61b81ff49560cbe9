#include "svm/svm_present.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"

static int compare(const void *a, const void *b)
{
    const int32_t x = *(const int32_t *)a, y = *(const int32_t *)b;
    return (x > y) - (x < y);
}

/* Few entries among many columns: sorted. */
static stint_status find_by_order(const sti_csr *x, sti_svm_present *p)
{
    const int64_t entries = x->start[x->rows];
    p->column = sti_alloc_array(entries, sizeof *p->column, "svm.present");
    if (!p->column)
        return STINT_E_MEMORY;
    if (entries > 0)
        memcpy(p->column, x->column, sizeof *p->column * (size_t)entries);
    qsort(p->column, (size_t)entries, sizeof *p->column, compare);
    for (int64_t e = 0; e < entries; e++)
        if (p->count == 0 || p->column[p->count - 1] != p->column[e])
            p->column[p->count++] = p->column[e];
    return STINT_OK;
}

/* Many entries: a bit a column. */
static stint_status find_by_bits(const sti_csr *x, sti_svm_present *p)
{
    const int64_t entries = x->start[x->rows], words = x->columns / 64 + 1;
    uint64_t *bits = sti_alloc_array(words, sizeof *bits, "svm.present");
    if (!bits)
        return STINT_E_MEMORY;
    for (int64_t e = 0; e < entries; e++)
        bits[x->column[e] / 64] |= (uint64_t)1 << (x->column[e] % 64);
    for (int64_t w = 0; w < words; w++)
        p->count += __builtin_popcountll(bits[w]);
    p->column = sti_alloc_array(p->count, sizeof *p->column, "svm.present");
    for (int64_t w = 0, at = 0; p->column && w < words; w++)
        for (uint64_t left = bits[w]; left; left &= left - 1)
            p->column[at++] = (int32_t)(w * 64 + __builtin_ctzll(left));
    sti_free(bits);
    return p->column ? STINT_OK : STINT_E_MEMORY;
}

stint_status sti_svm_present_find(const sti_csr *x, sti_svm_present *p)
{
    *p = (sti_svm_present){0};
    return x->columns / 32 > x->start[x->rows] ? find_by_order(x, p)
                                               : find_by_bits(x, p);
}

void sti_svm_present_fini(sti_svm_present *p)
{
    sti_free(p->column);
    *p = (sti_svm_present){0};
}

stint_status sti_svm_present_count(const sti_csr *x, int64_t *count_out)
{
    sti_svm_present p;
    const stint_status st = sti_svm_present_find(x, &p);
    *count_out = p.count;
    sti_svm_present_fini(&p);
    return st;
}

void sti_svm_present_places(const sti_svm_present *p, int64_t count,
                            const int32_t *column, int32_t *place_out)
{
    int64_t from = 0; /* no column further on has a place before */
    for (int64_t i = 0; i < count; i++) {
        int64_t low = from, high = p->count;
        while (low < high) {
            const int64_t middle = low + (high - low) / 2;
            if (p->column[middle] < column[i])
                low = middle + 1;
            else
                high = middle;
        }
        const bool there = low < p->count && p->column[low] == column[i];
        place_out[i] = (int32_t)(there ? low : p->count);
        from = low;
    }
}
