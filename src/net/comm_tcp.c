/* Ranks that are processes, two connections a pair (wire.h). Where a pair shares memory
 * (shared_ring.h), the bytes of messages go through it, and the data connection is a
 * bell: a byte on it means that there is something to read or room to write again.
 *
 * One thread of the communicator (tcp_thread.c) serves all sockets, so messages
 * (tcp_data.c) travel while the rank computes, and signs of life (tcp_life.c) go out
 * whatever the rank does: a peer that is silent is stopped, cut off or gone, not busy.
 * Everything happens under one lock, but sleeping in poll(). A post tries the socket at
 * once, so that a short message costs no switch of threads on its way out. */
#include "net/comm_tcp.h"

#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>

#include "base/clock.h"
#include "base/fail.h"
#include "base/memory.h"
#include "net/mesh.h"
#include "net/tcp_priv.h"

static tcp_comm *tcp_of(sti_comm *comm)
{
    return (tcp_comm *)comm;
}

static void tcp_post(sti_comm *comm, sti_comm_request *r)
{
    tcp_comm *c = tcp_of(comm);
    tcp_peer *p = &c->peers[r->peer];
    bool held = p->held;
    if (r->sending) {
        sti_comm_queue_add(&p->sends, r);
        sti_tcp_write_data(c, r->peer);
        if (p->sends.first && !p->shared.memory)
            sti_tcp_wake(c);
    } else {
        sti_tcp_post_receive(c, p, r);
        if (held && !p->shared.memory)
            sti_tcp_wake(c);
    }
    if (p->data < 0 && r->state == STI_COMM_POSTED)
        sti_tcp_lost(c, r->peer, false);
}

static int64_t tcp_heard_ns(sti_comm *comm, int peer)
{
    const tcp_comm *c = tcp_of(comm);
    const int64_t now = sti_clock_ns();
    return sti_tcp_was_stopped(c, now) ? now : c->peers[peer].heard_ns;
}

static bool tcp_is_gone(sti_comm *comm, int peer)
{
    const tcp_peer *p = &tcp_of(comm)->peers[peer];
    return p->left || p->life < 0;
}

static void tcp_drop(sti_comm *comm)
{
    tcp_comm *c = tcp_of(comm);
    for (int i = 0; i < comm->size; i++)
        sti_tcp_forget(&c->peers[i]);
    sti_tcp_wake(c);
}

static void tcp_destroy(sti_comm *comm)
{
    tcp_comm *c = tcp_of(comm);
    if (c->has_thread) {
        pthread_mutex_lock(&c->lock);
        c->leaving = true;
        sti_tcp_wake(c);
        pthread_mutex_unlock(&c->lock);
        pthread_join(c->thread, NULL);
        tcp_drop(comm);
    }
    for (int i = 0; c->peers && i < comm->size; i++) {
        sti_tcp_close_socket(&c->peers[i].data);
        sti_tcp_close_socket(&c->peers[i].life);
        sti_shared_close(&c->peers[i].shared);
    }
    sti_tcp_close_socket(&c->wake);
    sti_comm_fini(comm);
    pthread_mutex_destroy(&c->lock);
    sti_free(c->peers);
    sti_free(c->polls);
    sti_free(c);
}

static const comm_maker tcp_maker = {.kind = "tcp",
                                     .post = tcp_post,
                                     .tell_failure = sti_tcp_tell_failure,
                                     .heard_ns = tcp_heard_ns,
                                     .is_gone = tcp_is_gone,
                                     .drop = tcp_drop,
                                     .destroy = tcp_destroy};

/* The mesh's connections are the communicator's from here on. */
static void take_sockets(tcp_comm *c, sti_mesh *mesh)
{
    int sharing = 0;
    for (int i = 0; i < c->base.size; i++) {
        tcp_peer *p = &c->peers[i];
        p->data = mesh->sockets[i][WIRE_DATA];
        p->life = mesh->sockets[i][WIRE_ALIVE];
        mesh->sockets[i][WIRE_DATA] = mesh->sockets[i][WIRE_ALIVE] = -1;
        p->shared = mesh->shared[i];
        mesh->shared[i] = (sti_shared){0};
        c->base.shared_bytes += p->shared.bytes;
        sharing += p->shared.memory != NULL;
        p->heard_ns = sti_clock_ns();
        snprintf(c->base.hosts[i], COMM_HOST_BYTES, "%s", mesh->cards[i].host);
    }
    if (sharing > 0)
        c->base.kind =
            sharing == c->base.size - 1 ? "shared memory" : "tcp and shared memory";
}

static stint_status tcp_begin(tcp_comm *c, const sti_comm_tcp_desc *desc)
{
    sti_mesh mesh = {0};
    stint_status st =
        sti_comm_init(&c->base, &tcp_maker, desc->rank, desc->size, &c->lock);
    c->base.timeout_ns = desc->timeout_ns;
    if (st != STINT_OK)
        return st;
    c->peers = sti_alloc_array(desc->size, sizeof *c->peers, "net.peers");
    c->polls = sti_alloc_array(2 * desc->size + 1, sizeof *c->polls, "net.polls");
    if (!c->peers || !c->polls)
        return STINT_E_MEMORY;
    c->base.block_bytes += sizeof *c + (size_t)desc->size * sizeof *c->peers +
                           (2 * (size_t)desc->size + 1) * sizeof *c->polls;
    for (int i = 0; i < desc->size; i++)
        c->peers[i].data = c->peers[i].life = -1;
    c->wake = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (c->wake < 0)
        return sti_fail_errno("no event descriptor");
    st = sti_mesh_connect(desc, &mesh);
    if (st == STINT_OK)
        take_sockets(c, &mesh);
    sti_mesh_fini(&mesh);
    if (st != STINT_OK)
        return st;
    c->turn_ns = sti_clock_ns();
    int error = sti_tcp_start_thread(c);
    c->has_thread = error == 0;
    return error ? sti_fail(STINT_E_FAILED, "no thread for the network: %s",
                            strerror(error))
                 : STINT_OK;
}

stint_status sti_comm_create_tcp(const sti_comm_tcp_desc *desc, sti_comm **comm_out)
{
    tcp_comm *c = sti_alloc(sizeof *c, "net.tcp");
    if (!c)
        return STINT_E_MEMORY;
    pthread_mutex_init(&c->lock, NULL);
    c->wake = -1;
    stint_status st = tcp_begin(c, desc);
    if (st == STINT_OK)
        *comm_out = &c->base;
    else
        tcp_destroy(&c->base);
    return st;
}
