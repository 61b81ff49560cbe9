#include "svm/svm_pick.h"

#include <string.h>

#include "base/memory.h"

/* Entries of the `most` longest rows, at most. */
static int64_t most_entries(const sti_gram_rows *from, int64_t most)
{
    int64_t longest = 0;
    for (int64_t i = 0; i < from->rows; i++) {
        const int64_t length = from->sparse.start[i + 1] - from->sparse.start[i];
        longest = length > longest ? length : longest;
    }
    return longest * most;
}

size_t sti_svm_pick_bytes(const sti_gram_rows *from, int64_t most)
{
    const size_t rows = (size_t)most;
    if (from->dense)
        return rows * (size_t)(from->columns + 1) * sizeof(double);
    return rows * 2 * sizeof(double) +
           (size_t)most_entries(from, most) * (sizeof(int32_t) + sizeof(double));
}

stint_status sti_svm_pick_create(const sti_gram_rows *from, int64_t most,
                                 sti_svm_pick *p)
{
    bool there;
    *p = (sti_svm_pick){.rows = {.columns = from->columns}};
    p->term = sti_alloc_array(most, sizeof(double), "svm.picked");
    if (from->dense) {
        p->dense =
            sti_alloc_array(most, sizeof(double) * (size_t)from->columns, "svm.picked");
        there = p->term && p->dense;
    } else {
        const int64_t entries = most_entries(from, most);
        p->start = sti_alloc_array(most + 1, sizeof *p->start, "svm.picked");
        p->column = sti_alloc_array(entries, sizeof *p->column, "svm.picked");
        p->value = sti_alloc_array(entries, sizeof *p->value, "svm.picked");
        there = p->term && p->start && p->column && p->value;
    }
    p->rows.dense = p->dense;
    p->rows.term = p->term;
    p->rows.sparse = (sti_csr){.columns = from->columns,
                               .start = p->start,
                               .column = p->column,
                               .value = p->value};
    if (there)
        return STINT_OK;
    sti_svm_pick_fini(p);
    return STINT_E_MEMORY;
}

void sti_svm_pick_fini(sti_svm_pick *p)
{
    sti_free(p->dense);
    sti_free(p->term);
    sti_free(p->start);
    sti_free(p->column);
    sti_free(p->value);
    *p = (sti_svm_pick){0};
}

void sti_svm_pick_take(sti_svm_pick *p, const sti_gram_rows *from, int64_t count,
                       const int64_t *row)
{
    const size_t bytes = sizeof(double) * (size_t)from->columns;
    int64_t at = 0;
    p->rows.rows = p->rows.sparse.rows = count;
    for (int64_t i = 0; i < count; i++) {
        p->term[i] = from->term[row[i]];
        if (from->dense) {
            memcpy(p->dense + i * from->columns, from->dense + row[i] * from->columns,
                   bytes);
            continue;
        }
        const int64_t begin = from->sparse.start[row[i]];
        const int64_t entries = from->sparse.start[row[i] + 1] - begin;
        memcpy(p->column + at, from->sparse.column + begin,
               sizeof(int32_t) * (size_t)entries);
        memcpy(p->value + at, from->sparse.value + begin,
               sizeof(double) * (size_t)entries);
        at += entries;
        p->start[i + 1] = at;
    }
}
