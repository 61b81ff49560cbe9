/* Every rank listens, tells all others where, connects to those below it and is
 * connected to by those above. Who connects greets with the job's token, and is greeted
 * back, so that neither a stranger nor another host that happens to have the same
 * address is taken for a peer. */
#include "net/mesh.h"

#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fail.h"
#include "base/memory.h"
#include "net/comm_priv.h"
#include "net/socket.h"

#define TRY_NS      2000000000  /* for one address, or one greeting */
#define AT_LEAST_NS 10000000000 /* for all */

typedef struct meeting {
    const sti_comm_tcp_desc *desc;
    sti_mesh *mesh;
    int listener;
    int64_t deadline_ns;
} meeting;

static int64_t within(const meeting *m)
{
    int64_t soon = sti_clock_ns() + TRY_NS;
    return soon < m->deadline_ns ? soon : m->deadline_ns;
}

static void fill_hello(const meeting *m, wire_channel channel, uint8_t out[WIRE_HELLO])
{
    wire_hello hello = {
        .channel = channel, .rank = m->desc->rank, .size = m->desc->size};
    memcpy(hello.token, m->mesh->cards[0].token, WIRE_TOKEN);
    sti_wire_put_hello(&hello, out);
}

static bool is_of_job(const meeting *m, const wire_hello *hello)
{
    return hello->size == m->desc->size &&
           memcmp(hello->token, m->mesh->cards[0].token, WIRE_TOKEN) == 0;
}

/* ---- the lower ranks ---- */

static int greet(const meeting *m, int peer, wire_channel channel, int fd)
{
    uint8_t out[WIRE_HELLO], in[WIRE_HELLO];
    wire_hello back;
    fill_hello(m, channel, out);
    if (sti_socket_write(fd, out, sizeof out, within(m)) &&
        sti_socket_read(fd, in, sizeof in, m->deadline_ns) &&
        sti_wire_get_hello(in, &back) && is_of_job(m, &back) && back.rank == peer &&
        back.channel == channel)
        return fd;
    close(fd);
    return -1;
}

static stint_status reach(const meeting *m, int peer, wire_channel channel)
{
    const wire_card *card = &m->mesh->cards[peer];
    int fd = -1;
    for (int i = 0; i < card->count && fd < 0; i++) {
        fd = sti_socket_connect(&card->addresses[i], card->port, within(m));
        if (fd >= 0)
            fd = greet(m, peer, channel, fd);
    }
    m->mesh->sockets[peer][channel] = fd;
    return fd >= 0 ? STINT_OK
                   : sti_fail(STINT_E_PEER,
                              "rank %d (%s) cannot be reached by rank %d at any of its "
                              "%d addresses, port %d; does a firewall stand between?",
                              peer, card->host, m->desc->rank, card->count, card->port);
}

/* ---- the higher ranks ---- */

static bool take_guest(const meeting *m, int fd)
{
    uint8_t in[WIRE_HELLO], out[WIRE_HELLO];
    wire_hello hello;
    if (!sti_socket_read(fd, in, sizeof in, within(m)) ||
        !sti_wire_get_hello(in, &hello))
        return false;
    if (!is_of_job(m, &hello) || hello.rank <= m->desc->rank ||
        hello.channel == WIRE_ROOT || m->mesh->sockets[hello.rank][hello.channel] >= 0)
        return false;
    fill_hello(m, hello.channel, out);
    if (!sti_socket_write(fd, out, sizeof out, within(m)))
        return false;
    m->mesh->sockets[hello.rank][hello.channel] = fd;
    return true;
}

static stint_status missing(const meeting *m)
{
    for (int r = m->desc->rank + 1; r < m->desc->size; r++)
        if (m->mesh->sockets[r][WIRE_DATA] < 0 || m->mesh->sockets[r][WIRE_ALIVE] < 0)
            return sti_fail(STINT_E_PEER,
                            "rank %d (%s) has not connected to rank %d (%s) in time", r,
                            m->mesh->cards[r].host, m->desc->rank,
                            m->mesh->cards[m->desc->rank].host);
    return STINT_OK;
}

