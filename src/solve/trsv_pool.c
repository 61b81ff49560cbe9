/* Solves of a plan: tasks that threads take in ascending order, or one thread.
 *
 * A task waits for rows of tasks before it, which have begun by then, so however late a
 * thread is nothing can stop for good. */
#include "base/clock.h"
#include "base/memory.h"
#include "solve/trsv_priv.h"
#include "solve/trsv_walk.h"

#include <sched.h>
#include <string.h>
#if defined(__SSE2__)
#include <xmmintrin.h>
#endif

enum { SPINS = 1000, SPINS_BETWEEN = 50 };

typedef struct solving {
    sti_trsv *plan;
    const sti_sparse_kernels *kernels;
    const void *b;
    void *x;
    int64_t columns;
    int64_t ld;           /* columns of b and x as they lie; 0: one, by vectors */
    int64_t base;         /* of the progress of this solve */
    sti_trsv_row_fn *row; /* other work on rows; NULL: a solve */
    void *row_arg;
    sti_trsv_span *spans; /* [tasks] or NULL: nobody watches */
    int64_t begun_ns;
} solving;

static void pause_briefly(void)
{
#if defined(__SSE2__)
    _mm_pause();
#endif
}

static void wait_for(const sti_trsv_progress *progress, long long rows)
{
    for (int spin = 0;; spin++) {
        if (atomic_load_explicit(&progress->done, memory_order_acquire) >= rows)
            return;
        if (spin >= SPINS && spin % SPINS_BETWEEN == 0)
            sched_yield();
        else
            pause_briefly();
    }
}

static void run_step(const solving *s, const sti_trsv_step *step)
{
    sti_trsv *plan = s->plan;
    const sti_sparse_triangle *t = &plan->triangle;
    if (s->row)
        for (int32_t p = step->first; p < step->end; p++)
            s->row(s->row_arg, plan->place[p]);
    else if (s->ld > 0)
        s->kernels->block(t, step->first, step->end, step->grouped, s->b, s->ld,
                          plan->own, s->x);
    else if (step->grouped)
        s->kernels->groups(t, step->first, step->end, s->b, plan->own, s->x);
    else
        s->kernels->rows(t, step->first, step->end, s->b, plan->own, s->x);
}

static void wait_for_step(const solving *s, const sti_trsv_step *step)
{
    const sti_trsv *plan = s->plan;
    for (int32_t w = step->wait_first; w < step->wait_end; w++)
        wait_for(&plan->progress[plan->waits[w].task], s->base + plan->waits[w].rows);
}

static void watch_wait(const solving *s, const sti_trsv_step *step, sti_trsv_span *span)
{
    const int64_t before = sti_clock_ns();
    wait_for_step(s, step);
    span->wait_s += sti_seconds_since(before);
}

static void task_piece(void *arg, int64_t task, int worker)
{
    const solving *s = arg;
    sti_trsv *plan = s->plan;
    const int32_t first = plan->order.task[task];
    sti_trsv_span *span = s->spans ? &s->spans[task] : NULL;
    if (span)
        *span = (sti_trsv_span){worker, sti_seconds_since(s->begun_ns), 0, 0};
    for (int32_t k = plan->task_step[task]; k < plan->task_step[task + 1]; k++) {
        const sti_trsv_step *step = &plan->steps[k];
        if (span && step->wait_first < step->wait_end)
            watch_wait(s, step, span);
        else
            wait_for_step(s, step);
        run_step(s, step);
        if (step->told)
            atomic_store_explicit(&plan->progress[task].done,
                                  s->base + step->end - first, memory_order_release);
    }
    if (span)
        span->to_s = sti_seconds_since(s->begun_ns);
}

/* ---- one thread ---- */

/* x in the order of substitution and back; one column of [n, ld]. */
static void panels_column(const solving *s, int64_t c)
{
    sti_trsv *plan = s->plan;
    const sti_sparse_natural *t = &plan->natural;
    const int64_t ld = s->ld > 0 ? s->ld : 1;
    for (int64_t p = 0; p < t->n; p++) {
        const int64_t from = sti_trsv_row(t, p) * ld + c;
        if (plan->d.single)
            ((float *)plan->own)[p] = ((const float *)s->b)[from];
        else
            ((double *)plan->own)[p] = ((const double *)s->b)[from];
    }
    s->kernels->panels(plan->panel_count, plan->panels, plan->panel_rows,
                       plan->panel_value, plan->diagonal, plan->own);
    for (int64_t p = 0; p < t->n; p++) {
        const int64_t to = sti_trsv_row(t, p) * ld + c;
        if (plan->d.single)
            ((float *)s->x)[to] = ((const float *)plan->own)[p];
        else
            ((double *)s->x)[to] = ((const double *)plan->own)[p];
    }
}

