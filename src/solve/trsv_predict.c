/* What a solve would take: rows flow through a core that begins them in their order and
 * can have so many of them under way, and each waits for what it reads. */
#include <math.h>

#include "base/memory.h"
#include "base/pages.h"
#include "solve/trsv_cost.h"

/* Rows are looked at in stretches spread over all of them, before each of which lines
 * that rows use get warm. The core has entries of so much work under way at once; a row
 * is as much as a few entries. */
enum { ONE_IN = 16 }; /* rows that are looked at, of so many */
enum { STRETCH_MOST = 256, STRETCHES = 8, WINDOW = 72, ROW_WORK = 6, RING = 256 };

/* Lines of a vector that a core's own cache has, about: half a megabyte of one that is
 * shared with the matrix that passes by. */
enum { LINES = 8192, LINE_REALS = 8 };

typedef struct lines {
    int32_t *held; /* [count] a line's number and one */
    int64_t count, last;
} lines;

typedef struct flow {
    const sti_trsv_costs *c;
    const sti_sparse_natural *t;
    const sti_trsv_order *order;
    int32_t *position;    /* [n] of a row in the order; NULL: as they lie */
    lines places, own;    /* of b and x; of x in the plan's order */
    double miss_s;        /* for a line that is not there, and not the next one */
    double *ready;        /* [n] when a row can be read; 0: long since */
    double clock;         /* when the next row can begin */
    double retired[RING]; /* when the row, and all before it, were done */
    int64_t work[RING];   /* work up to and with it */
    int64_t newest, oldest, total;
} flow;

static int64_t row_at(const flow *f, int64_t p)
{
    return f->order ? f->order->row[p] : sti_trsv_row(f->t, p);
}

/* When row i is done that begins at `begin`. */
static double finish_of(const flow *f, int64_t i, double begin)
{
    double t = begin;
    for (int64_t k = 0; k < f->t->count[i]; k++) {
        const double there = f->ready[f->t->column[sti_trsv_entry(f->t, i, k)]];
        t = (there > t ? there : t) + f->c->chain_s;
    }
    return t + f->c->link_s;
}

/* Rows that far back must be done before more may begin. */
static void keep_window(flow *f, int64_t work)
{
    f->total += work;
    while (f->oldest < f->newest && (f->work[f->oldest % RING] + WINDOW < f->total ||
                                     f->newest - f->oldest >= RING - 1)) {
        f->clock = fmax(f->clock, f->retired[f->oldest % RING]);
        f->oldest++;
    }
}

/* Is an element's line neither held nor the next one, which comes by itself? */
static bool misses(lines *l, int64_t element)
{
    const int64_t line = element / LINE_REALS;
    int32_t *held = &l->held[line % l->count];
    const bool near = line - l->last <= 1 && l->last - line <= 1;
    const bool missed = *held != (int32_t)line + 1 && !near;
    *held = (int32_t)line + 1;
    l->last = line;
    return missed;
}

/* What a row waits for lines. */
static double lines_s(flow *f, int64_t i)
{
    double seconds = misses(&f->places, i) ? f->c->scatter_s : 0;
    for (int64_t k = 0; k < f->t->count[i]; k++) {
        const int64_t j = f->t->column[sti_trsv_entry(f->t, i, k)];
        seconds += misses(&f->own, f->position ? f->position[j] : j) ? f->miss_s : 0;
    }
    (void)misses(&f->own, f->position ? f->position[i] : i);
    return seconds;
}

/* `rows` rows from p on in one go. */
static void begin_rows(flow *f, int64_t p, int rows)
{
    const int32_t length = f->t->count[row_at(f, p)];
    const double cost = rows == 1
                            ? f->c->row_s + length * f->c->entry_s
                            : rows * (f->c->group_row_s + length * f->c->group_entry_s);
    double done = 0, waiting = 0;
    keep_window(f, length + ROW_WORK);
    for (int r = 0; r < rows; r++)
        done = fmax(done, finish_of(f, row_at(f, p + r), f->clock));
    for (int r = 0; r < rows; r++) {
        f->ready[row_at(f, p + r)] = done;
        waiting += lines_s(f, row_at(f, p + r));
    }
    f->clock += cost + waiting;
    const double before =
        f->newest > f->oldest ? f->retired[(f->newest - 1) % RING] : 0;
    f->retired[f->newest % RING] = fmax(done, before);
    f->work[f->newest++ % RING] = f->total;
}

