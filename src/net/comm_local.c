/* Ranks that are threads of one process. One lock guards the whole world: a message is
 * one memcpy under it, by whichever of the two comes second. */
#include <stdio.h>
#include <string.h>

#include "base/fail.h"
#include "base/memory.h"
#include "net/comm_priv.h"

typedef struct local_comm local_comm;

typedef struct local_world {
    pthread_mutex_t lock;
    local_comm **ranks; /* [size]; NULL: destroyed */
    int size, alive;
} local_world;

struct local_comm {
    sti_comm base;
    local_world *world;
    comm_queue receives; /* of this rank, unmatched */
    comm_queue sends;    /* of this rank, unmatched */
};

static local_comm *local_of(sti_comm *comm)
{
    return (local_comm *)comm;
}

static void hand_over(local_comm *from, sti_comm_request *send, local_comm *to,
                      sti_comm_request *receive)
{
    if (send->bytes > receive->bytes) {
        sti_comm_message_too_long(&to->base, receive, send->bytes);
        return;
    }
    receive->bytes = send->bytes;
    if (send->bytes > 0)
        memcpy(receive->buffer, send->buffer, send->bytes);
    sti_comm_finish(&from->base, send);
    sti_comm_finish(&to->base, receive);
}

static void local_post(sti_comm *comm, sti_comm_request *request)
{
    local_comm *me = local_of(comm), *peer = me->world->ranks[request->peer];
    if (!peer) {
        sti_comm_fail_peer(comm, request->peer, "is gone");
        return;
    }
    comm_queue *theirs = request->sending ? &peer->receives : &peer->sends;
    sti_comm_request *match = sti_comm_queue_take(theirs, comm->rank, request->tag);
    if (!match)
        sti_comm_queue_add(request->sending ? &me->sends : &me->receives, request);
    else if (request->sending)
        hand_over(me, request, peer, match);
    else
        hand_over(peer, match, me, request);
}

static void local_drop(sti_comm *comm)
{
    local_of(comm)->receives = (comm_queue){0};
    local_of(comm)->sends = (comm_queue){0};
}

static void local_tell_failure(sti_comm *comm)
{
    local_world *world = local_of(comm)->world;
    for (int r = 0; r < world->size; r++) {
        local_comm *peer = world->ranks[r];
        if (!peer)
            continue;
        sti_comm_set_failure(&peer->base, false, comm->failure, comm->failure_text);
        local_drop(&peer->base);
    }
}

static int64_t local_heard_ns(sti_comm *comm, int peer)
{
    (void)comm;
    (void)peer;
    return 0;
}

static bool local_is_gone(sti_comm *comm, int peer)
{
    return !local_of(comm)->world->ranks[peer];
}

/* Does a rank wait for `gone`? */
static bool waits_for(const comm_queue *queue, int gone)
{
    for (const sti_comm_request *r = queue->first; r; r = r->next)
        if (r->peer == gone)
            return true;
    return false;
}

static void world_destroy(local_world *world)
{
    pthread_mutex_destroy(&world->lock);
    sti_free(world->ranks);
    sti_free(world);
}

static void local_destroy(sti_comm *comm)
{
    local_comm *me = local_of(comm);
    local_world *world = me->world;
    pthread_mutex_lock(&world->lock);
    world->ranks[comm->rank] = NULL;
    for (int r = 0; r < world->size; r++) {
        local_comm *peer = world->ranks[r];
        if (peer)
            pthread_cond_broadcast(&peer->base.changed);
        if (peer && (waits_for(&peer->receives, comm->rank) ||
                     waits_for(&peer->sends, comm->rank)))
            sti_comm_fail_peer(&peer->base, comm->rank, "is gone");
    }
    int alive = --world->alive;
    pthread_mutex_unlock(&world->lock);
    sti_comm_fini(comm);
    sti_free(me);
    if (alive == 0)
        world_destroy(world);
}

static const comm_maker local_maker = {.kind = "threads",
                                       .post = local_post,
                                       .tell_failure = local_tell_failure,
                                       .heard_ns = local_heard_ns,
                                       .is_gone = local_is_gone,
                                       .drop = local_drop,
                                       .destroy = local_destroy};

static stint_status create_rank(local_world *world, int rank)
{
    local_comm *me = sti_alloc(sizeof *me, "net.rank");
    if (!me)
        return STINT_E_MEMORY;
    me->world = world;
    world->ranks[rank] = me;
    world->alive++;
    stint_status st =
        sti_comm_init(&me->base, &local_maker, rank, world->size, &world->lock);
    if (st != STINT_OK)
        return st;
    me->base.block_bytes += sizeof *me;
    sti_comm_local_host(me->base.hosts[0]);
    for (int r = 1; r < world->size; r++)
        memcpy(me->base.hosts[r], me->base.hosts[0], COMM_HOST_BYTES);
    return STINT_OK;
}

stint_status sti_comm_create_local(int size, sti_comm **comms_out)
{
    local_world *world = sti_alloc(sizeof *world, "net.world");
    stint_status st = STINT_OK;
    if (!world)
        return STINT_E_MEMORY;
    pthread_mutex_init(&world->lock, NULL);
    world->size = size;
    world->ranks = sti_alloc_array(size, sizeof(local_comm *), "net.world");
    if (!world->ranks) {
        world_destroy(world);
        return STINT_E_MEMORY;
    }
    world->alive = 1; /* this call, until all are there */
    for (int r = 0; r < size && st == STINT_OK; r++)
        st = create_rank(world, r);
    for (int r = 0; r < size; r++) {
        comms_out[r] = st == STINT_OK ? &world->ranks[r]->base : NULL;
        if (st != STINT_OK && world->ranks[r])
            local_destroy(&world->ranks[r]->base);
    }
    pthread_mutex_lock(&world->lock);
    int alive = --world->alive;
    pthread_mutex_unlock(&world->lock);
    if (alive == 0)
        world_destroy(world);
    return st;
}