static void serial_piece(void *arg, int64_t piece, int worker)
{
    const solving *s = arg;
    sti_trsv *plan = s->plan;
    const int64_t columns = s->ld > 0 ? s->columns : 1;
    (void)piece;
    (void)worker;
    if (s->row) {
        for (int64_t p = 0; p < plan->natural.n; p++)
            s->row(s->row_arg, sti_trsv_row(&plan->natural, p));
    } else if (plan->info.strategy == STI_TRSV_SUPERNODE) {
        for (int64_t c = 0; c < columns; c++)
            panels_column(s, c);
    } else if (plan->info.strategy == STI_TRSV_PUSH) {
        const int64_t ld = s->ld > 0 ? s->ld : 1;
        if (s->b != s->x)
            memcpy(s->x, s->b,
                   (size_t)(plan->natural.n * ld) * sti_trsv_real_bytes(&plan->d));
        s->kernels->push(&plan->natural, s->x, ld);
    } else if (s->ld > 0) {
        s->kernels->natural_block(&plan->natural, s->b, s->ld, s->x);
    } else {
        s->kernels->natural(&plan->natural, s->b, s->x);
    }
}

static void solve_block(solving *s)
{
    sti_trsv *plan = s->plan;
    const sti_team team = {plan->info.threads};
    if (!plan->steps) {
        sti_team_run(&sti_team_serial, 1, serial_piece, s);
        return;
    }
    s->base = plan->solves++ * plan->natural.n;
    sti_team_take(&team, plan->order.tasks, task_piece, s);
}

/* ---- blocks of right-hand sides ---- */

enum { PACK_ROWS = 4096 };

typedef struct packing {
    const sti_trsv *plan;
    const void *from;
    void *to;
    int64_t from_ld, to_ld, width, fill;
} packing;

static void pack_piece(void *arg, int64_t piece, int worker)
{
    const packing *p = arg;
    const int64_t n = p->plan->natural.n, first = piece * PACK_ROWS;
    const int64_t end = n - first < PACK_ROWS ? n : first + PACK_ROWS;
    const size_t real = sti_trsv_real_bytes(&p->plan->d);
    const size_t width = (size_t)p->width * real;
    (void)worker;
    for (int64_t i = first; i < end; i++) {
        char *to = (char *)p->to + (size_t)(i * p->to_ld) * real;
        memcpy(to, (const char *)p->from + (size_t)(i * p->from_ld) * real, width);
        memset(to + width, 0, (size_t)p->fill * real);
    }
}

static void pack(const packing *p)
{
    const sti_team team = {p->plan->info.threads};
    packing copy = *p;
    sti_team_run(&team, (p->plan->natural.n + PACK_ROWS - 1) / PACK_ROWS, pack_piece,
                 &copy);
}

/* Columns beyond the last are zeros, and so are their answers. */
static void solve_columns(sti_trsv *plan, int64_t columns, const void *b, void *x)
{
    const int64_t block = sti_trsv_block(&plan->d);
    const size_t real = sti_trsv_real_bytes(&plan->d);
    for (int64_t c = 0; c < columns; c += block) {
        const int64_t width = columns - c < block ? columns - c : block;
        pack(&(packing){.plan = plan,
                        .from = (const char *)b + (size_t)c * real,
                        .to = plan->pack,
                        .from_ld = columns,
                        .to_ld = block,
                        .width = width,
                        .fill = block - width});
        solve_block(&(solving){.plan = plan,
                               .kernels = sti_trsv_kernels(&plan->d),
                               .b = plan->pack,
                               .x = plan->pack,
                               .columns = width,
                               .ld = block});
        pack(&(packing){.plan = plan,
                        .from = plan->pack,
                        .to = (char *)x + (size_t)c * real,
                        .from_ld = block,
                        .to_ld = columns,
                        .width = width});
    }
}

void sti_trsv_solve(sti_trsv *plan, int64_t columns, const void *b, void *x)
{
    if (columns > 1)
        solve_columns(plan, columns, b, x);
    else
        solve_block(&(solving){.plan = plan,
                               .kernels = sti_trsv_kernels(&plan->d),
                               .b = b,
                               .x = x,
                               .columns = 1});
}

void sti_trsv_walk(sti_trsv *plan, sti_trsv_row_fn *fn, void *arg)
{
    solve_block(&(solving){.plan = plan, .row = fn, .row_arg = arg});
}

void sti_trsv_watch(sti_trsv *plan, const void *b, void *x, sti_trsv_span *spans)
{
    solving s = {.plan = plan,
                 .kernels = sti_trsv_kernels(&plan->d),
                 .b = b,
                 .x = x,
                 .columns = 1,
                 .spans = spans,
                 .begun_ns = sti_clock_ns()};
    solve_block(&s);
    if (!plan->steps)
        spans[0] = (sti_trsv_span){0, 0, sti_seconds_since(s.begun_ns), 0};
}
