/* A plan of ranks made: order, tasks, the own rows, windows and what is to be sent. */
#include "solve/rank_trsv.h"

#include <inttypes.h>
#include <string.h>

#include "base/clock.h"
#include "base/fail.h"
#include "base/memory.h"
#include "solve/rank_trsv_priv.h"

/* Where every row goes; gone once the plan is made. */
typedef struct places {
    int32_t *task_of, *slot_of, *local; /* [n] */
} places;

static void places_fini(places *at)
{
    sti_free(at->task_of);
    sti_free(at->slot_of);
    sti_free(at->local);
}

/* ---- the order, which all ranks know ---- */

/* Within a stretch rows come by level, or as they lie where that sends less. */
static stint_status make_stretches(sti_rank_trsv *p, const sti_sparse_natural *t,
                                   const sti_rank_cut *cut)
{
    int32_t *by_level = p->order.row;
    p->order.row = NULL;
    for (int64_t k = 0; cut->as_they_lie && k < t->n; k++)
        by_level[k] = (int32_t)sti_trsv_row(t, k);
    const stint_status st = sti_trsv_stretches(t, &cut->stretches, by_level, &p->order);
    sti_free(by_level);
    return st;
}

static stint_status make_order(sti_rank_trsv *p)
{
    const sti_rank_trsv_desc *d = &p->d;
    const sti_sparse_natural t = {.n = d->n, .count = d->count, .upper = d->upper};
    sti_rank_cut cut;
    stint_status st = STINT_E_MEMORY;
    p->order.level = sti_alloc_array(d->n, sizeof *p->order.level, "ranks.levels");
    p->order.levels = d->levels;
    if (p->order.level) {
        memcpy(p->order.level, d->level, sizeof *d->level * (size_t)d->n);
        st = sti_trsv_level_order(&t, &p->order);
    }
    STI_TRY(sti_comm_agree(d->comm, st));
    STI_TRY(sti_rank_choose_cut(p, p->order.level, &cut));
    p->info.predicted_s = cut.predicted_s;
    st = cut.stretches.parts > 0 ? make_stretches(p, &t, &cut)
                                 : sti_trsv_cut(&t, cut.tasks * p->size, &p->order);
out:
    return st;
}

/* Tasks of a rank follow each other in its part. */
static stint_status make_slots(sti_rank_trsv *p)
{
    const int64_t tasks = p->order.tasks;
    int64_t *rows = sti_alloc_array(p->size, sizeof *rows, "ranks.rows");
    p->task_slot = sti_alloc_array(tasks, sizeof *p->task_slot, "ranks.tasks");
    if (!rows || !p->task_slot) {
        sti_free(rows);
        return STINT_E_MEMORY;
    }
    for (int64_t t = 0; t < tasks; t++) {
        const int r = sti_rank_of_task(p, t);
        p->task_slot[t] = (int32_t)rows[r];
        rows[r] += p->order.task[t + 1] - p->order.task[t];
        p->own_tasks += r == p->rank;
    }
    p->own = rows[p->rank];
    for (int r = 0; r < p->size; r++)
        p->stride = rows[r] > p->stride ? rows[r] : p->stride;
    sti_free(rows);
    /* Whole pages of the smallest unit that is stored. */
    const int64_t unit = STI_WINDOW_ALIGN / (int64_t)sizeof(float);
    p->stride = (p->stride + unit - 1) / unit * unit;
    p->stride += p->stride == 0 ? unit : 0;
    if (p->stride > INT32_MAX / p->size)
        return sti_fail(STINT_E_UNSUPPORTED,
                        "%" PRId64 " rows on %d ranks take more places than 2^31; "
                        "fewer ranks would do",
                        p->d.n, p->size);
    return STINT_OK;
}

static stint_status make_places(sti_rank_trsv *p, places *at)
{
    const int64_t n = p->d.n;
    at->task_of = sti_alloc_array(n, sizeof *at->task_of, "ranks.places");
    at->slot_of = sti_alloc_array(n, sizeof *at->slot_of, "ranks.places");
    at->local = sti_alloc_array(n, sizeof *at->local, "ranks.places");
    p->names = sti_alloc_array(p->own, sizeof *p->names, "ranks.names");
    if (!at->task_of || !at->slot_of || !at->local || !p->names)
        return STINT_E_MEMORY;
    for (int64_t t = 0; t < p->order.tasks; t++) {
        const int r = sti_rank_of_task(p, t);
        for (int32_t q = p->order.task[t]; q < p->order.task[t + 1]; q++) {
            const int32_t row = p->order.row[q];
            const int32_t slot = p->task_slot[t] + q - p->order.task[t];
            at->task_of[row] = (int32_t)t;
            at->slot_of[row] = (int32_t)(r * p->stride) + slot;
            at->local[row] = r == p->rank ? slot : -1;
            if (r == p->rank)
                p->names[slot] = row;
        }
    }
    return STINT_OK;
}

