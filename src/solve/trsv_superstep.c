/* Supersteps: in each, every core has rows that read only rows of earlier supersteps or
 * of its own (GrowLocal, Boehnlein, Papp and Yzelman 2025). A superstep grows while the
 * share of its time that is work stays near the best it had. */
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "solve/trsv_priv.h"

enum { FIRST_ROWS = 20, ROW_WORK = 6, SHARED = -1, DONE = -2 };

typedef struct growing {
    const sti_sparse_natural *t;
    sti_trsv_order *order;
    int cores;
    double handoff; /* in entries' work */
    int32_t *child_start, *child;
    int32_t *left; /* [n] rows it reads that are in no superstep yet */
    int32_t *got;  /* [n] of those, how many the trial has */
    int32_t *core; /* [n] whose they are, SHARED or DONE */
    int32_t *ready;
    int64_t ready_first, ready_end;
    int32_t *rows;       /* of the trial, core after core */
    int64_t *core_first; /* [cores + 1] */
    int32_t *own;        /* of the core at work: rows that only it may do now */
    int32_t *touched;    /* rows whose got is not 0 */
    int64_t touched_count;
    int64_t used; /* of the ready rows, by the trial */
} growing;

static int64_t work_of(const growing *g, int32_t row)
{
    return g->t->count[row] + ROW_WORK;
}

static stint_status find_children(growing *g)
{
    const sti_sparse_natural *t = g->t;
    int64_t entries = 0;
    for (int64_t i = 0; i < t->n; i++)
        entries += t->count[i];
    g->child_start = sti_alloc_array(t->n + 2, sizeof *g->child_start, "trsv.children");
    g->child = sti_alloc_array(entries, sizeof *g->child, "trsv.children");
    if (!g->child_start || !g->child)
        return STINT_E_MEMORY;
    int32_t *next = g->child_start + 1;
    for (int64_t i = 0; i < t->n; i++)
        for (int64_t k = 0; k < t->count[i]; k++)
            next[t->column[sti_trsv_entry(t, i, k)] + 1]++;
    for (int64_t i = 0; i < t->n; i++)
        next[i + 1] += next[i];
    for (int64_t p = 0; p < t->n; p++) {
        const int64_t i = sti_trsv_row(t, p);
        for (int64_t k = 0; k < t->count[i]; k++)
            g->child[next[t->column[sti_trsv_entry(t, i, k)]]++] = (int32_t)i;
    }
    return STINT_OK;
}

/* A row of the trial is done by a core: its children may become the core's. */
static int64_t tell_children(growing *g, int32_t row, int32_t core, int64_t own_end)
{
    for (int32_t c = g->child_start[row]; c < g->child_start[row + 1]; c++) {
        const int32_t child = g->child[c];
        if (g->got[child]++ == 0) {
            g->touched[g->touched_count++] = child;
            g->core[child] = core;
        } else if (g->core[child] != core) {
            g->core[child] = SHARED;
        }
        if (g->got[child] == g->left[child] && g->core[child] == core)
            g->own[own_end++] = child;
    }
    return own_end;
}

/* One core's rows: its own ones first, then those that are anyone's. */
static int64_t fill_core(growing *g, int32_t core, int64_t most_rows, int64_t most_work)
{
    int64_t at = g->core_first[core], own_first = 0, own_end = 0, work = 0;
    while (at - g->core_first[core] < most_rows && work < most_work) {
        int32_t row;
        if (own_first < own_end)
            row = g->own[own_first++];
        else if (g->ready_first + g->used < g->ready_end)
            row = g->ready[g->ready_first + g->used++];
        else
            break;
        g->rows[at++] = row;
        work += work_of(g, row);
        own_end = tell_children(g, row, core, own_end);
    }
    g->core_first[core + 1] = at;
    return work;
}

static void forget_trial(growing *g)
{
    for (int64_t k = 0; k < g->touched_count; k++)
        g->got[g->touched[k]] = 0;
    g->touched_count = 0;
    g->used = 0;
}

/* A superstep in which the first core has up to so many rows; its score. */
static double try_rows(growing *g, int64_t rows)
{
    forget_trial(g);
    int64_t most = fill_core(g, 0, rows, INT64_MAX), total = most;
    const int64_t first = most;
    for (int32_t c = 1; c < g->cores; c++) {
        const int64_t work = fill_core(g, c, INT64_MAX, first);
        total += work;
        most = work > most ? work : most;
    }
    return (double)total / ((double)most + g->handoff);
}

/* The rows of a trial leave the graph: rows that read only them become ready. */
static void accept(growing *g)
{
    g->ready_first += g->used;
    for (int64_t k = 0; k < g->touched_count; k++)
        g->left[g->touched[k]] -= g->got[g->touched[k]];
    for (int64_t at = 0; at < g->core_first[g->cores]; at++)
        g->core[g->rows[at]] = DONE;
    for (int64_t k = 0; k < g->touched_count; k++) {
        const int32_t row = g->touched[k];
        if (g->left[row] == 0 && g->core[row] != DONE)
            g->ready[g->ready_end++] = row;
        g->got[row] = 0;
    }
    g->touched_count = 0;
    g->used = 0;
}

