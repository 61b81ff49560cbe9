/* Solves of a plan of ranks. */
#include <sched.h>
#include <string.h>
#if defined(__SSE2__)
#include <xmmintrin.h>
#endif

#include "base/clock.h"
#include "base/fail.h"
#include "base/memory.h"
#include "solve/rank_trsv_priv.h"

/* A wait spins so long, then lets others run; messages and lost ranks are looked for
 * every so many turns. */
enum { SPINS = 1000, BETWEEN = 50, WATCH = 2000 };

typedef struct solving {
    sti_rank_trsv *p;
    const sti_sparse_kernels *kernels;
    const void *b; /* at the places of the triangle */
    void *x;
    int64_t ld;
    long long base; /* of progress */
    bool walks;     /* other work on rows: `row`, or none */
    sti_trsv_row_fn *row;
    void *row_arg;
    sti_rank_span_fn *span;
    const void *span_user;
    sti_trsv_span *spans; /* [own tasks] or NULL: nobody watches */
    int64_t begun_ns;
} solving;

/* ---- waiting ---- */

static void pause_briefly(void)
{
#if defined(__SSE2__)
    _mm_pause();
#endif
}

static long long done_of(const sti_trsv_progress *progress)
{
    return atomic_load_explicit(&progress->done, memory_order_acquire);
}

static void tell(sti_trsv_progress *progress, long long done)
{
    atomic_store_explicit(&progress->done, done, memory_order_release);
}

/* Messages that came make their tasks done; by one thread at a time. */
static void take_messages(sti_rank_trsv *p, long long base)
{
    if (p->in_count == 0 || pthread_mutex_trylock(&p->net) != 0)
        return;
    memset(p->came, 0, sizeof *p->came * (size_t)p->in_count);
    if (sti_comm_sweep(p->d.comm, p->receives, p->in_count, p->came) != STINT_OK)
        atomic_store(&p->failed, true);
    else
        for (int64_t k = 0; k < p->in_count; k++)
            if (p->came[k]) {
                const int32_t task = p->in[k].task;
                tell(&p->mirrored[task],
                     base + p->order.task[task + 1] - p->order.task[task]);
            }
    pthread_mutex_unlock(&p->net);
}

static void watch(sti_rank_trsv *p, int rank, int64_t since_ns)
{
    pthread_mutex_lock(&p->net);
    if (sti_comm_watch(p->d.comm, rank, since_ns) != STINT_OK)
        atomic_store(&p->failed, true);
    pthread_mutex_unlock(&p->net);
}

/* false: a rank is lost. */
static bool wait_for(sti_rank_trsv *p, const sti_trsv_progress *progress,
                     long long wanted, int rank, long long base)
{
    int64_t since = 0;
    for (int64_t spin = 0;; spin++) {
        if (done_of(progress) >= wanted)
            return true;
        if (spin % BETWEEN == 0)
            take_messages(p, base);
        if (spin >= SPINS && spin % BETWEEN == 0)
            sched_yield();
        else
            pause_briefly();
        if (spin % WATCH != WATCH - 1)
            continue;
        if (since == 0)
            since = sti_clock_ns();
        if (rank != p->rank && done_of(progress) < wanted)
            watch(p, rank, since);
        if (atomic_load(&p->failed))
            return false;
    }
}

/* ---- tasks ---- */

static void run_step(const solving *s, const sti_trsv_step *step)
{
    const sti_rank_trsv *p = s->p;
    const sti_sparse_triangle *t = &p->triangle;
    void *own = sti_rank_x(p, p->rank);
    if (s->walks)
        for (int32_t k = step->first; s->row && k < step->end; k++)
            s->row(s->row_arg, p->names[k]);
    else if (s->ld > 1)
        s->kernels->block(t, step->first, step->end, step->grouped, s->b, s->ld, own,
                          s->x);
    else if (step->grouped)
        s->kernels->groups(t, step->first, step->end, s->b, own, s->x);
    else
        s->kernels->rows(t, step->first, step->end, s->b, own, s->x);
}

/* x of a task, from one of its rows on. */
static void *rows_of(const sti_rank_trsv *p, int32_t task, int32_t low)
{
    const size_t row = (size_t)sti_rank_ld(p) * sti_trsv_real_bytes(&p->real);
    return (char *)sti_rank_x(p, sti_rank_of_task(p, task)) +
           (size_t)(p->task_slot[task] + low) * row;
}