static void drop_rows(sti_csr *rows)
{
    sti_free(rows->start);
    sti_free(rows->column);
    sti_free(rows->value);
    *rows = (sti_csr){0};
}

static stint_status load(sti_rank_trsv *p, const places *at)
{
    return p->d.rows(p->d.rows_user, at->local, p->names, p->own, &p->rows);
}

/* ---- windows and messages ---- */

static stint_status make_windows(sti_rank_trsv *p)
{
    const int64_t tasks = p->order.tasks;
    const size_t part =
        (size_t)(p->stride * sti_rank_ld(p)) * sti_trsv_real_bytes(&p->real);
    const size_t most = (size_t)(tasks / p->size + 2) * sizeof(sti_trsv_progress);
    stint_status st;
    STI_TRY(sti_window_create(p->d.comm, part, p->d.share, &p->x));
    STI_TRY(sti_window_create(p->d.comm, most, p->d.share, &p->flags));
    p->progress = sti_alloc_array(tasks, sizeof(sti_trsv_progress *), "ranks.progress");
    p->mirrored = sti_alloc_array(tasks, sizeof *p->mirrored, "ranks.progress");
    STI_TRY(p->progress && p->mirrored ? STINT_OK : STINT_E_MEMORY);
    p->info.shares = true;
    for (int r = 0; r < p->size; r++)
        p->info.shares = p->info.shares && sti_window_is_shared(&p->x, r) &&
                         sti_window_is_shared(&p->flags, r);
    for (int64_t t = 0; t < tasks; t++) {
        const int r = sti_rank_of_task(p, t);
        sti_trsv_progress *told = sti_rank_finished(p, r);
        p->progress[t] =
            sti_window_is_shared(&p->x, r) ? told + 1 + t / p->size : &p->mirrored[t];
    }
out:
    return st;
}

/* Both windows of a pair are shared, or none counts as it. */
static stint_status check_windows(const sti_rank_trsv *p)
{
    for (int r = 0; r < p->size; r++)
        if (sti_window_is_shared(&p->x, r) != sti_window_is_shared(&p->flags, r))
            return sti_fail(STINT_E_FAILED,
                            "rank %d lets only some of its memory be read; "
                            "--net-sockets does without",
                            r);
    return STINT_OK;
}

/* Does `reader` read of the task, and have no memory with `other`, which is this rank's
 * counterpart? */
static bool goes(const sti_rank_trsv *p, int64_t task, int reader, int other)
{
    const sti_rank_need *need = &p->needs[reader * p->order.tasks + task];
    return need->high > need->low && !sti_window_is_shared(&p->x, other);
}

static void add_parcel(sti_rank_parcel *to, const sti_rank_trsv *p, int64_t task,
                       int reader, int other)
{
    const sti_rank_need *need = &p->needs[reader * p->order.tasks + task];
    *to = (sti_rank_parcel){(int32_t)task, other, need->low, need->high};
}

/* What each own task sends, and what comes; counted first, then filled in. */
static void list_parcels(sti_rank_trsv *p)
{
    p->out_count = p->in_count = 0;
    for (int64_t t = 0; t < p->order.tasks; t++) {
        const int owner = sti_rank_of_task(p, t);
        if (owner != p->rank) {
            if (goes(p, t, p->rank, owner)) {
                if (p->in)
                    add_parcel(&p->in[p->in_count], p, t, p->rank, owner);
                p->in_count++;
            }
            continue;
        }
        for (int r = 0; r < p->size; r++)
            if (r != p->rank && goes(p, t, r, r)) {
                if (p->out)
                    add_parcel(&p->out[p->out_count], p, t, r, r);
                p->out_count++;
            }
        if (p->task_out)
            p->task_out[t / p->size + 1] = (int32_t)p->out_count;
    }
}

