/* The thread that sums the results of a step over the ranks; see the header. */
#include "train/overlap_thread.h"

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include "base/fail.h"
#include "base/memory.h"
#include "kernel/elementwise/elementwise.h"

#define COURIER_TEXT 1024

/* One join of two blocks, by slot. */
typedef struct overlap_join {
    int into, from;
} overlap_join;

/* How far a lane's last run is with its packed blocks. */
typedef enum lane_packed { NOT_PACKED, PACKED, OVERFLOWN } lane_packed;

/* How far a lane's last shard is; each on a cache line of its own. */
typedef struct overlap_lane {
    sti_overlap_thread *overlap_thread;
    _Atomic int64_t final_from; /* in floats */
    _Atomic int packed;         /* a lane_packed */
    int index;
    char pad[40];
} overlap_lane;

struct sti_overlap_thread {
    sti_overlap_thread_desc desc;
    int64_t count; /* floats of a block */
    sti_final_point *points;
    int point_count;
    int packed_point; /* of them: not of a result, but of packed blocks; -1: none */
    overlap_lane *lanes;
    overlap_join *joins; /* that are still to be made when the last shards run */
    int join_count;
    overlap_join *spares; /* [lanes]: a lane's spare block into its last shard's */
    bool accumulated;     /* these are to be made in this step */
    int blocks[STI_SHARD_STACK_MAX]; /* slots that are left for the exchange */
    int block_count;
    pthread_t thread;
    bool has_thread;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    bool leaving, at_work; /* under the lock */
    bool trial;
    int64_t step;
    stint_status status;
    char failure[COURIER_TEXT];
};

static float *block_of(const sti_overlap_thread *c, int slot)
{
    return (float *)(void *)(c->desc.results + (size_t)slot * c->desc.block_bytes);
}

/* ---- the joins that the last shards leave ---- */

typedef struct join_list {
    sti_overlap_thread *overlap_thread;
    bool noted;
} join_list;

static void note_join(void *user, int into, int from)
{
    const join_list *list = user;
    sti_overlap_thread *c = list->overlap_thread;
    if (!list->noted)
        return;
    if (c->joins)
        c->joins[c->join_count] = (overlap_join){into, from};
    c->join_count++;
}

/* A lane's stack when it has run all its shards; joins of the last one are noted. */
static void push_lane(sti_overlap_thread *c, int lane, sti_shard_stack *stack)
{
    const sti_shard_range local = sti_shard_part(c->desc.local, c->desc.lanes, lane);
    join_list list = {.overlap_thread = c};
    stack->depth = 0;
    for (int64_t s = local.first; s < local.first + local.count; s++) {
        list.noted = s == local.first + local.count - 1;
        const int slot = c->desc.first_slot[lane] + stack->depth;
        if (list.noted && c->spares)
            c->spares[lane] = (overlap_join){slot, c->desc.first_spare + lane};
        sti_shard_push(stack, s, 1, slot, note_join, &list);
    }
}

static void list_joins(sti_overlap_thread *c)
{
    join_list list = {.overlap_thread = c, .noted = true};
    sti_shard_stack all = {.depth = 0}, lane;
    c->join_count = 0;
    for (int i = 0; i < c->desc.lanes; i++) {
        push_lane(c, i, &lane);
        for (int k = 0; k < lane.depth; k++)
            sti_shard_push(&all, lane.first[k], lane.size[k], lane.slot[k], note_join,
                           &list);
    }
    if (c->desc.exchange)
        sti_shard_finish(&all, note_join, &list);
    c->block_count = c->desc.exchange ? 1 : all.depth;
    for (int i = 0; i < c->block_count; i++)
        c->blocks[i] = all.slot[i];
}

/* ---- the watermark ---- */

static int64_t final_from(void *user)
{
    const sti_overlap_thread *c = user;
    int64_t max_from = 0;
    for (int i = 0; i < c->desc.lanes; i++) {
        const int64_t from = atomic_load(&c->lanes[i].final_from);
        max_from = from > max_from ? from : max_from;
    }
    return max_from;
}