static bool are_together(const flow *f, int64_t p, int64_t end)
{
    const sti_trsv_order *o = f->order;
    if (!o || p + STI_SPARSE_LANES > end)
        return false;
    for (int r = 1; r < STI_SPARSE_LANES; r++)
        if (o->level[o->row[p + r]] != o->level[o->row[p]] ||
            f->t->count[o->row[p + r]] != f->t->count[o->row[p]])
            return false;
    return true;
}

static double flow_stretch(flow *f, int64_t first, int64_t end)
{
    const double begin = f->clock;
    for (int64_t p = first; p < end;) {
        const int rows = are_together(f, p, end) ? STI_SPARSE_LANES : 1;
        begin_rows(f, p, rows);
        p += rows;
    }
    return f->clock - begin;
}

static double entries_of(const sti_sparse_natural *t)
{
    double entries = 0;
    for (int64_t i = 0; i < t->n; i++)
        entries += t->count[i];
    return entries;
}

/* Matrix, starts, places, right-hand side and answer pass by once, what is written also
 * on its way in; by a copy's order x is written twice. */
static double passing_s(const sti_trsv_costs *c, double entries, double rows,
                        double real, bool copied)
{
    const double bytes = entries * (4 + real) + rows * (8 + (copied ? 7 : 4) * real);
    return bytes / (bytes > c->far_bytes ? c->far_bytes_per_s : c->near_bytes_per_s);
}

static double reading_s(const sti_trsv_costs *c, double entries, double rows,
                        double real)
{
    return passing_s(c, entries, rows, real, false);
}

static stint_status flow_init(flow *f)
{
    const int64_t n = f->t->n;
    const int64_t all = n / LINE_REALS + 1, count = all < LINES ? all : LINES;
    f->ready = sti_alloc_array(n, sizeof *f->ready, "trsv.flow");
    f->places.held = sti_alloc_array(2 * count, sizeof *f->places.held, "trsv.flow");
    f->places.count = f->own.count = count;
    f->own.held = f->places.held ? f->places.held + count : NULL;
    if (f->order)
        f->position = sti_pages_array(n, sizeof *f->position, "trsv.flow");
    if (!f->ready || !f->places.held || (f->order && !f->position))
        return STINT_E_MEMORY;
    for (int64_t p = 0; f->order && p < n; p++)
        f->position[f->order->row[p]] = (int32_t)p;
    return STINT_OK;
}

/* Seconds of all rows, from those of some stretches. */
static double flow_rows(flow *f)
{
    const int64_t n = f->t->n, share = n / (ONE_IN * STRETCHES) + 64;
    const int64_t length = share < STRETCH_MOST ? share : STRETCH_MOST;
    const int64_t step = n / STRETCHES + 1, warm = 2 * length;
    double seconds = 0, rows = 0;
    for (int64_t p = 0; p < n; p += step) {
        const int64_t end = n - p < length ? n : p + length;
        for (int64_t q = p > warm ? p - warm : 0; q < p; q++)
            (void)lines_s(f, row_at(f, q));
        seconds += flow_stretch(f, p, end);
        rows += (double)(end - p);
    }
    return rows > 0 ? seconds * (double)n / rows : 0;
}

/* Entries of a row, and the share of rows that read the one before them: of a sample.
 */
static double sample_rows(const sti_sparse_natural *t, double *chained_out)
{
    enum { SAMPLE = 64 };
    const int64_t step = t->n / SAMPLE + 1;
    double rows = 0, entries = 0, chained = 0;
    for (int64_t p = step / 2; p < t->n; p += step, rows++) {
        const int64_t i = sti_trsv_row(t, p), count = t->count[i];
        entries += (double)count;
        chained += p > 0 && count > 0 &&
                   t->column[sti_trsv_entry(t, i, count - 1)] == sti_trsv_row(t, p - 1);
    }
    *chained_out = rows > 0 ? chained / rows : 0;
    return rows > 0 ? entries / rows : 0;
}

double sti_trsv_predict_roughly(const sti_trsv_costs *costs, const sti_trsv_desc *d,
                                const sti_sparse_natural *t)
{
    double chained;
    const double n = (double)t->n, entries = n * sample_rows(t, &chained);
    const double work = entries * costs->entry_s + n * costs->row_s;
    const double chain = n * chained * (costs->chain_s + costs->link_s);
    return fmax(fmax(work, chain),
                reading_s(costs, entries, n, (double)sti_trsv_real_bytes(d)));
}

