/* The thread of a communicator that serves its sockets. It waits for all of them, and
 * for signs of life to be due; the lock is open only while it sleeps in poll(). */
#include <signal.h>
#include <sys/socket.h>

#include "base/clock.h"
#include "net/tcp_priv.h"

#define LINGER_NS 1000000000 /* for the last words at the end */

static void serve_peer(tcp_comm *c, int peer, short data, short life)
{
    tcp_peer *p = &c->peers[peer];
    bool over = c->leaving || c->base.failure != STINT_OK;
    if (life && p->life >= 0)
        sti_tcp_read_life(c, peer);
    if (p->data < 0 || !data)
        return;
    if (over) {
        sti_tcp_discard(p);
        return;
    }
    if (p->shared.memory && data & ~POLLOUT)
        sti_tcp_hear_bell(p);
    if (data & POLLOUT || p->shared.memory)
        sti_tcp_write_data(c, peer);
    if (data & ~POLLOUT)
        sti_tcp_read_data(c, peer);
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

bool sti_tcp_was_stopped(const tcp_comm *c, int64_t now_ns)
{
    return now_ns - c->turn_ns > c->base.timeout_ns / 2;
}

/* Milliseconds until signs of life are due. */
static int sign_of_life(tcp_comm *c)
{
    int64_t every = c->base.timeout_ns / 4, now = sti_clock_ns();
    for (int i = 0; sti_tcp_was_stopped(c, now) && i < c->base.size; i++)
        c->peers[i].heard_ns = now; /* all have their time again */
    c->turn_ns = now;
    if (now - c->alive_ns >= every) {
        sti_tcp_say_to_all(c, &(wire_life){.kind = WIRE_LIVES});
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

/* Say what is left to say, then hear the others out for a moment. */
static void part(tcp_comm *c)
{
    int64_t until = sti_clock_ns() + LINGER_NS, left;
    if (c->base.failure == STINT_OK)
        sti_tcp_say_to_all(c, &(wire_life){.kind = WIRE_LEAVES});
    else /* also what was heard: a peer may meet this end before the first one */
        sti_tcp_tell_failure(&c->base);
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

/* Signals are for the threads of the program. */
int sti_tcp_start_thread(tcp_comm *c)
{
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    int error = pthread_create(&c->thread, NULL, serve, c);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return error;
}
