/* Every rank listens, tells all others where, connects to those below it and is
 * connected to by those above. Who connects greets with the job's token, and is greeted
 * back, so that neither a stranger nor another host that happens to have the same
 * address is taken for a peer.
 *
 * A rank of the same host is found at its door, a local socket, and then gets half of
 * the memory for messages between the two. Where there is no memory to share, the local
 * socket itself carries them, and a warning says so. */
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
    int listeners[2]; /* for all; the door, -1: none */
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

static void warn_apart(const meeting *m, int peer)
{
    sti_log(
        STINT_LOG_WARNING,
        "rank %d shares no memory with rank %d of the same host: %s; their messages "
        "go through a socket",
        m->desc->rank, peer, stint_last_error());
}

static int ranks_of_host(const meeting *m)
{
    const wire_card *cards = m->mesh->cards;
    int count = 0;
    for (int r = 0; r < m->desc->size; r++)
        count += strcmp(cards[r].host, cards[m->desc->rank].host) == 0;
    return count;
}

/* Makes the memory and hands it over; the peer answers whether it could map it. */
static void offer_memory(const meeting *m, int peer, int fd)
{
    sti_shared *shared = &m->mesh->shared[peer];
    int memory_fd;
    uint8_t taken = 0;
    const stint_status st = sti_shared_create(ranks_of_host(m), shared, &memory_fd);
    if (st != STINT_OK)
        warn_apart(m, peer);
    if (!sti_socket_write_fd(fd, st == STINT_OK, memory_fd, within(m)) ||
        !sti_socket_read(fd, &taken, 1, m->deadline_ns) || !taken)
        sti_shared_close(shared);
    if (memory_fd >= 0)
        close(memory_fd);
}

/* The data connection to a rank of this host; -1: it has no door here. */
static int reach_door(const meeting *m, int peer)
{
    static const uint8_t none[WIRE_DOOR];
    const wire_card *card = &m->mesh->cards[peer];
    if (m->desc->sockets_only || memcmp(card->door, none, WIRE_DOOR) == 0)
        return -1;
    int fd = sti_socket_connect_door(card->door);
    if (fd >= 0)
        fd = greet(m, peer, WIRE_DATA, fd);
    if (fd >= 0)
        offer_memory(m, peer, fd);
    return fd;
}