static void grow(growing *g)
{
    double best = 0;
    int64_t rows = FIRST_ROWS, best_rows = FIRST_ROWS, last = 0;
    for (;;) {
        const double score = try_rows(g, rows);
        const int64_t taken = g->core_first[g->cores];
        if (score > best) {
            best = score;
            best_rows = rows;
        }
        if (score < 0.97 * best || taken == last)
            break;
        last = taken;
        rows = (rows + 1) * 3 / 2;
    }
    (void)try_rows(g, best_rows);
}

static int compare_keys(const void *a, const void *b)
{
    const int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

/* A core's rows by level, each level by length. */
static void add_task(growing *g, int64_t first, int64_t end, int64_t *keys, int64_t *at)
{
    sti_trsv_order *o = g->order;
    for (int64_t k = first; k < end; k++)
        keys[k - first] =
            (int64_t)o->level[g->rows[k]] << 32 | (sti_trsv_row(g->t, g->rows[k]));
    qsort(keys, (size_t)(end - first), sizeof *keys, compare_keys);
    for (int64_t k = 0; k < end - first; k++)
        o->row[(*at)++] = (int32_t)sti_trsv_row(g->t, keys[k] & INT32_MAX);
    o->task[++o->tasks] = (int32_t)*at;
}

static stint_status add_superstep(growing *g, int64_t *keys, int64_t *at,
                                  int64_t *task_room)
{
    sti_trsv_order *o = g->order;
    if (o->tasks + g->cores > *task_room) {
        *task_room = 2 * *task_room + g->cores;
        int32_t *more =
            sti_realloc(o->task, sizeof *more * (size_t)(*task_room + 1), "trsv.tasks");
        if (!more)
            return STINT_E_MEMORY;
        o->task = more;
    }
    for (int c = 0; c < g->cores; c++)
        if (g->core_first[c + 1] > g->core_first[c])
            add_task(g, g->core_first[c], g->core_first[c + 1], keys, at);
    return STINT_OK;
}

static stint_status run(growing *g, int64_t *keys)
{
    const sti_sparse_natural *t = g->t;
    int64_t at = 0, task_room = 1024;
    g->order->tasks = 0;
    g->order->task = sti_alloc_array(task_room + 1, sizeof(int32_t), "trsv.tasks");
    stint_status st = g->order->task ? STINT_OK : STINT_E_MEMORY;
    for (int64_t p = 0; p < t->n; p++) {
        const int64_t i = sti_trsv_row(t, p);
        g->left[i] = t->count[i];
        if (t->count[i] == 0)
            g->ready[g->ready_end++] = (int32_t)i;
    }
    while (st == STINT_OK && at < t->n) {
        grow(g);
        st = add_superstep(g, keys, &at, &task_room);
        accept(g);
    }
    return st;
}

stint_status sti_trsv_supersteps(const sti_sparse_natural *t, int cores,
                                 double handoff_entries, sti_trsv_order *order)
{
    growing g = {.t = t, .order = order, .cores = cores, .handoff = handoff_entries};
    const int64_t n = t->n;
    int64_t *keys = sti_alloc_array(n, sizeof *keys, "trsv.keys");
    stint_status st = order->level ? STINT_OK : sti_trsv_find_levels(t, order);
    if (st == STINT_OK)
        st = find_children(&g);
    g.left = sti_alloc_array(n, sizeof *g.left, "trsv.left");
    g.got = sti_alloc_array(n, sizeof *g.got, "trsv.got");
    g.core = sti_alloc_array(n, sizeof *g.core, "trsv.cores");
    g.ready = sti_alloc_array(n, sizeof *g.ready, "trsv.ready");
    g.rows = sti_alloc_array(n, sizeof *g.rows, "trsv.rows");
    g.own = sti_alloc_array(n, sizeof *g.own, "trsv.own");
    g.touched = sti_alloc_array(n, sizeof *g.touched, "trsv.touched");
    g.core_first = sti_alloc_array(cores + 1, sizeof *g.core_first, "trsv.cores");
    if (!order->row)
        order->row = sti_alloc_array(n, sizeof *order->row, "trsv.order");
    if (!keys || !g.left || !g.got || !g.core || !g.ready || !g.rows || !g.own ||
        !g.touched || !g.core_first || !order->row)
        st = st == STINT_OK ? STINT_E_MEMORY : st;
    sti_free(order->task);
    order->task = NULL;
    if (st == STINT_OK)
        st = run(&g, keys);
    sti_free(keys);
    sti_free(g.child_start);
    sti_free(g.child);
    sti_free(g.left);
    sti_free(g.got);
    sti_free(g.core);
    sti_free(g.ready);
    sti_free(g.rows);
    sti_free(g.own);
    sti_free(g.touched);
    sti_free(g.core_first);
    return st;
}