double sti_trsv_predict_serial(const sti_trsv_costs *costs, const sti_trsv_desc *d,
                               const sti_sparse_natural *t, const sti_trsv_order *order)
{
    const double real = (double)sti_trsv_real_bytes(d), n = (double)t->n;
    flow *f = sti_alloc(sizeof *f, "trsv.flow");
    double seconds = INFINITY;
    if (!f)
        return seconds;
    *f = (flow){.c = costs, .t = t, .order = order};
    f->miss_s =
        n * real > costs->far_bytes / 2 ? costs->scatter_s : costs->scatter_s / 2;
    if (flow_init(f) == STINT_OK)
        seconds =
            fmax(flow_rows(f), passing_s(costs, entries_of(t), n, real, order != NULL));
    sti_free(f->ready);
    sti_free(f->position);
    sti_free(f->places.held);
    sti_free(f);
    return seconds;
}

double sti_trsv_predict_panels(const sti_trsv_costs *costs, const sti_trsv *plan)
{
    const double n = (double)plan->natural.n, values = (double)plan->panel_values;
    const double rows = (double)plan->panel_row_count;
    const double seconds =
        values * costs->panel_s + rows * costs->entry_s + n * costs->row_s;
    return fmax(seconds, reading_s(costs, values * 2 / 3, n + rows / 3, 8));
}

double sti_trsv_predict_push(const sti_trsv_costs *costs, const sti_sparse_natural *t)
{
    const double entries = entries_of(t), n = (double)t->n;
    return fmax(entries * costs->push_s + n * costs->row_s,
                reading_s(costs, entries, n, 8));
}

/* ---- tasks ---- */

static double step_work(const sti_trsv_costs *c, const sti_trsv *plan,
                        const sti_trsv_step *s)
{
    const double rows = s->end - s->first;
    const double entries = plan->start[s->end] - plan->start[s->first];
    return s->grouped ? rows * c->group_row_s + entries * c->group_entry_s
                      : rows * c->row_s + entries * c->entry_s;
}

/* The end of the step that ends with so many rows of a task. */
static double end_of(const sti_trsv *plan, const double *ends,
                     const sti_trsv_wait *wait)
{
    const int32_t row = plan->order.task[wait->task] + wait->rows;
    int32_t low = plan->task_step[wait->task], high = plan->task_step[wait->task + 1];
    while (low + 1 < high) {
        const int32_t middle = low + (high - low) / 2;
        if (plan->steps[middle].first < row)
            low = middle;
        else
            high = middle;
    }
    return ends[low];
}

static double run_task(const sti_trsv_costs *c, const sti_trsv *plan, double scale,
                       int64_t task, double begin, double *ends)
{
    double t = begin;
    for (int32_t k = plan->task_step[task]; k < plan->task_step[task + 1]; k++) {
        const sti_trsv_step *s = &plan->steps[k];
        for (int32_t w = s->wait_first; w < s->wait_end; w++) {
            const double there = end_of(plan, ends, &plan->waits[w]);
            t = fmax(t + 1e-9, there + c->handoff_s);
        }
        t += scale * step_work(c, plan, s);
        ends[k] = t;
    }
    return t;
}

double sti_trsv_predict_tasks(const sti_trsv_costs *costs, const sti_trsv *plan,
                              double serial_s)
{
    enum { MOST = 64 };
    double at[MOST] = {0}, work = 0, last = 0;
    const int threads = plan->d.threads < MOST ? plan->d.threads : MOST;
    double *ends = sti_alloc_array(plan->step_count, sizeof *ends, "trsv.ends");
    if (!ends)
        return INFINITY;
    for (int64_t k = 0; k < plan->step_count; k++)
        work += step_work(costs, plan, &plan->steps[k]);
    const double scale = work > 0 ? serial_s / work : 1;
    for (int64_t task = 0; task < plan->order.tasks; task++) {
        int free = 0;
        for (int w = 1; w < threads; w++)
            free = at[w] < at[free] ? w : free;
        at[free] = run_task(costs, plan, scale, task, at[free] + 2e-8, ends);
        last = fmax(last, at[free]);
    }
    sti_free(ends);
    /* Threads begin, and are waited for; together they read little faster than one. */
    const double reading =
        reading_s(costs, plan->start[plan->natural.n], (double)plan->natural.n,
                  (double)sti_trsv_real_bytes(&plan->d));
    return fmax(last + 2e-6, reading / 1.2);
}
