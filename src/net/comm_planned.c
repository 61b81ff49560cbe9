/* Ranks that are not there: of a run that is planned, not started. Sizes, hosts and
 * memory are as they will be; there is nobody to talk to. */
#include <inttypes.h>
#include <stdio.h>

#include "base/memory.h"
#include "net/comm_priv.h"
#include "net/shared_ring.h"

typedef struct planned_comm {
    sti_comm base;
    pthread_mutex_t lock;
} planned_comm;

static void planned_post(sti_comm *comm, sti_comm_request *request)
{
    char text[COMM_TEXT_BYTES];
    snprintf(text, sizeof text,
             "a message %s rank %d (tag %" PRIu32
             ") in %s, but the ranks of a plan are "
             "not there",
             request->sending ? "to" : "from", request->peer, request->tag,
             comm->collective);
    sti_comm_set_failure(comm, true, STINT_E_BUG, text);
}

static void planned_tell_failure(sti_comm *comm)
{
    (void)comm;
}

static int64_t planned_heard_ns(sti_comm *comm, int peer)
{
    (void)comm;
    (void)peer;
    return 0;
}

static bool planned_is_gone(sti_comm *comm, int peer)
{
    (void)comm;
    (void)peer;
    return true;
}

static void planned_drop(sti_comm *comm)
{
    (void)comm; /* no request was kept */
}

static void planned_destroy(sti_comm *comm)
{
    planned_comm *me = (planned_comm *)comm;
    sti_comm_fini(comm);
    pthread_mutex_destroy(&me->lock);
    sti_free(me);
}

static const comm_maker planned_maker = {.kind = "planned",
                                         .post = planned_post,
                                         .tell_failure = planned_tell_failure,
                                         .heard_ns = planned_heard_ns,
                                         .is_gone = planned_is_gone,
                                         .drop = planned_drop,
                                         .destroy = planned_destroy};

stint_status sti_comm_create_planned(int size, int group, sti_comm **comm_out)
{
    planned_comm *me = sti_alloc(sizeof *me, "net.planned");
    if (!me)
        return STINT_E_MEMORY;
    pthread_mutex_init(&me->lock, NULL);
    if (sti_comm_init(&me->base, &planned_maker, 0, size, &me->lock) != STINT_OK) {
        planned_destroy(&me->base);
        return STINT_E_MEMORY;
    }
    me->base.block_bytes += sizeof *me;
    for (int r = 0; r < size; r++)
        snprintf(me->base.hosts[r], COMM_HOST_BYTES, "host %d", r / group);
    me->base.shared_bytes =
        (size_t)((group < size ? group : size) - 1) * sti_shared_bytes(group);
    *comm_out = &me->base;
    return STINT_OK;
}