static stint_status reach(const meeting *m, int peer, wire_channel channel)
{
    const wire_card *card = &m->mesh->cards[peer];
    int fd = channel == WIRE_DATA ? reach_door(m, peer) : -1;
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

static void take_memory(const meeting *m, int peer, int fd)
{
    sti_shared *shared = &m->mesh->shared[peer];
    int memory_fd = -1;
    uint8_t offered = 0, taken = 0;
    if (sti_socket_read_fd(fd, &offered, &memory_fd, m->deadline_ns) && offered) {
        taken = sti_shared_open(memory_fd, shared) == STINT_OK;
        if (!taken)
            warn_apart(m, peer);
    }
    if (memory_fd >= 0)
        close(memory_fd);
    if (!sti_socket_write(fd, &taken, 1, within(m)))
        sti_shared_close(shared);
}

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
    if (sti_socket_is_door(fd))
        take_memory(m, hello.rank, fd);
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
        stint_status st = sti_socket_accept(m->listeners, 2, m->deadline_ns, &fd);
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

static bool random_bytes(uint8_t *out, size_t n)
{
    return getrandom(out, n, 0) == (ssize_t)n;
}

/* Ranks of this host are not told of a door that cannot be opened. */
static void open_door(meeting *m, wire_card *card)
{
    if (m->desc->sockets_only || !random_bytes(card->door, WIRE_DOOR))
        return;
    m->listeners[1] = sti_socket_listen_door(card->door);
    if (m->listeners[1] < 0)
        memset(card->door, 0, WIRE_DOOR);
}

static stint_status fill_card(meeting *m, uint16_t port, wire_card *card)
{
    char host[COMM_HOST_BYTES];
    *card = (wire_card){.port = port};
    sti_comm_local_host(host);
    snprintf(card->host, sizeof card->host, "%s", host);
    snprintf(card->build, sizeof card->build, "%s",
             m->desc->build ? m->desc->build : "");
    snprintf(card->purpose, sizeof card->purpose, "%s",
             m->desc->purpose ? m->desc->purpose : "");
    card->count = sti_socket_local_addresses(card->addresses, WIRE_ADDRESSES);
    open_door(m, card);
    if (!random_bytes(card->token, WIRE_TOKEN))
        return sti_fail_errno("no random bytes from the system");
    return card->count > 0 ? STINT_OK
                           : sti_fail(STINT_E_PEER,
                                      "rank %d (%s) has no network interface that "
                                      "is up",
                                      m->desc->rank, host);
}

/* Other builds may have other bits, and do not say so. */
static stint_status compare_builds(const wire_card *cards, int size)
{
    for (int r = 1; r < size; r++)
        if (*cards[0].build && *cards[r].build &&
            strcmp(cards[0].build, cards[r].build) != 0)
            return sti_fail(
                STINT_E_USAGE,
                "rank %d (%s) runs another build of Stint than rank 0 (%s): "
                "%s, not %s; start the same file on all hosts",
                r, cards[r].host, cards[0].host, cards[r].build, cards[0].build);
    return STINT_OK;
}

/* Ranks of another command would wait for other messages. */
static stint_status compare_purposes(const wire_card *cards, int size)
{
    for (int r = 1; r < size; r++)
        if (*cards[0].purpose && *cards[r].purpose &&
            strcmp(cards[0].purpose, cards[r].purpose) != 0)
            return sti_fail(
                STINT_E_USAGE,
                "another command runs there: rank %d (%s) is of `stint %s`, rank 0 "
                "(%s) of `stint %s`; give one of them another net-root, or start the "
                "same command as all ranks",
                r, cards[r].host, cards[r].purpose, cards[0].host, cards[0].purpose);
    return STINT_OK;
}

static stint_status exchange_cards(meeting *m, uint16_t port)
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
    if (st == STINT_OK)
        st = compare_purposes(m->mesh->cards, m->desc->size);
    return st == STINT_OK ? compare_builds(m->mesh->cards, m->desc->size) : st;
}

static int64_t all_in_time(const sti_comm_tcp_desc *desc)
{
    return sti_clock_ns() +
           (desc->timeout_ns > AT_LEAST_NS ? desc->timeout_ns : AT_LEAST_NS);
}

stint_status sti_mesh_connect(const sti_comm_tcp_desc *desc, sti_mesh *mesh)
{
    meeting m = {.desc = desc, .mesh = mesh, .listeners = {-1, -1}};
    uint16_t port;
    mesh->size = desc->size;
    mesh->cards = sti_alloc_array(desc->size, sizeof *mesh->cards, "net.cards");
    mesh->sockets = sti_alloc_array(desc->size, sizeof *mesh->sockets, "net.sockets");
    mesh->shared = sti_alloc_array(desc->size, sizeof *mesh->shared, "net.shared");
    if (!mesh->cards || !mesh->sockets || !mesh->shared)
        return STINT_E_MEMORY;
    memset(mesh->sockets, 0xff, (size_t)desc->size * sizeof *mesh->sockets); /* -1 */
    stint_status st = sti_socket_listen(NULL, 0, &m.listeners[0], &port);
    if (st == STINT_OK)
        st = exchange_cards(&m, port);
    m.deadline_ns = all_in_time(desc);
    for (int r = 0; r < desc->rank && st == STINT_OK; r++)
        for (wire_channel c = WIRE_DATA; c <= WIRE_ALIVE && st == STINT_OK; c++)
            st = reach(&m, r, c);
    if (st == STINT_OK)
        st = take_guests(&m);
    for (int i = 0; i < 2; i++)
        if (m.listeners[i] >= 0)
            close(m.listeners[i]);
    return st;
}

void sti_mesh_fini(sti_mesh *mesh)
{
    for (int r = 0; mesh->sockets && r < mesh->size; r++)
        for (int c = 0; c < WIRE_CHANNELS; c++)
            if (mesh->sockets[r][c] >= 0)
                close(mesh->sockets[r][c]);
    for (int r = 0; mesh->shared && r < mesh->size; r++)
        sti_shared_close(&mesh->shared[r]);
    sti_free(mesh->cards);
    sti_free(mesh->sockets);
    sti_free(mesh->shared);
}
