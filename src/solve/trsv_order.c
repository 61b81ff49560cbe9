/* Orders of rows: by level, and cut into tasks. */
#include <string.h>

#include "base/memory.h"
#include "base/pages.h"
#include "solve/trsv_priv.h"

void sti_trsv_order_fini(sti_trsv_order *order)
{
    sti_free(order->row);
    sti_free(order->level);
    sti_free(order->task);
    *order = (sti_trsv_order){0};
}

stint_status sti_trsv_find_levels(const sti_sparse_natural *t, sti_trsv_order *order)
{
    const int64_t n = t->n;
    order->level = sti_pages_array(n, sizeof *order->level, "trsv.levels");
    if (!order->level)
        return STINT_E_MEMORY;
    int32_t *level = order->level;
    int32_t most = -1;
    for (int64_t p = 0; p < n; p++) {
        const int64_t i = sti_trsv_row(t, p);
        const int64_t from = t->upper ? t->start[i + 1] - t->count[i] : t->start[i];
        int32_t above = -1;
        for (int64_t e = from; e < from + t->count[i]; e++)
            above = level[t->column[e]] > above ? level[t->column[e]] : above;
        level[i] = above + 1;
        most = above + 1 > most ? above + 1 : most;
    }
    order->levels = most + 1;
    return STINT_OK;
}

/* Places of a counting sort: at[k] where the first of key k goes. */
static void sum_up(int64_t keys, int32_t *at)
{
    int32_t sum = 0;
    for (int64_t k = 0; k < keys; k++) {
        const int32_t count = at[k];
        at[k] = sum;
        sum += count;
    }
}

enum { LENGTHS = 64 }; /* longer rows are one class: their own chains fill the time */

static int length_class(const sti_sparse_natural *t, int64_t i)
{
    return t->count[i] < LENGTHS ? t->count[i] : LENGTHS - 1;
}

/* Two stable counting sorts: by length, then by level. */
static void sort_rows(const sti_sparse_natural *t, sti_trsv_order *order,
                      int32_t *by_length, int32_t *at)
{
    int32_t lengths[LENGTHS] = {0};
    for (int64_t i = 0; i < t->n; i++) {
        lengths[length_class(t, i)]++;
        at[order->level[i]]++;
    }
    for (int64_t k = 0; k < order->levels; k++)
        order->widest = at[k] > order->widest ? at[k] : order->widest;
    sum_up(LENGTHS, lengths);
    sum_up(order->levels, at);
    for (int64_t p = 0; p < t->n; p++) {
        const int64_t i = sti_trsv_row(t, p);
        by_length[lengths[length_class(t, i)]++] = (int32_t)i;
    }
    for (int64_t p = 0; p < t->n; p++)
        order->row[at[order->level[by_length[p]]]++] = by_length[p];
}

stint_status sti_trsv_level_order(const sti_sparse_natural *t, sti_trsv_order *order)
{
    stint_status st = order->level ? STINT_OK : sti_trsv_find_levels(t, order);
    if (st != STINT_OK)
        return st;
    order->row = sti_pages_array(t->n, sizeof *order->row, "trsv.order");
    int32_t *by_length = sti_pages_array(t->n, sizeof *by_length, "trsv.lengths");
    int32_t *at = sti_alloc_array(order->levels, sizeof *at, "trsv.widths");
    if (order->row && by_length && at)
        sort_rows(t, order, by_length, at);
    else
        st = STINT_E_MEMORY;
    sti_free(by_length);
    sti_free(at);
    return st;
}

/* Work of a row in entries: what comes with it costs about six. */
static int64_t work_of(const sti_sparse_natural *t, int64_t i)
{
    return t->count[i] + 6;
}

stint_status sti_trsv_cut(const sti_sparse_natural *t, int64_t tasks,
                          sti_trsv_order *order)
{
    int64_t total = 0, sum = 0, count = 0;
    sti_free(order->task);
    order->task = sti_alloc_array(tasks + 1, sizeof *order->task, "trsv.tasks");
    if (!order->task)
        return STINT_E_MEMORY;
    for (int64_t i = 0; i < t->n; i++)
        total += work_of(t, i);
    for (int64_t p = 0; p < t->n; p++) {
        if (p % STI_SPARSE_LANES == 0 && count + 1 < tasks &&
            sum >= (count + 1) * (total / tasks))
            order->task[++count] = (int32_t)p;
        sum += work_of(t, order->row[p]);
    }
    order->task[++count] = (int32_t)t->n;
    order->tasks = count;
    return STINT_OK;
}

/* The task of a place in the order of substitution. */
static int64_t stretch_of(const sti_trsv_cutting *cut, int64_t place)
{
    return place / (cut->period * cut->lines) * cut->parts +
           place % cut->period * cut->parts / cut->period;
}

int64_t sti_trsv_stretch_of(const sti_sparse_natural *t, const sti_trsv_cutting *cut,
                            int64_t row)
{
    return stretch_of(cut, sti_trsv_row(t, row));
}

