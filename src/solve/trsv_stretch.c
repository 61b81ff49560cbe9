/* A task that is a stretch of rows waits for whole tasks here, those that hold the
 * first and the last column that any of its rows reads: exact enough for grids, where
 * it is the same part of the plane before, and the task at its border. */
#include "solve/trsv_stretch.h"

#include <math.h>
#include <string.h>

#include "base/memory.h"

enum { ROW_WORK = 6, LEAST_ROWS = 128 };

typedef struct simulation {
    const sti_sparse_natural *t;
    sti_stretch_reach reach;
    const sti_stretch_workers *workers;
    double unit_s;  /* an entry's work */
    double *end_s;  /* [tasks] */
    double *free_s; /* [ranks, threads] */
} simulation;

static int64_t work_of(const sti_sparse_natural *t, int64_t i)
{
    return t->count[i] + ROW_WORK;
}

/* ---- one cutting ---- */

/* When a column's task is done, as another rank or thread sees it. */
static double seen_s(const simulation *s, const sti_trsv_cutting *cut, int64_t task,
                     int64_t first, int32_t column, double rows)
{
    const sti_stretch_workers *w = s->workers;
    if (column < 0 || sti_trsv_row(s->t, column) >= first)
        return 0;
    const int64_t other = sti_trsv_stretch_of(s->t, cut, column);
    if (!w->link || (task - other) % w->ranks == 0)
        return s->end_s[other] + w->handoff_s;
    /* Rows of a border, which are few of those that lie between. */
    return s->end_s[other] + sti_link_seconds(w->link, rows);
}

static double *first_free(const simulation *s, int64_t task)
{
    const int threads = s->workers->threads;
    double *rank = s->free_s + task % s->workers->ranks * threads, *best = rank;
    for (int k = 1; k < threads; k++)
        best = rank[k] < *best ? rank + k : best;
    return best;
}

static double simulate(const simulation *s, const sti_trsv_cutting *cut)
{
    const sti_sparse_natural *t = s->t;
    const double rows = (double)cut->period / (double)cut->parts;
    double last = 0;
    memset(s->free_s, 0,
           sizeof *s->free_s * (size_t)(s->workers->ranks * s->workers->threads));
    for (int64_t p = 0; p < t->n;) {
        const int64_t task = sti_trsv_stretch_of(t, cut, sti_trsv_row(t, p));
        double *worker = first_free(s, task), begin = *worker;
        const int64_t next = sti_trsv_stretch_first(cut, task + 1), first = p;
        int64_t work = 0;
        for (; p < t->n && p < next; p++) {
            const int64_t i = sti_trsv_row(t, p);
            const int32_t from = s->reach.first[i], to = s->reach.last[i];
            begin = fmax(begin, seen_s(s, cut, task, first, from, rows));
            begin = fmax(begin, seen_s(s, cut, task, first, to, rows));
            work += work_of(t, i);
        }
        *worker = s->end_s[task] = begin + (double)work * s->unit_s;
        last = fmax(last, *worker);
    }
    return last;
}

/* ---- which ---- */

/* The distance to the first column of most rows: a median of a sample. */
static int64_t period_of(const simulation *s)
{
    enum { SAMPLE = 255 };
    int64_t reach[SAMPLE];
    const int64_t n = s->t->n, step = n / SAMPLE;
    if (step == 0)
        return 0;
    for (int k = 0; k < SAMPLE; k++) {
        const int64_t i = k * step + step / 2, column = s->reach.first[i];
        const int64_t far = column < 0 ? 0 : column < i ? i - column : column - i;
        int at = k;
        for (; at > 0 && reach[at - 1] > far; at--)
            reach[at] = reach[at - 1];
        reach[at] = far;
    }
    return reach[SAMPLE / 2];
}

/* A part of every period for each worker. */
static void choose(const simulation *s, sti_trsv_cutting *cutting_out,
                   double *seconds_out)
{
    const int64_t workers = s->workers->ranks * s->workers->threads;
    const sti_trsv_cutting cut = {period_of(s), workers};
    if (cut.period < LEAST_ROWS * workers)
        return;
    *cutting_out = cut;
    *seconds_out = simulate(s, &cut);
}

/* First and last columns as rows lie. */
static stint_status find_reach(const sti_sparse_natural *t, int32_t **first_out,
                               int32_t **last_out)
{
    int32_t *first = sti_alloc_array(t->n, sizeof *first, "trsv.reach");
    int32_t *last = sti_alloc_array(t->n, sizeof *last, "trsv.reach");
    *first_out = first;
    *last_out = last;
    if (!first || !last)
        return STINT_E_MEMORY;
    for (int64_t i = 0; i < t->n; i++) {
        const int64_t count = t->count[i];
        first[i] = count > 0 ? t->column[sti_trsv_entry(t, i, 0)] : -1;
        last[i] = count > 0 ? t->column[sti_trsv_entry(t, i, count - 1)] : -1;
    }
    return STINT_OK;
}

static void run(simulation *s, double serial_s, sti_trsv_cutting *cutting_out,
                double *seconds_out)
{
    int64_t work = 0;
    for (int64_t i = 0; i < s->t->n; i++)
        work += work_of(s->t, i);
    s->unit_s = work > 0 ? serial_s / (double)work : 0;
    choose(s, cutting_out, seconds_out);
}

stint_status sti_trsv_choose_stretches(const sti_sparse_natural *t,
                                       const sti_stretch_reach *reach,
                                       const sti_stretch_workers *workers,
                                       double serial_s, sti_trsv_cutting *cutting_out,
                                       double *seconds_out)
{
    simulation s = {.t = t, .workers = workers};
    int32_t *first = NULL, *last = NULL;
    stint_status st = STINT_OK;
    *seconds_out = INFINITY;
    if (reach)
        s.reach = *reach;
    else
        st = find_reach(t, &first, &last);
    if (st == STINT_OK && !reach)
        s.reach = (sti_stretch_reach){first, last};
    s.end_s = sti_alloc_array(t->n / LEAST_ROWS + 2, sizeof *s.end_s, "trsv.stretches");
    s.free_s = sti_alloc_array(workers->ranks * workers->threads, sizeof *s.free_s,
                               "trsv.stretches");
    if (st == STINT_OK)
        st = s.end_s && s.free_s ? STINT_OK : STINT_E_MEMORY;
    if (st == STINT_OK)
        run(&s, serial_s, cutting_out, seconds_out);
    sti_free(first);
    sti_free(last);
    sti_free(s.end_s);
    sti_free(s.free_s);
    return st;
}
