/* A task that is a stretch of rows waits for whole tasks here, those that hold the
 * first and the last column that any of its rows reads: exact enough for grids, where
 * it is the same part of the plane before, and the task at its border. */
#include "solve/trsv_stretch.h"

#include <math.h>
#include <string.h>

#include "base/memory.h"
#include "base/pages.h"

enum { ROW_WORK = 6, LEAST_ROWS = 128, LINES_MOST = 32 };
enum { ROWS_AT_ONCE = 16 };

typedef struct simulation {
    const sti_sparse_natural *t;
    const int32_t *level;
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
                     int32_t column)
{
    const sti_stretch_workers *w = s->workers;
    if (column < 0)
        return 0;
    const int64_t other = sti_trsv_stretch_of(s->t, cut, column);
    if (other >= task)
        return 0;
    if (!w->link || (task - other) % w->ranks == 0)
        return s->end_s[other] + w->handoff_s;
    /* Rows of a border, which are few of those that lie between. */
    const double rows = (double)(cut->period * cut->lines) / (double)cut->parts;
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

/* Where a part begins within its period. */
static int64_t part_first(const sti_trsv_cutting *cut, int64_t part)
{
    return (part * cut->period + cut->parts - 1) / cut->parts;
}

/* Places [first, end) of a task: when they can begin, and what is to do. */
static void look_at_line(const simulation *s, const sti_trsv_cutting *cut, int64_t task,
                         int64_t first, int64_t end, double *begin, int64_t *work)
{
    for (int64_t p = first; p < end && p < s->t->n; p++) {
        const int64_t i = sti_trsv_row(s->t, p);
        *begin = fmax(*begin, seen_s(s, cut, task, s->reach.first[i]));
        *begin = fmax(*begin, seen_s(s, cut, task, s->reach.last[i]));
        *work += work_of(s->t, i);
    }
}

static double simulate(const simulation *s, const sti_trsv_cutting *cut)
{
    const int64_t tasks = sti_trsv_stretch_count(cut, s->t->n);
    double last = 0;
    memset(s->free_s, 0,
           sizeof *s->free_s * (size_t)(s->workers->ranks * s->workers->threads));
    for (int64_t task = 0; task < tasks; task++) {
        double *worker = first_free(s, task), begin = *worker;
        const int64_t part = task % cut->parts;
        int64_t line = task / cut->parts * cut->lines, work = 0;
        for (int64_t k = 0; k < cut->lines; k++, line++)
            look_at_line(s, cut, task, line * cut->period + part_first(cut, part),
                         line * cut->period + part_first(cut, part + 1), &begin, &work);
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

/* Rows of the middle period's first part that come on a level. */
static double rows_a_level(const simulation *s, const sti_trsv_cutting *cut)
{
    const int64_t first = s->t->n / cut->period / 2 * cut->period;
    const int64_t end = first + part_first(cut, 1);
    int32_t least = INT32_MAX, most = 0;
    for (int64_t p = first; p < end && p < s->t->n; p++) {
        const int32_t level = s->level[sti_trsv_row(s->t, p)];
        least = level < least ? level : least;
        most = level > most ? level : most;
    }
    return most >= least ? (double)(end - first) / (most - least + 1) : 0;
}

/* Does no row read a task after its own? Of tasks of several lines that is a later part
 * of an earlier one of these lines: never so on grids, but elsewhere. Entries must be
 * there: first and last columns alone do not tell. */
static bool reads_earlier_tasks(const simulation *s, const sti_trsv_cutting *cut)
{
    const sti_sparse_natural *t = s->t;
    const uint32_t period = (uint32_t)cut->period;
    if (!t->column)
        return false;
    for (int64_t p = 0; p < t->n; p++) {
        const int64_t i = sti_trsv_row(t, p), task = sti_trsv_stretch_of(t, cut, i);
        const int64_t group = p / (cut->period * cut->lines) * cut->period * cut->lines;
        const int64_t part_end = part_first(cut, task % cut->parts + 1);
        for (int64_t k = t->count[i]; k-- > 0;) {
            const int64_t place = sti_trsv_row(t, t->column[sti_trsv_entry(t, i, k)]);
            if (place < group)
                break; /* so are those before it */
            if ((uint32_t)(place - group) % period >= part_end)
                return false;
        }
    }
    return true;
}

/* A part of every period for each worker. Rows that stay as they lie need no more than
 * one period a task; else there are to be some that can be done at once. */
static void choose(const simulation *s, sti_trsv_cutting *cutting_out,
                   double *seconds_out)
{
    const int64_t workers = s->workers->ranks * s->workers->threads;
    sti_trsv_cutting cut = {period_of(s), workers, 1};
    if (cut.period < LEAST_ROWS * workers)
        return;
    if (!s->workers->link)
        while (cut.lines < LINES_MOST &&
               (double)cut.lines * rows_a_level(s, &cut) < ROWS_AT_ONCE)
            cut.lines *= 2;
    if (cut.lines > 1 && !reads_earlier_tasks(s, &cut))
        return;
    *cutting_out = cut;
    *seconds_out = simulate(s, &cut);
}

/* First and last columns as rows lie. */
static stint_status find_reach(const sti_sparse_natural *t, int32_t **first_out,
                               int32_t **last_out)
{
    int32_t *first = sti_pages_array(t->n, sizeof *first, "trsv.reach");
    int32_t *last = sti_pages_array(t->n, sizeof *last, "trsv.reach");
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
                                       const int32_t *level,
                                       const sti_stretch_reach *reach,
                                       const sti_stretch_workers *workers,
                                       double serial_s, sti_trsv_cutting *cutting_out,
                                       double *seconds_out)
{
    simulation s = {.t = t, .level = level, .workers = workers};
    int32_t *first = NULL, *last = NULL;
    stint_status st = STINT_OK;
    *seconds_out = INFINITY;
    if (reach)
        s.reach = *reach;
    else
        st = find_reach(t, &first, &last);
    if (st == STINT_OK && !reach)
        s.reach = (sti_stretch_reach){first, last};
    s.end_s = sti_alloc_array(t->n / LEAST_ROWS + 2 + workers->ranks * workers->threads,
                              sizeof *s.end_s, "trsv.stretches");
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
