/* Ranks that are processes, two connections a pair (wire.h). Where a pair shares memory
 * (shared_ring.h), the bytes of messages go through it, and the data connection is a
 * bell: a byte on it means that there is something to read or room to write again.
 *
 * One thread of the communicator serves all sockets, so messages travel while the rank
 * computes, and signs of life go out whatever the rank does: a peer that is silent is
 * stopped, cut off or gone, not busy. Everything happens under one lock, but sleeping
 * in poll(). A post tries the socket at once, so that a short message costs no switch
 * of threads on its way out.
 *
 * Nobody reads a message that was not asked for: it stays in the sockets and holds its
 * sender back. Only where the rank asked that peer for another one, which must then be
 * behind it, the first is set aside in memory of its own; one that it merely expects
 * (sti_comm_expect) does not count. */
#include "net/comm_tcp.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fail.h"
#include "base/memory.h"
#include "net/comm_priv.h"
#include "net/mesh.h"
#include "net/wire.h"

#define READ_TURN_BYTES (4 << 20)  /* of one peer before the others have their turn */
#define LINGER_NS       1000000000 /* for the last words at the end */

/* A message set aside; its bytes follow. */
typedef struct aside {
    struct aside *next;
    uint32_t tag;
    size_t bytes, got;
    sti_comm_request *claimed; /* asked for while it was still arriving */
} aside;

typedef struct tcp_peer {
    int data, life;    /* sockets; -1: closed, or oneself */
    sti_shared shared; /* with memory: data is the bell */
    bool bell_closed;  /* what is in memory may still be read */
    bool unread;       /* a turn of reading ended before the memory was empty */
    bool left;         /* it said so */
    bool held;         /* a header is here, but nobody asked for its message */
    int64_t heard_ns;
    comm_queue sends, receives;
    uint8_t out_header[WIRE_HEADER], in_header[WIRE_HEADER];
    size_t in_header_bytes;
    uint32_t in_tag;
    size_t in_bytes;        /* of the message that arrives */
    sti_comm_request *into; /* where it goes, */
    aside *beside;          /* or here */
    aside *asides;          /* oldest first, the arriving one included */
    uint8_t life_in[WIRE_LIFE];
    size_t life_bytes;
} tcp_peer;

typedef struct tcp_comm {
    sti_comm base;
    pthread_mutex_t lock;
    pthread_t thread;
    bool has_thread, leaving;
    int wake;             /* eventfd */
    int64_t alive_ns;     /* when signs of life went out last */
    int64_t turn_ns;      /* when the thread looked at its sockets last */
    tcp_peer *peers;      /* [size] */
    struct pollfd *polls; /* [2 * size + 1] */
} tcp_comm;

static tcp_comm *tcp_of(sti_comm *comm)
{
    return (tcp_comm *)comm;
}

static void wake(const tcp_comm *c)
{
    uint64_t one = 1;
    ssize_t n = write(c->wake, &one, sizeof one);
    (void)n; /* full means that it is awake already */
}

static void close_socket(int *fd)
{
    if (*fd >= 0)
        close(*fd);
    *fd = -1;
}

static bool try_later(ssize_t n)
{
    return n < 0 && (errno == EAGAIN || errno == EINTR);
}

/* ---- the end of a peer ---- */

static bool has_claims(const tcp_peer *p)
{
    for (const aside *a = p->asides; a; a = a->next)
        if (a->claimed)
            return true;
    return false;
}

static void read_life(tcp_comm *c, int peer);

/* A connection of it is closed: fine when it said that it leaves (which may still be on
 * its way while the other connection is open) and nobody wants more of it. */
static void lost(tcp_comm *c, int peer, bool broken)
{
    tcp_peer *p = &c->peers[peer];
    if (broken && p->life >= 0)
        read_life(c, peer); /* it may have said why */
    if (c->leaving || c->base.failure != STINT_OK)
        return;
    if (!p->left && (broken || p->life < 0))
        sti_comm_fail_peer(&c->base, peer, "is gone: its connection closed");
    else if (p->left && p->data < 0 &&
             (p->into || p->receives.first || p->sends.first || has_claims(p)))
        sti_comm_fail_peer(&c->base, peer, "has left");
}

/* ---- sending ---- */

/* Header and bytes of a request that are not out yet; n of them. */
static int unsent(tcp_peer *p, const sti_comm_request *r, struct iovec parts[2])
{
    int n = 0;
    if (r->moved < WIRE_HEADER)
        parts[n++] = (struct iovec){.iov_base = p->out_header + r->moved,
                                    .iov_len = WIRE_HEADER - r->moved};
    size_t out = r->moved > WIRE_HEADER ? r->moved - WIRE_HEADER : 0;
    if (out < r->bytes)
        parts[n++] = (struct iovec){.iov_base = (char *)r->buffer + out,
                                    .iov_len = r->bytes - out};
    return n;
}