static void join(const sti_overlap_thread *c, const overlap_join *j, int64_t from,
                 int64_t end)
{
    sti_add_f32(&sti_team_serial, end - from, block_of(c, j->from) + from,
                block_of(c, j->into) + from);
}

static void take(void *user, int64_t from, int64_t end)
{
    const sti_overlap_thread *c = user;
    for (int i = 0; c->accumulated && i < c->desc.lanes; i++)
        join(c, &c->spares[i], from, end);
    for (int i = 0; i < c->join_count; i++)
        join(c, &c->joins[i], from, end);
}

static void tell(void *user, const sti_final_point *point)
{
    overlap_lane *lane = user;
    sti_overlap_thread *c = lane->overlap_thread;
    if (c->packed_point >= 0 && point == &c->points[c->packed_point])
        atomic_store(&lane->packed,
                     c->desc.overflows(c->desc.overflows_user, lane->index) ? OVERFLOWN
                                                                            : PACKED);
    else
        atomic_store(&lane->final_from, (int64_t)(point->from / sizeof(float)));
    sti_comm_wake(c->desc.comm);
}

/* ---- the thread ---- */

static bool all_packed(void *user)
{
    const sti_overlap_thread *c = user;
    bool all = true;
    for (int i = 0; i < c->desc.lanes; i++)
        all = all && atomic_load(&c->lanes[i].packed) != NOT_PACKED;
    return all;
}

/* Are the results of this step good for anything? Known to all ranks before the first
 * byte of their sum is sent. */
static stint_status look_at_packs(sti_overlap_thread *c)
{
    int64_t overflow = 0;
    if (!c->desc.exchange)
        return STINT_OK;
    stint_status st = STINT_OK;
    if (c->packed_point >= 0) {
        st = sti_comm_wait_news(c->desc.comm, NULL, 0, all_packed, c);
        for (int i = 0; i < c->desc.lanes; i++)
            overflow |= atomic_load(&c->lanes[i].packed) == OVERFLOWN;
        if (st == STINT_OK)
            st = sti_comm_max(c->desc.comm, &overflow, 1);
    }
    sti_exchange_hold(c->desc.exchange, c->trial || overflow);
    return st;
}

static stint_status carry(sti_overlap_thread *c)
{
    float *blocks[STI_SHARD_STACK_MAX];
    sti_ready_watermark watermark = {
        .final_from = final_from, .take = take, .user = c, .taken = c->count};
    for (int i = 0; i < c->block_count; i++)
        blocks[i] = block_of(c, c->blocks[i]);
    const stint_status st = look_at_packs(c);
    if (st != STINT_OK)
        return st;
    return c->desc.exchange ? sti_exchange_run(c->desc.exchange, &sti_team_serial,
                                               &watermark, c->step, blocks[0])
                            : sti_tree_sum_run(c->desc.sum, &sti_team_serial,
                                               &watermark, blocks, c->block_count);
}

static void *serve(void *arg)
{
    sti_overlap_thread *c = arg;
    pthread_mutex_lock(&c->lock);
    for (;;) {
        while (!c->leaving && !c->at_work)
            pthread_cond_wait(&c->changed, &c->lock);
        if (c->leaving)
            break;
        pthread_mutex_unlock(&c->lock);
        const stint_status st = carry(c);
        pthread_mutex_lock(&c->lock);
        c->status = st;
        if (st != STINT_OK)
            snprintf(c->failure, sizeof c->failure, "%s", stint_last_error());
        c->at_work = false;
        pthread_cond_broadcast(&c->changed);
    }
    pthread_mutex_unlock(&c->lock);
    return NULL;
}

/* Signals are for the threads of the program. */
static stint_status start_thread(sti_overlap_thread *c)
{
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    const int error = pthread_create(&c->thread, NULL, serve, c);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    c->has_thread = error == 0;
    return error ? sti_fail(STINT_E_FAILED, "no thread for the sum over ranks: %s",
                            strerror(error))
                 : STINT_OK;
}

/* ---- life ---- */