static stint_status make_parcels(sti_rank_trsv *p)
{
    list_parcels(p);
    p->task_out = sti_alloc_array(p->own_tasks + 1, sizeof *p->task_out, "ranks.out");
    p->out = sti_alloc_array(p->out_count, sizeof *p->out, "ranks.out");
    p->in = sti_alloc_array(p->in_count, sizeof *p->in, "ranks.in");
    p->sends = sti_alloc_array(p->out_count, sizeof *p->sends, "ranks.out");
    p->receives = sti_alloc_array(p->in_count, sizeof *p->receives, "ranks.in");
    p->came = sti_alloc_array(p->in_count, sizeof *p->came, "ranks.in");
    p->part_requests =
        sti_alloc_array(2 * p->size, sizeof *p->part_requests, "ranks.parts");
    if (!p->task_out || !p->out || !p->in || !p->sends || !p->receives || !p->came ||
        !p->part_requests)
        return STINT_E_MEMORY;
    list_parcels(p);
    return STINT_OK;
}

enum { COUNTS = 4 };

/* Sums over all ranks, of one solve of all columns. */
static stint_status count_messages(sti_rank_trsv *p)
{
    const int64_t block = sti_rank_ld(p);
    const int64_t blocks = (p->d.columns + block - 1) / block;
    const int64_t row = block * (int64_t)sti_trsv_real_bytes(&p->real);
    int64_t own[COUNTS] = {p->out_count * blocks}, sum[COUNTS] = {0};
    int64_t *all = sti_alloc_array(p->size, sizeof own, "ranks.counts");
    for (int64_t k = 0; k < p->out_count; k++)
        own[1] += (p->out[k].high - p->out[k].low) * row * blocks;
    for (int r = 0; r < p->size; r++)
        own[2] += sti_window_is_shared(&p->x, r) ? 0 : blocks;
    own[3] = own[2] * p->own * row;
    stint_status st = sti_comm_agree(p->d.comm, all ? STINT_OK : STINT_E_MEMORY);
    if (st == STINT_OK)
        st = sti_comm_gather_all(p->d.comm, own, sizeof own, all);
    for (int k = 0; st == STINT_OK && k < COUNTS * p->size; k++)
        sum[k % COUNTS] += all[k];
    p->info.messages = sum[0];
    p->info.bytes = sum[1];
    p->info.part_messages = sum[2];
    p->info.part_bytes = sum[3];
    sti_free(all);
    return st;
}

/* Every rank learns what every other one reads. */
static stint_status exchange_needs(sti_rank_trsv *p)
{
    const size_t bytes = sizeof *p->needs * (size_t)p->order.tasks;
    sti_rank_need *own = sti_alloc(bytes, "ranks.needs");
    if (!own)
        return STINT_E_MEMORY;
    memcpy(own, p->needs + p->rank * p->order.tasks, bytes);
    const stint_status st = sti_comm_gather_all(p->d.comm, own, bytes, p->needs);
    sti_free(own);
    return st;
}

/* ---- many right-hand sides ---- */

static stint_status make_sides(sti_rank_trsv *p)
{
    if (p->d.columns == 1)
        return STINT_OK;
    p->b = sti_alloc_array(
        p->own, sti_trsv_real_bytes(&p->real) * (size_t)sti_rank_ld(p), "ranks.b");
    p->identity = sti_alloc_array(p->own, sizeof *p->identity, "ranks.places");
    if (!p->b || !p->identity)
        return STINT_E_MEMORY;
    for (int64_t k = 0; k < p->own; k++)
        p->identity[k] = (int32_t)k;
    p->triangle.place = p->identity;
    return STINT_OK;
}

/* ---- what is called ---- */

/* The own part of the work, between collective steps. */
static stint_status make_local(sti_rank_trsv *p, const places *at)
{
    const int64_t tasks = p->order.tasks;
    p->needs = sti_alloc_array(p->size * tasks, sizeof *p->needs, "ranks.needs");
    stint_status st = p->needs ? STINT_OK : STINT_E_MEMORY;
    if (st == STINT_OK)
        st = sti_rank_make_steps(p, p->order.level, at->task_of, at->slot_of);
    p->info.own_entries = st == STINT_OK ? p->start[p->own] : 0;
    if (!p->d.keep)
        drop_rows(&p->rows);
    return st == STINT_OK ? make_sides(p) : st;
}

static stint_status make(sti_rank_trsv *p)
{
    sti_comm *comm = p->d.comm;
    places at = {0};
    stint_status st;
    st = make_order(p);
    if (st == STINT_OK)
        st = make_slots(p);
    if (st == STINT_OK)
        st = make_places(p, &at);
    STI_TRY(sti_comm_agree(comm, st));
    STI_TRY(sti_comm_agree(comm, load(p, &at)));
    STI_TRY(sti_comm_agree(comm, make_local(p, &at)));
    STI_TRY(exchange_needs(p));
    STI_TRY(make_windows(p));
    st = check_windows(p);
    if (st == STINT_OK)
        st = make_parcels(p);
    STI_TRY(sti_comm_agree(comm, st));
    st = count_messages(p);
    sti_free(p->needs);
    p->needs = NULL;
    sti_free(p->order.level);
    p->order.level = NULL;
out:
    places_fini(&at);
    return st;
}