static void ring_bell(const tcp_peer *p)
{
    ssize_t n = send(p->data, "", 1, MSG_DONTWAIT | MSG_NOSIGNAL);
    (void)n; /* full of bells is rung; a closed one is found out by who reads it */
}

/* As sendmsg. */
static ssize_t put_shared(tcp_peer *p, const struct iovec *parts, int count)
{
    size_t done = 0;
    bool ring = false, whole = true;
    for (int i = 0; i < count && whole; i++) {
        size_t n =
            sti_shared_put(&p->shared, parts[i].iov_base, parts[i].iov_len, &ring);
        if (n == STI_SHARED_BROKEN) {
            errno = EPROTO;
            return -1;
        }
        whole = n == parts[i].iov_len;
        done += n;
    }
    if (ring)
        ring_bell(p);
    errno = EAGAIN;
    return done > 0 ? (ssize_t)done : -1;
}

static ssize_t put_socket(tcp_peer *p, struct iovec *parts, int count)
{
    struct msghdr message = {.msg_iov = parts, .msg_iovlen = (size_t)count};
    return sendmsg(p->data, &message, MSG_DONTWAIT | MSG_NOSIGNAL);
}

static void write_data(tcp_comm *c, int peer)
{
    tcp_peer *p = &c->peers[peer];
    sti_comm_request *r;
    while (p->data >= 0 && (r = p->sends.first)) {
        struct iovec parts[2];
        if (r->moved == 0)
            sti_wire_put_header(r->tag, r->bytes, p->out_header);
        int count = unsent(p, r, parts);
        ssize_t n = p->shared.memory ? put_shared(p, parts, count)
                                     : put_socket(p, parts, count);
        if (try_later(n))
            return;
        if (n < 0) {
            close_socket(&p->data);
            lost(c, peer, true);
            return;
        }
        r->moved += (size_t)n;
        if (r->moved == WIRE_HEADER + r->bytes) {
            sti_comm_queue_take(&p->sends, peer, r->tag);
            sti_comm_finish(&c->base, r);
        }
    }
}

/* ---- receiving ---- */

static void *aside_bytes(aside *a)
{
    return a + 1;
}

/* Oldest first; *link points to it when it was found. */
static aside **find_aside(tcp_peer *p, const aside *wanted, uint32_t tag)
{
    aside **link = &p->asides;
    while (*link &&
           (wanted ? *link != wanted : (*link)->tag != tag || (*link)->claimed))
        link = &(*link)->next;
    return link;
}

static void drop_aside(aside **link)
{
    aside *a = *link;
    *link = a->next;
    sti_free(a);
}

static void hand_aside(tcp_comm *c, aside **link, sti_comm_request *r)
{
    aside *a = *link;
    if (a->bytes > r->bytes) {
        sti_comm_message_too_long(&c->base, r, a->bytes);
        return;
    }
    r->bytes = a->bytes;
    memcpy(r->buffer, aside_bytes(a), a->bytes);
    sti_comm_finish(&c->base, r);
    drop_aside(link);
}

static bool has_impatient(const tcp_peer *p)
{
    const sti_comm_request *r = p->receives.first;
    while (r && r->patient)
        r = r->next;
    return r != NULL;
}

/* Where the message whose header is here goes to; false: nowhere yet. */
static bool find_place(tcp_comm *c, int peer)
{
    tcp_peer *p = &c->peers[peer];
    sti_comm_request *r = sti_comm_queue_take(&p->receives, peer, p->in_tag);
    p->held = !r && !has_impatient(p);
    if (p->held)
        return false;
    if (r && p->in_bytes > r->bytes) {
        sti_comm_message_too_long(&c->base, r, p->in_bytes);
        return false;
    }
    if (r) {
        r->bytes = p->in_bytes;
        p->into = r;
        return true;
    }
    size_t bytes;
    aside *a = sti_add_bytes(sizeof *a, p->in_bytes, &bytes)
                   ? sti_alloc(bytes, "net.aside")
                   : NULL;
    if (!a) {
        sti_comm_set_failure(&c->base, true, STINT_E_MEMORY, stint_last_error());
        return false;
    }
    a->tag = p->in_tag;
    a->bytes = p->in_bytes;
    aside **link = &p->asides;
    while (*link)
        link = &(*link)->next;
    *link = p->beside = a;
    return true;
}