/* Points of results, with that of packed blocks in its place among them. */
static void list_points(sti_overlap_thread *c)
{
    int at;
    c->packed_point = -1;
    c->point_count = sti_plan_final_points(c->desc.plan, c->points);
    if (!c->desc.exchange || c->desc.packed_node < 0)
        return;
    for (at = c->point_count++; at > 0 && c->points[at - 1].node > c->desc.packed_node;
         at--)
        c->points[at] = c->points[at - 1];
    c->points[at] = (sti_final_point){.node = c->desc.packed_node};
    c->packed_point = at;
}

size_t sti_overlap_thread_bytes(void)
{
    return sizeof(sti_overlap_thread) + ((size_t)48 << 10);
}

stint_status sti_overlap_thread_create(const sti_overlap_thread_desc *desc,
                                       sti_overlap_thread **out)
{
    const int32_t outputs = sti_graph_output_count(desc->plan->graph);
    sti_overlap_thread *c = sti_alloc(sizeof *c, "overlap thread");
    if (!c)
        return STINT_E_MEMORY;
    c->desc = *desc;
    c->count = (int64_t)(desc->block_bytes / sizeof(float));
    pthread_mutex_init(&c->lock, NULL);
    pthread_cond_init(&c->changed, NULL);
    c->points = sti_alloc_array(outputs + 1, sizeof *c->points, "overlap thread");
    c->lanes = sti_alloc_array(desc->lanes, sizeof *c->lanes, "overlap thread");
    c->spares = sti_alloc_array(desc->lanes, sizeof *c->spares, "overlap thread");
    stint_status st = c->points && c->lanes && c->spares ? STINT_OK : STINT_E_MEMORY;
    if (st == STINT_OK) {
        list_points(c);
        for (int i = 0; i < desc->lanes; i++) {
            c->lanes[i].overlap_thread = c;
            c->lanes[i].index = i;
        }
        list_joins(c);
        c->joins = sti_alloc_array(c->join_count, sizeof *c->joins, "overlap thread");
        st = c->joins ? STINT_OK : STINT_E_MEMORY;
    }
    if (st == STINT_OK) {
        list_joins(c);
        st = start_thread(c);
    }
    if (st != STINT_OK) {
        sti_overlap_thread_destroy(c);
        return st;
    }
    *out = c;
    return STINT_OK;
}

void sti_overlap_thread_destroy(sti_overlap_thread *c)
{
    if (!c)
        return;
    if (c->has_thread) {
        pthread_mutex_lock(&c->lock);
        c->leaving = true;
        pthread_cond_broadcast(&c->changed);
        pthread_mutex_unlock(&c->lock);
        pthread_join(c->thread, NULL);
    }
    pthread_cond_destroy(&c->changed);
    pthread_mutex_destroy(&c->lock);
    sti_free(c->points);
    sti_free(c->lanes);
    sti_free(c->joins);
    sti_free(c->spares);
    sti_free(c);
}

/* ---- a step ---- */

void sti_overlap_thread_begin(sti_overlap_thread *c, int64_t step, bool accumulated,
                              bool trial)
{
    for (int i = 0; i < c->desc.lanes; i++) {
        atomic_store(&c->lanes[i].final_from, c->count);
        atomic_store(&c->lanes[i].packed, NOT_PACKED);
    }
    pthread_mutex_lock(&c->lock);
    c->step = step;
    c->accumulated = accumulated;
    c->trial = trial;
    c->at_work = true;
    pthread_cond_broadcast(&c->changed);
    pthread_mutex_unlock(&c->lock);
}

void sti_overlap_thread_last_shard(sti_overlap_thread *c, int lane, sti_exec *exec)
{
    sti_exec_set_ready_callback(exec, c->points, c->point_count, tell, &c->lanes[lane]);
}

stint_status sti_overlap_thread_end(sti_overlap_thread *c, stint_status status)
{
    if (status != STINT_OK)
        sti_comm_give_up(c->desc.comm, status);
    pthread_mutex_lock(&c->lock);
    while (c->at_work)
        pthread_cond_wait(&c->changed, &c->lock);
    pthread_mutex_unlock(&c->lock);
    if (status != STINT_OK)
        return status;
    return c->status == STINT_OK ? STINT_OK : sti_fail(c->status, "%s", c->failure);
}