static stint_status take_guests(const meeting *m)
{
    int left = 2 * (m->desc->size - 1 - m->desc->rank);
    while (left > 0) {
        int fd;
        stint_status st = sti_socket_accept(m->listener, m->deadline_ns, &fd);
        if (st != STINT_OK)
            return st;
        if (fd < 0)
            return missing(m);
        if (take_guest(m, fd))
            left--;
        else
            close(fd);
    }
    return STINT_OK;
}

/* ---- cards ---- */

static stint_status fill_card(const meeting *m, uint16_t port, wire_card *card)
{
    char host[COMM_HOST_BYTES];
    *card = (wire_card){.port = port};
    sti_comm_own_host(host);
    snprintf(card->host, sizeof card->host, "%s", host);
    card->count = sti_socket_own_addresses(card->addresses, WIRE_ADDRESSES);
    if (getrandom(card->token, WIRE_TOKEN, 0) != WIRE_TOKEN)
        return sti_fail_errno("no random bytes from the system");
    return card->count > 0 ? STINT_OK
                           : sti_fail(STINT_E_PEER,
                                      "rank %d (%s) has no network interface that "
                                      "is up",
                                      m->desc->rank, host);
}

static stint_status exchange_cards(const meeting *m, uint16_t port)
{
    wire_card mine;
    uint8_t bytes[WIRE_CARD];
    uint8_t *all = sti_alloc_array(m->desc->size, WIRE_CARD, "net.cards");
    stint_status st = all ? fill_card(m, port, &mine) : STINT_E_MEMORY;
    if (st == STINT_OK) {
        sti_wire_put_card(&mine, bytes);
        st = m->desc->exchange(m->desc->user, bytes, sizeof bytes, all);
    }
    for (int r = 0; r < m->desc->size && st == STINT_OK; r++)
        if (!sti_wire_get_card(all + (size_t)r * WIRE_CARD, &m->mesh->cards[r]))
            st = sti_fail(STINT_E_PEER,
                          "rank %d gave no readable address; is it "
                          "another version of Stint?",
                          r);
    sti_free(all);
    return st;
}

static int64_t all_in_time(const sti_comm_tcp_desc *desc)
{
    return sti_clock_ns() +
           (desc->timeout_ns > AT_LEAST_NS ? desc->timeout_ns : AT_LEAST_NS);
}

stint_status sti_mesh_connect(const sti_comm_tcp_desc *desc, sti_mesh *mesh)
{
    meeting m = {.desc = desc, .mesh = mesh, .listener = -1};
    uint16_t port;
    mesh->size = desc->size;
    mesh->cards = sti_alloc_array(desc->size, sizeof *mesh->cards, "net.cards");
    mesh->sockets = sti_alloc_array(desc->size, sizeof *mesh->sockets, "net.sockets");
    if (!mesh->cards || !mesh->sockets)
        return STINT_E_MEMORY;
    memset(mesh->sockets, 0xff, (size_t)desc->size * sizeof *mesh->sockets); /* -1 */
    stint_status st = sti_socket_listen(NULL, 0, &m.listener, &port);
    if (st == STINT_OK)
        st = exchange_cards(&m, port);
    m.deadline_ns = all_in_time(desc);
    for (int r = 0; r < desc->rank && st == STINT_OK; r++)
        for (wire_channel c = WIRE_DATA; c <= WIRE_ALIVE && st == STINT_OK; c++)
            st = reach(&m, r, c);
    if (st == STINT_OK)
        st = take_guests(&m);
    if (m.listener >= 0)
        close(m.listener);
    return st;
}

void sti_mesh_fini(sti_mesh *mesh)
{
    for (int r = 0; mesh->sockets && r < mesh->size; r++)
        for (int c = 0; c < WIRE_CHANNELS; c++)
            if (mesh->sockets[r][c] >= 0)
                close(mesh->sockets[r][c]);
    sti_free(mesh->cards);
    sti_free(mesh->sockets);
}