static void finish_message(tcp_comm *c, tcp_peer *p)
{
    p->in_header_bytes = 0;
    if (p->into) {
        sti_comm_request *r = p->into;
        p->into = NULL;
        sti_comm_finish(&c->base, r);
        return;
    }
    aside *a = p->beside;
    p->beside = NULL;
    if (a->claimed)
        hand_aside(c, find_aside(p, a, 0), a->claimed);
}

/* As recv: 0 when all was read of a peer that has closed. */
static ssize_t get_shared(tcp_peer *p, void *to, size_t n_bytes)
{
    const bool closed = p->bell_closed; /* before looking: it wrote before it closed */
    bool ring = false;
    size_t n = sti_shared_get(&p->shared, to, n_bytes, &ring);
    if (n == STI_SHARED_BROKEN) {
        errno = EPROTO;
        return -1;
    }
    if (ring)
        ring_bell(p);
    errno = EAGAIN;
    return n > 0 || closed ? (ssize_t)n : -1;
}

static void hear_bell(tcp_peer *p)
{
    char bells[64];
    ssize_t n;
    do
        n = recv(p->data, bells, sizeof bells, MSG_DONTWAIT);
    while (n == sizeof bells);
    p->bell_closed = p->bell_closed || n == 0 || (n < 0 && !try_later(n));
}

/* Up to n_bytes more; false: nothing more for now. */
static bool read_some(tcp_comm *c, int peer, void *to, size_t n_bytes, size_t *got)
{
    tcp_peer *p = &c->peers[peer];
    ssize_t n = p->shared.memory ? get_shared(p, to, n_bytes)
                                 : recv(p->data, to, n_bytes, MSG_DONTWAIT);
    if (try_later(n))
        return false;
    if (n <= 0) {
        close_socket(&p->data);
        lost(c, peer, n < 0);
        return false;
    }
    p->heard_ns = sti_clock_ns();
    *got += (size_t)n;
    return true;
}

static bool read_header(tcp_comm *c, int peer)
{
    tcp_peer *p = &c->peers[peer];
    uint64_t bytes;
    while (p->in_header_bytes < WIRE_HEADER)
        if (!read_some(c, peer, p->in_header + p->in_header_bytes,
                       WIRE_HEADER - p->in_header_bytes, &p->in_header_bytes))
            return false;
    if (!sti_wire_get_header(p->in_header, &p->in_tag, &bytes)) {
        sti_comm_fail_peer(&c->base, peer, "sent what is no message");
        return false;
    }
    p->in_bytes = (size_t)bytes;
    return true;
}

static void read_data(tcp_comm *c, int peer)
{
    tcp_peer *p = &c->peers[peer];
    size_t turn = 0;
    p->unread = false;
    while (p->data >= 0 && c->base.failure == STINT_OK && turn < READ_TURN_BYTES) {
        if (!p->into && !p->beside && (!read_header(c, peer) || !find_place(c, peer)))
            return;
        size_t *got = p->into ? &p->into->moved : &p->beside->got;
        char *to = p->into ? p->into->buffer : aside_bytes(p->beside);
        size_t before = *got;
        while (*got < p->in_bytes)
            if (!read_some(c, peer, to + *got, p->in_bytes - *got, got))
                return;
        turn += WIRE_HEADER + *got - before;
        finish_message(c, p);
    }
    p->unread = p->shared.memory && turn >= READ_TURN_BYTES;
    if (p->unread)
        wake(c); /* no bell will ring for what is there already */
}

/* ---- signs of life ---- */

static void say(tcp_comm *c, int peer, const wire_life *life)
{
    uint8_t bytes[WIRE_LIFE];
    size_t n = sti_wire_put_life(life, bytes);
    if (c->peers[peer].life >= 0) {
        ssize_t sent = send(c->peers[peer].life, bytes, n, MSG_DONTWAIT | MSG_NOSIGNAL);
        (void)sent; /* a peer that does not read will be found silent by its side */
    }
}

static void say_to_all(tcp_comm *c, const wire_life *life)
{
    for (int i = 0; i < c->base.size; i++)
        say(c, i, life);
}

static void hear(tcp_comm *c, int peer, const wire_life *life)
{
    if (life->kind == WIRE_LEAVES) {
        c->peers[peer].left = true;
        pthread_cond_broadcast(&c->base.changed);
        lost(c, peer, false);
    } else if (life->kind == WIRE_GIVES_UP && !c->leaving) {
        sti_comm_set_failure(&c->base, false, life->status, life->text);
    }
}