int64_t sti_trsv_stretch_count(const sti_trsv_cutting *cut, int64_t n)
{
    const int64_t group = cut->period * cut->lines;
    return (n + group - 1) / group * cut->parts;
}

/* Tasks without rows, of a last period that is cut short, are left out. */
static void drop_empty(sti_trsv_order *order)
{
    int64_t kept = 0;
    for (int64_t k = 0; k < order->tasks; k++)
        if (order->task[k + 1] > order->task[kept])
            order->task[++kept] = order->task[k + 1];
    order->tasks = kept > 0 ? kept : 1;
}

/* Stretches of so many rows each: next[k] where the k-th begins; after it, where it
 * ends. */
static void deal_rows(const sti_sparse_natural *t, int64_t rows,
                      const int32_t *by_level, int32_t *next, int32_t *row)
{
    const uint32_t n = (uint32_t)t->n, each = (uint32_t)(rows < t->n ? rows : t->n);
    for (uint32_t k = 0; k * (uint64_t)each < n; k++)
        next[k] = (int32_t)(k * each);
    for (uint32_t p = 0; p < n; p++) {
        const uint32_t i = (uint32_t)by_level[p], place = t->upper ? n - 1 - i : i;
        row[next[place / each]++] = (int32_t)i;
    }
}

static void deal_parts(const sti_sparse_natural *t, const sti_trsv_cutting *cut,
                       const int32_t *by_level, int64_t tasks, int32_t *next,
                       int32_t *row)
{
    for (int64_t p = 0; p < t->n; p++)
        next[stretch_of(cut, p) + 1]++;
    for (int64_t k = 0; k < tasks; k++)
        next[k + 1] += next[k];
    for (int64_t p = 0; p < t->n; p++) {
        const int32_t i = by_level[p];
        row[next[stretch_of(cut, sti_trsv_row(t, i))]++] = i;
    }
}

stint_status sti_trsv_stretches(const sti_sparse_natural *t,
                                const sti_trsv_cutting *cut, const int32_t *by_level,
                                sti_trsv_order *order)
{
    const int64_t tasks = t->n > 0 ? sti_trsv_stretch_count(cut, t->n) : 1;
    sti_free(order->task);
    order->tasks = tasks;
    order->task = sti_alloc_array(tasks + 2, sizeof *order->task, "trsv.tasks");
    if (!order->row)
        order->row = sti_pages_array(t->n, sizeof *order->row, "trsv.order");
    if (!order->row || !order->task)
        return STINT_E_MEMORY;
    int32_t *next = order->task + 1; /* after the loops: the ends */
    if (cut->parts == 1)
        deal_rows(t, cut->period * cut->lines, by_level, next, order->row);
    else
        deal_parts(t, cut, by_level, tasks, next, order->row);
    drop_empty(order);
    return STINT_OK;
}

stint_status sti_trsv_whole(sti_trsv_order *order, int64_t n)
{
    sti_free(order->task);
    order->task = sti_alloc_array(2, sizeof *order->task, "trsv.tasks");
    if (!order->task)
        return STINT_E_MEMORY;
    order->task[1] = (int32_t)n;
    order->tasks = 1;
    return STINT_OK;
}

/* The triangle of a matrix, whatever its diagonal. */
static stint_status look(const sti_csr *a, bool upper, int32_t **count_out,
                         sti_sparse_natural *t)
{
    const sti_trsv_desc d = {.unit = true, .part = true};
    int32_t *count = sti_pages_array(a->rows, sizeof *count, "trsv.counts");
    *count_out = count;
    *t = (sti_sparse_natural){.n = a->rows,
                              .start = a->start,
                              .column = a->column,
                              .count = count,
                              .upper = upper};
    return count ? sti_trsv_look(&d, upper, a, count) : STINT_E_MEMORY;
}

stint_status sti_trsv_levels(const sti_csr *a, bool upper, int64_t *levels_out,
                             int64_t *widest_out)
{
    sti_trsv_order order = {0};
    sti_sparse_natural t;
    int32_t *count;
    stint_status st = look(a, upper, &count, &t);
    if (st == STINT_OK) {
        st = sti_trsv_level_order(&t, &order);
        *levels_out = order.levels;
        *widest_out = order.widest;
    }
    sti_trsv_order_fini(&order);
    sti_free(count);
    return st;
}

stint_status sti_trsv_row_levels(const sti_csr *a, bool upper, int32_t *level_out,
                                 int64_t *levels_out)
{
    sti_trsv_order order = {0};
    sti_sparse_natural t;
    int32_t *count;
    stint_status st = look(a, upper, &count, &t);
    if (st == STINT_OK)
        st = sti_trsv_find_levels(&t, &order);
    if (st == STINT_OK) {
        memcpy(level_out, order.level, sizeof *level_out * (size_t)a->rows);
        *levels_out = order.levels;
    }
    sti_trsv_order_fini(&order);
    sti_free(count);
    return st;
}
