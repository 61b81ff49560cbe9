/* How rows are cut: a solve is simulated for some numbers of tasks in the order of
 * levels, and for stretches of rows as they lie (trsv_stretch.h), and the fastest is
 * taken. Of levels only their rows are known here, not who reads whom, so a row of a
 * level waits for all rows of the level before it, on other ranks for as long as a link
 * takes beside. */
#include <math.h>
#include <string.h>

#include "base/fail.h"
#include "base/memory.h"
#include "net/link_measure.h"
#include "solve/rank_trsv_priv.h"
#include "solve/trsv_cost.h"

#define LINKS_S 0.2 /* to measure links with, at most */

enum { LINKS_MOST = 1 << 18 }; /* bytes of a message that is measured */
enum { RING = 4 };             /* levels that a task at work may still be waited for */

typedef struct simulation {
    const sti_rank_trsv *p;
    const int32_t *level;
    const sti_trsv_costs *costs;
    const sti_link_model *link; /* NULL: memory is shared */
    double *free_s;             /* [size, threads] */
    double *near_s, *far_s;     /* [RING, size] rows of a level done, as its own rank */
                                /* and as the others see it */
    int64_t first_level;        /* of the ring that is valid */
} simulation;

static double row_s(const simulation *s, int32_t row)
{
    const sti_trsv_costs *c = s->costs;
    return s->p->d.count[row] * c->entry_s + c->row_s + 24 / c->far_bytes_per_s;
}

/* When a rank may begin with rows of a level. */
static double ready_s(const simulation *s, int64_t level, int rank)
{
    double at = 0;
    if (level == 0)
        return at;
    const int64_t slot = (level - 1) % RING * s->p->size;
    for (int r = 0; r < s->p->size; r++)
        at = fmax(at, r == rank ? s->near_s[slot + r] : s->far_s[slot + r]);
    return at;
}

static void forget_level(const simulation *s, int64_t level)
{
    const int64_t slot = level % RING * s->p->size;
    for (int r = 0; r < s->p->size; r++)
        s->near_s[slot + r] = s->far_s[slot + r] = 0;
}

/* The thread of a rank that is free first. */
static double *first_free(const simulation *s, int rank)
{
    double *best = s->free_s + rank * s->p->d.threads;
    for (int t = 1; t < s->p->d.threads; t++)
        if (s->free_s[rank * s->p->d.threads + t] < *best)
            best = &s->free_s[rank * s->p->d.threads + t];
    return best;
}

/* Rows from q on that are of one level; returns their end. */
static int32_t run_piece(const simulation *s, int32_t q, int32_t end, int rank,
                         int64_t *newest, double *now)
{
    const sti_trsv_order *o = &s->p->order;
    const int32_t level = s->level[o->row[q]];
    if (level > *newest)
        forget_level(s, *newest = level);
    /* Rows of a level flow one after the other; the last one's chain is waited for. */
    *now = fmax(*now, ready_s(s, level, rank)) + s->costs->link_s +
           s->p->d.count[o->row[q]] * s->costs->chain_s;
    for (; q < end && s->level[o->row[q]] == level; q++)
        *now += row_s(s, o->row[q]);
    double *near = &s->near_s[level % RING * s->p->size + rank];
    double *far = &s->far_s[level % RING * s->p->size + rank];
    *near = fmax(*near, *now);
    if (!s->link)
        *far = fmax(*far, *now + s->costs->handoff_s);
    return q;
}

/* What lies elsewhere is seen when the task is over and its message there. */
static void send_task(const simulation *s, int32_t rows, int rank, int64_t from_level,
                      int64_t to_level, double now)
{
    const double bytes = (double)rows * (double)sti_rank_ld(s->p) *
                         (double)sti_trsv_real_bytes(&s->p->real);
    const double at = now + sti_link_seconds(s->link, bytes);
    for (int64_t l = to_level; l >= from_level && l > to_level - RING + 1; l--) {
        double *far = &s->far_s[l % RING * s->p->size + rank];
        *far = fmax(*far, at);
    }
}

static double simulate(const simulation *s)
{
    const sti_rank_trsv *p = s->p;
    const sti_trsv_order *o = &p->order;
    double last = 0;
    int64_t newest = -1;
    memset(s->free_s, 0, sizeof(double) * (size_t)(p->size * p->d.threads));
    for (int64_t t = 0; t < o->tasks; t++) {
        const int rank = sti_rank_of_task(p, t);
        double *thread = first_free(s, rank), now = *thread;
        const int64_t from = s->level[o->row[o->task[t]]];
        for (int32_t q = o->task[t]; q < o->task[t + 1];)
            q = run_piece(s, q, o->task[t + 1], rank, &newest, &now);
        if (s->link)
            send_task(s, o->task[t + 1] - o->task[t], rank, from, newest, now);
        *thread = now;
        last = fmax(last, now);
    }
    return last;
}

static stint_status try_tasks(simulation *s, sti_rank_trsv *p, int64_t tasks,
                              double *seconds_out)
{
    const sti_sparse_natural t = {
        .n = p->d.n, .count = p->d.count, .upper = p->d.upper};
    const stint_status st = sti_trsv_cut(&t, tasks * p->size, &p->order);
    *seconds_out = st == STINT_OK && p->d.n > 0 ? simulate(s) : 0;
    return st;
}