/* x of a parcel, or what a walk makes of its rows. */
static sti_rank_span span_of(const solving *s, const sti_rank_parcel *parcel)
{
    const sti_rank_trsv *p = s->p;
    const int64_t first = p->task_slot[parcel->task];
    if (s->walks)
        return s->span(s->span_user, sti_rank_of_task(p, parcel->task),
                       first + parcel->low, first + parcel->high);
    const size_t row = (size_t)sti_rank_ld(p) * sti_trsv_real_bytes(&p->real);
    return (sti_rank_span){rows_of(p, parcel->task, parcel->low),
                           (size_t)(parcel->high - parcel->low) * row};
}

static void send_task(const solving *s, int64_t own_task)
{
    sti_rank_trsv *p = s->p;
    const int32_t first = p->task_out[own_task], end = p->task_out[own_task + 1];
    if (first == end)
        return;
    pthread_mutex_lock(&p->net);
    for (int32_t k = first; k < end; k++) {
        const sti_rank_parcel *parcel = &p->out[k];
        const sti_rank_span span = span_of(s, parcel);
        sti_comm_send(p->d.comm, parcel->rank, STI_TAG_RANK_X + (uint32_t)parcel->task,
                      span.bytes, span.n_bytes, &p->sends[k]);
    }
    pthread_mutex_unlock(&p->net);
}

/* false: a rank is lost. */
static bool wait_for_step(const solving *s, const sti_trsv_step *step)
{
    sti_rank_trsv *p = s->p;
    for (int32_t w = step->wait_first; w < step->wait_end; w++) {
        const sti_trsv_wait *wait = &p->waits[w];
        if (!wait_for(p, p->progress[wait->task], s->base + wait->rows,
                      sti_rank_of_task(p, wait->task), s->base))
            return false;
    }
    return true;
}

static bool watch_wait(const solving *s, const sti_trsv_step *step, sti_trsv_span *span)
{
    const int64_t before = sti_clock_ns();
    const bool there = wait_for_step(s, step);
    span->wait_s += sti_seconds_since(before);
    return there;
}

static void task_piece(void *arg, int64_t own_task, int worker)
{
    const solving *s = arg;
    sti_rank_trsv *p = s->p;
    const int64_t task = p->rank + own_task * p->size;
    const int32_t first = p->task_slot[task];
    sti_trsv_span *span = s->spans ? &s->spans[own_task] : NULL;
    if (span)
        *span = (sti_trsv_span){worker, sti_seconds_since(s->begun_ns), 0, 0};
    for (int32_t k = p->task_step[own_task]; k < p->task_step[own_task + 1]; k++) {
        const sti_trsv_step *step = &p->steps[k];
        const bool waits = step->wait_first < step->wait_end;
        if (waits && !(span ? watch_wait(s, step, span) : wait_for_step(s, step)))
            return;
        run_step(s, step);
        tell(p->progress[task], s->base + step->end - first);
    }
    send_task(s, own_task);
    if (span)
        span->to_s = sti_seconds_since(s->begun_ns);
}

/* ---- before and after ---- */

/* Nobody reads x of the last solve any more, and messages of this one may come. */
static void begin(solving *s)
{
    sti_rank_trsv *p = s->p;
    for (int r = 0; r < p->size; r++)
        if (r != p->rank && sti_window_is_shared(&p->x, r) &&
            !wait_for(p, sti_rank_finished(p, r), p->solves, r, 0))
            return;
    for (int64_t k = 0; k < p->in_count; k++) {
        const sti_rank_parcel *parcel = &p->in[k];
        const sti_rank_span span = span_of(s, parcel);
        sti_comm_receive(p->d.comm, parcel->rank,
                         STI_TAG_RANK_X + (uint32_t)parcel->task, span.bytes,
                         span.n_bytes, &p->receives[k]);
    }
    p->solves++;
}

/* Receives that no row had to wait for, and sends. */
static stint_status finish_messages(sti_rank_trsv *p)
{
    stint_status st = sti_comm_wait_all(p->d.comm, p->receives, (int)p->in_count);
    if (st == STINT_OK)
        st = sti_comm_wait_all(p->d.comm, p->sends, (int)p->out_count);
    return st;
}