stint_status sti_rank_trsv_create(const sti_rank_trsv_desc *desc,
                                  sti_rank_trsv **plan_out)
{
    const int64_t begun = sti_clock_ns();
    sti_rank_trsv *p = sti_alloc(sizeof *p, "ranks.plan");
    stint_status st = sti_comm_agree(desc->comm, p ? STINT_OK : STINT_E_MEMORY);
    if (st != STINT_OK) {
        sti_free(p);
        return st;
    }
    p->d = *desc;
    p->d.columns = desc->columns > 0 ? desc->columns : 1;
    p->d.threads = desc->threads > 0 ? desc->threads : 1;
    p->real = (sti_trsv_desc){.single = desc->single};
    p->rank = sti_comm_rank(desc->comm);
    p->size = sti_comm_size(desc->comm);
    pthread_mutex_init(&p->net, NULL);
    p->has_mutex = true;
    st = make(p);
    if (st != STINT_OK) {
        sti_rank_trsv_destroy(p);
        return st;
    }
    p->info.tasks = p->order.tasks;
    p->info.levels = p->order.levels;
    p->info.own_rows = p->own;
    p->info.plan_bytes = (size_t)p->own * 16 + (size_t)p->info.own_entries * 12 +
                         (size_t)p->d.n * 4 + p->x.stride_bytes + p->flags.stride_bytes;
    p->info.analysis_s = sti_seconds_since(begun);
    *plan_out = p;
    return STINT_OK;
}

void sti_rank_trsv_destroy(sti_rank_trsv *p)
{
    if (!p)
        return;
    sti_window_destroy(&p->x);
    sti_window_destroy(&p->flags);
    sti_trsv_order_fini(&p->order);
    drop_rows(&p->rows);
    void *blocks[] = {p->task_slot, p->names,    p->start,         p->column,
                      p->value,     p->diagonal, p->steps,         p->task_step,
                      p->waits,     p->progress, p->mirrored,      p->needs,
                      p->out,       p->in,       p->task_out,      p->sends,
                      p->receives,  p->came,     p->part_requests, p->b,
                      p->identity};
    for (size_t k = 0; k < sizeof blocks / sizeof *blocks; k++)
        sti_free(blocks[k]);
    if (p->has_mutex)
        pthread_mutex_destroy(&p->net);
    sti_free(p);
}

const sti_rank_trsv_info *sti_rank_trsv_info_of(const sti_rank_trsv *plan)
{
    return &plan->info;
}

const sti_csr *sti_rank_trsv_rows(const sti_rank_trsv *plan, const int32_t **names_out)
{
    *names_out = plan->names;
    return &plan->rows;
}

stint_status sti_rank_trsv_refill(sti_rank_trsv *plan, sti_rank_rows_fn *rows,
                                  void *rows_user)
{
    places at = {0};
    int32_t *names = plan->names;
    stint_status st;
    plan->names = NULL;
    st = make_places(plan, &at);
    sti_free(names);
    drop_rows(&plan->rows);
    plan->d.rows = rows;
    plan->d.rows_user = rows_user;
    STI_TRY(sti_comm_agree(plan->d.comm, st));
    if (plan->triangle.place != plan->identity)
        plan->triangle.place = plan->names;
    STI_TRY(sti_comm_agree(plan->d.comm, load(plan, &at)));
    st = sti_rank_fill(plan, at.slot_of);
    if (!plan->d.keep)
        drop_rows(&plan->rows);
out:
    places_fini(&at);
    return st;
}

void sti_rank_trsv_places(const sti_rank_trsv *plan, uint16_t *rank_out,
                          int32_t *place_out)
{
    const sti_trsv_order *o = &plan->order;
    for (int64_t t = 0; t < o->tasks; t++)
        for (int32_t q = o->task[t]; q < o->task[t + 1]; q++) {
            rank_out[o->row[q]] = (uint16_t)sti_rank_of_task(plan, t);
            place_out[o->row[q]] = plan->task_slot[t] + q - o->task[t];
        }
}

const int32_t *sti_rank_trsv_names(const sti_rank_trsv *plan)
{
    return plan->names;
}