static void read_life(tcp_comm *c, int peer)
{
    tcp_peer *p = &c->peers[peer];
    wire_life life;
    ssize_t n = recv(p->life, p->life_in + p->life_bytes,
                     sizeof p->life_in - p->life_bytes, MSG_DONTWAIT);
    if (try_later(n))
        return;
    if (n <= 0) {
        close_socket(&p->life);
        pthread_cond_broadcast(&c->base.changed);
        lost(c, peer, n < 0);
        return;
    }
    p->heard_ns = sti_clock_ns();
    p->life_bytes += (size_t)n;
    int taken;
    while ((taken = sti_wire_get_life(p->life_in, p->life_bytes, &life)) > 0) {
        p->life_bytes -= (size_t)taken;
        memmove(p->life_in, p->life_in + taken, p->life_bytes);
        hear(c, peer, &life);
    }
    if (taken < 0)
        sti_comm_fail_peer(&c->base, peer, "sent what is no sign of life");
}

/* ---- the thread ---- */

/* After a failure what still comes is read and thrown away: closing a socket with
 * unread bytes would reset the connection and take the last words with it. */
static void discard(tcp_peer *p)
{
    char bin[4096];
    ssize_t n = 1;
    for (int i = 0; i < 256 && n > 0; i++)
        n = recv(p->data, bin, sizeof bin, MSG_DONTWAIT);
    if (n == 0 || (n < 0 && !try_later(n)))
        close_socket(&p->data);
}

static void serve_peer(tcp_comm *c, int peer, short data, short life)
{
    tcp_peer *p = &c->peers[peer];
    bool over = c->leaving || c->base.failure != STINT_OK;
    if (life && p->life >= 0)
        read_life(c, peer);
    if (p->data < 0 || !data)
        return;
    if (over) {
        discard(p);
        return;
    }
    if (p->shared.memory && data & ~POLLOUT)
        hear_bell(p);
    if (data & POLLOUT || p->shared.memory)
        write_data(c, peer);
    if (data & ~POLLOUT)
        read_data(c, peer);
}

static short wanted_of(const tcp_comm *c, const tcp_peer *p)
{
    if (c->leaving || c->base.failure != STINT_OK)
        return POLLIN;
    if (p->shared.memory)
        return p->bell_closed ? 0 : POLLIN;
    return (short)((p->held ? 0 : POLLIN) | (p->sends.first ? POLLOUT : 0));
}

/* False: all connections are closed. */
static bool fill_polls(tcp_comm *c)
{
    bool any = false;
    for (int i = 0; i < c->base.size; i++) {
        const tcp_peer *p = &c->peers[i];
        short wanted = wanted_of(c, p);
        /* poll() tells of a closed connection even where nothing is wanted. */
        c->polls[2 * i] =
            (struct pollfd){.fd = wanted ? p->data : -1, .events = wanted};
        c->polls[2 * i + 1] = (struct pollfd){.fd = p->life, .events = POLLIN};
        any = any || p->data >= 0 || p->life >= 0;
    }
    c->polls[2 * c->base.size] = (struct pollfd){.fd = c->wake, .events = POLLIN};
    return any;
}

/* Signs of life come and go every fourth of the timeout. A thread that comes later than
 * that to its sockets was stopped, with its process or its host (a job that was
 * suspended, a machine that slept), and may have missed what others said. */
static bool was_stopped(const tcp_comm *c, int64_t now_ns)
{
    return now_ns - c->turn_ns > c->base.timeout_ns / 2;
}

/* Milliseconds until signs of life are due. */
static int sign_of_life(tcp_comm *c)
{
    int64_t every = c->base.timeout_ns / 4, now = sti_clock_ns();
    for (int i = 0; was_stopped(c, now) && i < c->base.size; i++)
        c->peers[i].heard_ns = now; /* all have their time again */
    c->turn_ns = now;
    if (now - c->alive_ns >= every) {
        say_to_all(c, &(wire_life){.kind = WIRE_LIVES});
        c->alive_ns = now;
    }
    return (int)((c->alive_ns + every - now) / 1000000) + 1;
}

static void serve_turn(tcp_comm *c, int wait_ms)
{
    uint64_t count;
    pthread_mutex_unlock(&c->lock);
    int n = poll(c->polls, (nfds_t)(2 * c->base.size + 1), wait_ms);
    pthread_mutex_lock(&c->lock);
    if (n <= 0)
        return;
    if (c->polls[2 * c->base.size].revents) {
        ssize_t got = read(c->wake, &count, sizeof count);
        (void)got;
    }
    for (int i = 0; i < c->base.size; i++) {
        const int unread = c->peers[i].unread ? POLLIN : 0;
        serve_peer(c, i, (short)(c->polls[2 * i].revents | unread),
                   c->polls[2 * i + 1].revents);
    }
}

