/* Which peers live: what they say of themselves on the second connection of a pair
 * (wire.h), and what a closed connection means. */
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

#include "base/clock.h"
#include "net/tcp_priv.h"

/* ---- the end of a peer ---- */

static bool has_claims(const tcp_peer *p)
{
    for (const tcp_aside *a = p->asides; a; a = a->next)
        if (a->claimed)
            return true;
    return false;
}

void sti_tcp_lost(tcp_comm *c, int peer, bool broken)
{
    tcp_peer *p = &c->peers[peer];
    if (broken && p->life >= 0)
        sti_tcp_read_life(c, peer); /* it may have said why */
    if (c->leaving || c->base.failure != STINT_OK)
        return;
    if (!p->left && (broken || p->life < 0))
        sti_comm_fail_peer(&c->base, peer, "is gone: its connection closed");
    else if (p->left && p->data < 0 &&
             (p->into || p->receives.first || p->sends.first || has_claims(p)))
        sti_comm_fail_peer(&c->base, peer, "has left");
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

void sti_tcp_say_to_all(tcp_comm *c, const wire_life *life)
{
    for (int i = 0; i < c->base.size; i++)
        say(c, i, life);
}

void sti_tcp_tell_failure(sti_comm *comm)
{
    wire_life life = {.kind = WIRE_GIVES_UP, .status = comm->failure};
    snprintf(life.text, sizeof life.text, "%.*s", WIRE_TEXT, comm->failure_text);
    sti_tcp_say_to_all((tcp_comm *)comm, &life);
}

static void hear(tcp_comm *c, int peer, const wire_life *life)
{
    if (life->kind == WIRE_LEAVES) {
        c->peers[peer].left = true;
        pthread_cond_broadcast(&c->base.changed);
        sti_tcp_lost(c, peer, false);
    } else if (life->kind == WIRE_GIVES_UP && !c->leaving) {
        sti_comm_set_failure(&c->base, false, life->status, life->text);
    }
}

void sti_tcp_read_life(tcp_comm *c, int peer)
{
    tcp_peer *p = &c->peers[peer];
    wire_life life;
    ssize_t n = recv(p->life, p->life_in + p->life_bytes,
                     sizeof p->life_in - p->life_bytes, MSG_DONTWAIT);
    if (sti_tcp_try_later(n))
        return;
    if (n <= 0) {
        sti_tcp_close_socket(&p->life);
        pthread_cond_broadcast(&c->base.changed);
        sti_tcp_lost(c, peer, n < 0);
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