/* Parts of ranks elsewhere come as a whole. */
static stint_status exchange_parts(sti_rank_trsv *p)
{
    const size_t row = (size_t)sti_rank_ld(p) * sti_trsv_real_bytes(&p->real);
    for (int r = 0; r < p->size; r++) {
        if (sti_window_is_shared(&p->x, r))
            continue;
        sti_comm_receive(p->d.comm, r, STI_TAG_RANK_PART, sti_rank_x(p, r),
                         p->x.stride_bytes, &p->part_requests[2 * r]);
        sti_comm_send(p->d.comm, r, STI_TAG_RANK_PART, sti_rank_x(p, p->rank),
                      (size_t)p->own * row, &p->part_requests[2 * r + 1]);
    }
    return sti_comm_wait_all(p->d.comm, p->part_requests, 2 * p->size);
}

typedef struct taking {
    const sti_rank_trsv *p;
    char *x; /* at the first column wanted */
    int64_t columns, width;
} taking;

/* x of a task from its window to its natural rows. */
static void take_piece(void *arg, int64_t task, int worker)
{
    const taking *t = arg;
    const sti_rank_trsv *p = t->p;
    const size_t real = sti_trsv_real_bytes(&p->real);
    const size_t from_row = real * (size_t)sti_rank_ld(p);
    const size_t to_row = real * (size_t)t->columns, width = real * (size_t)t->width;
    const char *from = rows_of(p, (int32_t)task, 0);
    (void)worker;
    for (int32_t q = p->order.task[task]; q < p->order.task[task + 1]; q++) {
        char *to = t->x + (size_t)p->order.row[q] * to_row;
        if (width == sizeof(double))
            memcpy(to, from, sizeof(double));
        else
            memcpy(to, from, width);
        from += from_row;
    }
}

/* All of x, or the own rows of a block. */
static stint_status take_x(const solving *s, bool spread, int64_t columns,
                           int64_t width, char *x)
{
    sti_rank_trsv *p = s->p;
    taking t = {p, x, columns, width};
    const sti_team team = {p->d.threads};
    stint_status st = STINT_OK;
    if (!spread) {
        for (int64_t k = 0; s->ld > 1 && k < p->own_tasks; k++)
            take_piece(&t, p->rank + k * p->size, 0);
        return st;
    }
    st = exchange_parts(p);
    for (int64_t task = 0; st == STINT_OK && task < p->order.tasks; task++) {
        const int r = sti_rank_of_task(p, task);
        if (sti_window_is_shared(&p->x, r) &&
            !wait_for(p, p->progress[task],
                      s->base + p->order.task[task + 1] - p->order.task[task], r, 0))
            return STINT_E_PEER; /* its words come later */
    }
    if (st == STINT_OK)
        sti_team_run(&team, p->order.tasks, take_piece, &t);
    return st;
}

/* The words of a failure that any thread met become this one's. */
static stint_status conclude(sti_rank_trsv *p, stint_status st)
{
    if (!atomic_load(&p->failed) && st == STINT_OK)
        return STINT_OK;
    bool came[1];
    const stint_status lost = sti_comm_sweep(p->d.comm, p->receives, 0, came);
    return lost != STINT_OK ? lost : st;
}

static stint_status run_block(solving *s)
{
    sti_rank_trsv *p = s->p;
    const sti_team team = {p->d.threads};
    s->base = p->solves * p->d.n;
    begin(s);
    if (atomic_load(&p->failed))
        return STINT_E_PEER;
    sti_team_take(&team, p->own_tasks, task_piece, s);
    if (atomic_load(&p->failed))
        return STINT_E_PEER;
    return finish_messages(p);
}

static void finish(const sti_rank_trsv *p)
{
    tell(sti_rank_finished(p, p->rank), p->solves);
}

static void pack_b(const sti_rank_trsv *p, const char *b, int64_t columns,
                   int64_t width)
{
    const size_t real = sti_trsv_real_bytes(&p->real);
    const size_t row = real * (size_t)sti_rank_ld(p);
    for (int64_t k = 0; k < p->own; k++) {
        char *to = (char *)p->b + (size_t)k * row;
        memset(to, 0, row);
        memcpy(to, b + (size_t)p->names[k] * real * (size_t)columns,
               real * (size_t)width);
    }
}

static stint_status solve_columns(sti_rank_trsv *p, int64_t columns, const void *b,
                                  void *x, bool spread, sti_trsv_span *spans)
{
    const int64_t block = sti_rank_ld(p);
    const size_t real = sti_trsv_real_bytes(&p->real);
    stint_status st = STINT_OK;
    for (int64_t c = 0; st == STINT_OK && c < columns; c += block) {
        const int64_t width = columns - c < block ? columns - c : block;
        const size_t at = real * (size_t)c;
        pack_b(p, (const char *)b + at, columns, width);
        solving s = {.p = p,
                     .kernels = sti_trsv_kernels(&p->real),
                     .b = p->b,
                     .x = sti_rank_x(p, p->rank),
                     .ld = block,
                     .spans = spans,
                     .begun_ns = sti_clock_ns()};
        st = run_block(&s);
        if (st == STINT_OK)
            st = take_x(&s, spread, columns, width, (char *)x + at);
        finish(p);
    }
    return st;
}

