/* Messages between two ranks, through a socket or memory that they share.
 *
 * Nobody reads a message that was not asked for: it stays in the sockets and holds its
 * sender back. Only where the rank asked that peer for another one, which must then be
 * behind it, the first is set aside in memory of its own; one that it merely expects
 * (sti_comm_expect) does not count. */
#include <string.h>
#include <sys/socket.h>

#include "base/clock.h"
#include "base/fail.h"
#include "base/memory.h"
#include "net/tcp_priv.h"

#define READ_TURN_BYTES (4 << 20) /* of one peer before the others have their turn */

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

void sti_tcp_write_data(tcp_comm *c, int peer)
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
        if (sti_tcp_try_later(n))
            return;
        if (n < 0) {
            sti_tcp_close_socket(&p->data);
            sti_tcp_lost(c, peer, true);
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

static void *aside_bytes(tcp_aside *a)
{
    return a + 1;
}

/* Oldest first; *link points to it when it was found. */
static tcp_aside **find_aside(tcp_peer *p, const tcp_aside *wanted, uint32_t tag)
{
    tcp_aside **link = &p->asides;
    while (*link &&
           (wanted ? *link != wanted : (*link)->tag != tag || (*link)->claimed))
        link = &(*link)->next;
    return link;
}

static void drop_aside(tcp_aside **link)
{
    tcp_aside *a = *link;
    *link = a->next;
    sti_free(a);
}

static void hand_aside(tcp_comm *c, tcp_aside **link, sti_comm_request *r)
{
    tcp_aside *a = *link;
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
    tcp_aside *a = sti_add_bytes(sizeof *a, p->in_bytes, &bytes)
                       ? sti_alloc(bytes, "net.aside")
                       : NULL;
    if (!a) {
        sti_comm_set_failure(&c->base, true, STINT_E_MEMORY, stint_last_error());
        return false;
    }
    a->tag = p->in_tag;
    a->bytes = p->in_bytes;
    tcp_aside **link = &p->asides;
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
    tcp_aside *a = p->beside;
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

void sti_tcp_hear_bell(tcp_peer *p)
{
    char bells[64];
    ssize_t n;
    do
        n = recv(p->data, bells, sizeof bells, MSG_DONTWAIT);
    while (n == sizeof bells);
    p->bell_closed = p->bell_closed || n == 0 || (n < 0 && !sti_tcp_try_later(n));
}

/* Up to n_bytes more; false: nothing more for now. */
static bool read_some(tcp_comm *c, int peer, void *to, size_t n_bytes, size_t *got)
{
    tcp_peer *p = &c->peers[peer];
    ssize_t n = p->shared.memory ? get_shared(p, to, n_bytes)
                                 : recv(p->data, to, n_bytes, MSG_DONTWAIT);
    if (sti_tcp_try_later(n))
        return false;
    if (n <= 0) {
        sti_tcp_close_socket(&p->data);
        sti_tcp_lost(c, peer, n < 0);
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

void sti_tcp_read_data(tcp_comm *c, int peer)
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
        sti_tcp_wake(c); /* no bell will ring for what is there already */
}

void sti_tcp_post_receive(tcp_comm *c, tcp_peer *p, sti_comm_request *r)
{
    tcp_aside **link = find_aside(p, NULL, r->tag);
    if (!*link) {
        sti_comm_queue_add(&p->receives, r);
        sti_tcp_read_data(c, r->peer);
    } else if (*link == p->beside) {
        p->beside->claimed = r;
    } else {
        hand_aside(c, link, r);
    }
}

/* ---- the end ---- */

void sti_tcp_discard(tcp_peer *p)
{
    char bin[4096];
    ssize_t n = 1;
    for (int i = 0; i < 256 && n > 0; i++)
        n = recv(p->data, bin, sizeof bin, MSG_DONTWAIT);
    if (n == 0 || (n < 0 && !sti_tcp_try_later(n)))
        sti_tcp_close_socket(&p->data);
}

void sti_tcp_forget(tcp_peer *p)
{
    p->sends = p->receives = (comm_queue){0};
    p->into = NULL;
    p->beside = NULL;
    while (p->asides)
        drop_aside(&p->asides);
}