static void tcp_tell_failure(sti_comm *comm)
{
    wire_life life = {.kind = WIRE_GIVES_UP, .status = comm->failure};
    snprintf(life.text, sizeof life.text, "%.*s", WIRE_TEXT, comm->failure_text);
    say_to_all(tcp_of(comm), &life);
}

/* Say what is left to say, then hear the others out for a moment. */
static void part(tcp_comm *c)
{
    int64_t until = sti_clock_ns() + LINGER_NS, left;
    if (c->base.failure == STINT_OK)
        say_to_all(c, &(wire_life){.kind = WIRE_LEAVES});
    else /* also what was heard: a peer may meet this end before the first one */
        tcp_tell_failure(&c->base);
    for (int i = 0; i < c->base.size; i++) {
        if (c->peers[i].data >= 0)
            shutdown(c->peers[i].data, SHUT_WR);
        if (c->peers[i].life >= 0)
            shutdown(c->peers[i].life, SHUT_WR);
    }
    while (fill_polls(c) && (left = until - sti_clock_ns()) > 0)
        serve_turn(c, (int)(left / 1000000) + 1);
}

static void *serve(void *arg)
{
    tcp_comm *c = arg;
    pthread_mutex_lock(&c->lock);
    while (!c->leaving) {
        int wait_ms = sign_of_life(c);
        fill_polls(c);
        serve_turn(c, wait_ms);
    }
    part(c);
    pthread_mutex_unlock(&c->lock);
    return NULL;
}

/* ---- the maker ---- */

static void post_receive(tcp_comm *c, tcp_peer *p, sti_comm_request *r)
{
    aside **link = find_aside(p, NULL, r->tag);
    if (!*link) {
        sti_comm_queue_add(&p->receives, r);
        read_data(c, r->peer);
    } else if (*link == p->beside) {
        p->beside->claimed = r;
    } else {
        hand_aside(c, link, r);
    }
}

static void tcp_post(sti_comm *comm, sti_comm_request *r)
{
    tcp_comm *c = tcp_of(comm);
    tcp_peer *p = &c->peers[r->peer];
    bool held = p->held;
    if (r->sending) {
        sti_comm_queue_add(&p->sends, r);
        write_data(c, r->peer);
        if (p->sends.first && !p->shared.memory)
            wake(c);
    } else {
        post_receive(c, p, r);
        if (held && !p->shared.memory)
            wake(c);
    }
    if (p->data < 0 && r->state == STI_COMM_POSTED)
        lost(c, r->peer, false);
}

static int64_t tcp_heard_ns(sti_comm *comm, int peer)
{
    const tcp_comm *c = tcp_of(comm);
    const int64_t now = sti_clock_ns();
    return was_stopped(c, now) ? now : c->peers[peer].heard_ns;
}

static bool tcp_is_gone(sti_comm *comm, int peer)
{
    const tcp_peer *p = &tcp_of(comm)->peers[peer];
    return p->left || p->life < 0;
}

static void tcp_drop(sti_comm *comm)
{
    tcp_comm *c = tcp_of(comm);
    for (int i = 0; i < comm->size; i++) {
        tcp_peer *p = &c->peers[i];
        p->sends = p->receives = (comm_queue){0};
        p->into = NULL;
        p->beside = NULL;
        while (p->asides)
            drop_aside(&p->asides);
    }
    wake(c);
}

static void tcp_destroy(sti_comm *comm)
{
    tcp_comm *c = tcp_of(comm);
    if (c->has_thread) {
        pthread_mutex_lock(&c->lock);
        c->leaving = true;
        wake(c);
        pthread_mutex_unlock(&c->lock);
        pthread_join(c->thread, NULL);
        tcp_drop(comm);
    }
    for (int i = 0; c->peers && i < comm->size; i++) {
        close_socket(&c->peers[i].data);
        close_socket(&c->peers[i].life);
        sti_shared_close(&c->peers[i].shared);
    }
    close_socket(&c->wake);
    sti_comm_fini(comm);
    pthread_mutex_destroy(&c->lock);
    sti_free(c->peers);
    sti_free(c->polls);
    sti_free(c);
}

static const comm_maker tcp_maker = {.kind = "tcp",
                                     .post = tcp_post,
                                     .tell_failure = tcp_tell_failure,
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

/* Signals are for the threads of the program. */
static int start_thread(tcp_comm *c)
{
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    int error = pthread_create(&c->thread, NULL, serve, c);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return error;
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
    int error = start_thread(c);
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