static stint_status solve(sti_rank_trsv *p, int64_t columns, const void *b, void *x,
                          bool spread, sti_trsv_span *spans)
{
    stint_status st;
    sti_comm_set_context(p->d.comm, "a triangular solve", 0);
    if (p->d.columns > 1) {
        st = solve_columns(p, columns, b, x, spread, spans);
    } else {
        solving s = {.p = p,
                     .kernels = sti_trsv_kernels(&p->real),
                     .b = b,
                     .x = x,
                     .ld = 1,
                     .spans = spans,
                     .begun_ns = sti_clock_ns()};
        st = run_block(&s);
        if (st == STINT_OK)
            st = take_x(&s, spread, 1, 1, x);
        finish(p);
    }
    return conclude(p, st);
}

stint_status sti_rank_trsv_solve(sti_rank_trsv *plan, int64_t columns, const void *b,
                                 void *x, bool spread)
{
    return solve(plan, columns, b, x, spread, NULL);
}

stint_status sti_rank_trsv_watch(sti_rank_trsv *plan, sti_trsv_span *spans_out)
{
    sti_rank_trsv *p = plan;
    const int64_t tasks = p->order.tasks, most = (tasks + p->size - 1) / p->size;
    const size_t bytes = sizeof(sti_trsv_span) * (size_t)most;
    sti_trsv_span *own = sti_alloc(bytes, "ranks.spans");
    sti_trsv_span *all = sti_alloc_array(p->size, bytes, "ranks.spans");
    void *x = sti_alloc_array(p->d.n, sti_trsv_real_bytes(&p->real), "ranks.watched");
    stint_status st;
    STI_TRY(sti_comm_agree(p->d.comm, own && all && x ? STINT_OK : STINT_E_MEMORY));
    STI_TRY(sti_comm_barrier(p->d.comm));
    STI_TRY(solve(p, 1, x, x, false, own)); /* zeros take the time of any side */
    STI_TRY(sti_comm_gather(p->d.comm, 0, own, bytes, all));
    for (int64_t t = 0; p->rank == 0 && t < tasks; t++)
        spans_out[t] = all[t % p->size * most + t / p->size];
out:
    sti_free(own);
    sti_free(all);
    sti_free(x);
    return st;
}

stint_status sti_rank_trsv_walk(sti_rank_trsv *plan, sti_trsv_row_fn *fn, void *arg,
                                sti_rank_span_fn *span, const void *span_user)
{
    solving s = {.p = plan,
                 .walks = true,
                 .row = fn,
                 .row_arg = arg,
                 .span = span,
                 .span_user = span_user};
    sti_comm_set_context(plan->d.comm, "a factor", 0);
    const stint_status st = run_block(&s);
    finish(plan);
    return conclude(plan, st);
}

/* ---- a vector of rows that are everywhere ---- */

static void move_rows(const sti_rank_trsv *p, int r, bool pack, size_t row, char *part,
                      char *vector)
{
    for (int64_t t = r; t < p->order.tasks; t += p->size)
        for (int32_t q = p->order.task[t]; q < p->order.task[t + 1]; q++, part += row) {
            char *natural = vector + (size_t)p->order.row[q] * row;
            memcpy(pack ? part : natural, pack ? natural : part, row);
        }
}

stint_status sti_rank_trsv_gather(const sti_rank_trsv *plan, size_t row_bytes,
                                  void *vector)
{
    const sti_rank_trsv *p = plan;
    const size_t part = row_bytes * (size_t)p->stride;
    char *own = sti_alloc(part, "ranks.gather");
    char *all = sti_alloc_array(p->size, part, "ranks.gather");
    stint_status st = sti_comm_agree(p->d.comm, own && all ? STINT_OK : STINT_E_MEMORY);
    if (st == STINT_OK) {
        move_rows(p, p->rank, true, row_bytes, own, vector);
        st = sti_comm_gather_all(p->d.comm, own, part, all);
    }
    for (int r = 0; st == STINT_OK && r < p->size; r++)
        move_rows(p, r, false, row_bytes, all + (size_t)r * part, vector);
    sti_free(own);
    sti_free(all);
    return st;
}