static int64_t most_tasks(const sti_rank_trsv *p)
{
    int64_t most = p->d.n / (16 * p->size);
    most = most < STI_RANK_TASKS_MOST / p->size ? most : STI_RANK_TASKS_MOST / p->size;
    most = most < 16384 ? most : 16384;
    return most > 1 ? most : 1;
}

/* Powers of two, as more tasks wait less and say more. */
static stint_status search(simulation *s, sti_rank_trsv *p, int64_t *tasks_out,
                           double *best_out)
{
    *best_out = INFINITY;
    for (int64_t tasks = 1; tasks <= most_tasks(p); tasks *= 2) {
        double seconds;
        const stint_status st = try_tasks(s, p, tasks, &seconds);
        if (st != STINT_OK)
            return st;
        if (seconds < 0.98 * *best_out) {
            *best_out = seconds;
            *tasks_out = tasks;
        }
    }
    return STINT_OK;
}

/* Stretches, if they take less than tasks in the order of levels do. Of those that lie
 * elsewhere only rows at a border are sent, if rows stay as they lie. */
static stint_status try_stretches(const simulation *s, sti_rank_cut *cut)
{
    const sti_rank_trsv *p = s->p;
    const sti_sparse_natural t = {
        .n = p->d.n, .count = p->d.count, .upper = p->d.upper};
    const sti_stretch_workers workers = {p->size, p->d.threads, s->costs->handoff_s,
                                         s->link};
    sti_trsv_cutting found;
    double serial_s = 0, seconds = INFINITY;
    for (int64_t i = 0; i < t.n; i++)
        serial_s += row_s(s, (int32_t)i);
    const stint_status st = sti_trsv_choose_stretches(
        &t, s->level, &p->d.reach, &workers, serial_s, &found, &seconds);
    if (st == STINT_OK && seconds < cut->predicted_s &&
        sti_trsv_stretch_count(&found, t.n) < STI_RANK_TASKS_MOST) {
        cut->stretches = found;
        cut->as_they_lie = s->link != NULL;
        cut->predicted_s = seconds;
    }
    return st;
}

static stint_status decide(sti_rank_trsv *p, const int32_t *level,
                           const sti_link_model *link, sti_rank_cut *cut)
{
    simulation s = {
        .p = p, .level = level, .costs = sti_trsv_costs_host(false), .link = link};
    stint_status st = STINT_E_MEMORY;
    s.free_s = sti_alloc_array(p->size * p->d.threads, sizeof(double), "ranks.model");
    s.near_s = sti_alloc_array(2 * RING * p->size, sizeof(double), "ranks.model");
    s.far_s = s.near_s + RING * p->size;
    if (s.free_s && s.near_s) {
        const int64_t asked = p->d.tasks;
        cut->tasks = asked < most_tasks(p) ? asked : most_tasks(p);
        st = asked > 0 ? try_tasks(&s, p, cut->tasks, &cut->predicted_s)
                       : search(&s, p, &cut->tasks, &cut->predicted_s);
        if (st == STINT_OK && asked == 0 && p->d.reach.first)
            st = try_stretches(&s, cut);
    }
    sti_free(s.free_s);
    sti_free(s.near_s);
    return st;
}

/* No longer than some solves take: the same on all ranks. */
static double seconds_for_links(const sti_rank_trsv *p)
{
    double work =
        0; /* in entries, of which a core does some hundred million a second */
    for (int64_t i = 0; i < p->d.n; i++)
        work += p->d.count[i] + 6;
    return fmin(LINKS_S, 0.02 + 20 * work * 1e-8);
}

/* Links between hosts are measured where they are wanted. */
static stint_status measure(const sti_rank_trsv *p, sti_arena *arena,
                            const sti_link_model **link_out)
{
    sti_links links;
    bool far = !p->d.share;
    for (int r = 0; r < p->size; r++)
        far = far || strcmp(sti_comm_host(p->d.comm, r), sti_comm_host(p->d.comm, 0));
    *link_out = NULL;
    if (!far || p->size == 1)
        return STINT_OK;
    const stint_status st =
        sti_links_measure(p->d.comm,
                          &(sti_measure_desc){.seconds = seconds_for_links(p),
                                              .max_bytes = LINKS_MOST,
                                              .links_alone = true},
                          arena, &links);
    for (int k = 0; st == STINT_OK && k < links.count; k++)
        if (!*link_out || sti_link_seconds(&links.models[k], 8192) >
                              sti_link_seconds(*link_out, 8192))
            *link_out = &links.models[k]; /* the slowest one */
    return st;
}

stint_status sti_rank_choose_cut(sti_rank_trsv *plan, const int32_t *level,
                                 sti_rank_cut *cut_out)
{
    const sti_link_model *link = NULL;
    *cut_out = (sti_rank_cut){.tasks = 1};
    sti_arena *arena = sti_arena_create("ranks.links");
    stint_status st = arena ? measure(plan, arena, &link) : STINT_E_MEMORY;
    if (st == STINT_OK && plan->rank == 0)
        st = decide(plan, level, link, cut_out);
    st = sti_comm_agree(plan->d.comm, st);
    if (st == STINT_OK)
        st = sti_comm_broadcast(plan->d.comm, 0, cut_out, sizeof *cut_out);
    sti_arena_destroy(arena);
    return st;
}
