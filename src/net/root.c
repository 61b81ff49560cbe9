/* Ranks meet at rank 0: it listens at an address that all know, collects a blob of
 * each, and gives all to all. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fail.h"
#include "base/memory.h"
#include "base/text.h"
#include "base/units.h"
#include "net/net.h"
#include "net/socket.h"

#define TRY_NS   2000000000
#define PAUSE_NS 50000000 /* before the next try to reach rank 0 */
/* Versions of messages go up to here; a larger number is a stranger's. */
#define LATEST_VERSION 999

/* "@name": letters, digits and "-_.", so that every list of sockets can print it. */
static stint_status parse_name(const char *name, sti_root_place *out)
{
    static const char fine[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
                               "0123456789-_.";
    const size_t length = strlen(name);
    if (length == 0 || length > SOCKET_NAME_MAX || strspn(name, fine) != length)
        return sti_fail(STINT_E_USAGE,
                        "net-root: '@%s' is no @NAME of 1 to %d letters, digits, '-', "
                        "'_' and '.'",
                        name, SOCKET_NAME_MAX);
    *out = (sti_root_place){.port = 0};
    memcpy(out->host, name, length);
    return STINT_OK;
}

stint_status sti_root_parse(const char *address, sti_root_place *out)
{
    if (address[0] == '@')
        return parse_name(address + 1, out);
    const char *colon = strrchr(address, ':');
    size_t length = colon ? (size_t)(colon - address) : 0;
    int64_t port = 0;
    bool brackets = length > 2 && address[0] == '[' && address[length - 1] == ']';
    if (length == 0 || length >= 256 || sti_parse_int(colon + 1, &port) != STINT_OK ||
        port < 1 || port > 65535)
        return sti_fail(STINT_E_USAGE,
                        "net-root: '%s' is no HOST:PORT with a port from 1 to 65535, "
                        "and no @NAME (within this host)",
                        address);
    snprintf(out->host, sizeof out->host, "%.*s", (int)(brackets ? length - 2 : length),
             address + brackets);
    out->port = (int)port;
    return STINT_OK;
}

typedef struct gathering {
    const sti_root *root;
    size_t n_bytes;
    uint8_t *all;
    int *sockets; /* [size] of rank 0; -1: not there yet */
    int there;
    int64_t deadline_ns;
} gathering;

static int64_t soon(const gathering *g)
{
    int64_t then = sti_clock_ns() + TRY_NS;
    return then < g->deadline_ns ? then : g->deadline_ns;
}

/* ---- rank 0 ---- */

/* A rank that has left, and comes again, is not there twice. */
static void forget_if_left(gathering *g, int rank)
{
    if (g->sockets[rank] < 0 || !sti_socket_has_left(g->sockets[rank]))
        return;
    close(g->sockets[rank]);
    g->sockets[rank] = -1;
    g->there--;
}

static stint_status take_guest(gathering *g, int fd, bool *taken)
{
    uint8_t in[WIRE_HELLO];
    wire_hello hello;
    *taken = false;
    if (!sti_socket_read(fd, in, sizeof in, soon(g)))
        return STINT_OK;
    const uint32_t version = sti_wire_hello_version(in);
    if (version > 0 && version != WIRE_VERSION && version <= LATEST_VERSION)
        return sti_fail(
            STINT_E_USAGE,
            "another build of Stint came to %s: its messages are of version "
            "%" PRIu32 ", these of %d; start the same file on all hosts",
            g->root->address, version, WIRE_VERSION);
    if (!sti_wire_get_hello(in, &hello) || hello.channel != WIRE_ROOT)
        return STINT_OK; /* a stranger */
    if (hello.size != g->root->size)
        return sti_fail(STINT_E_USAGE,
                        "net-ranks: rank %d was started with %d, rank 0 with %d",
                        hello.rank, hello.size, g->root->size);
    forget_if_left(g, hello.rank);
    if (hello.rank == 0 || g->sockets[hello.rank] >= 0)
        return sti_fail(STINT_E_USAGE,
                        "net-rank: two processes say that they are rank "
                        "%d",
                        hello.rank);
    *taken = sti_socket_read(fd, g->all + (size_t)hello.rank * g->n_bytes, g->n_bytes,
                             soon(g));
    if (*taken)
        g->sockets[hello.rank] = fd;
    return STINT_OK;
}

static stint_status say_who_is_missing(const gathering *g)
{
    sti_text list = {0};
    int missing = 0;
    for (int r = 1; r < g->root->size; r++)
        if (g->sockets[r] < 0 && missing++ < 8)
            sti_text_printf(&list, "%s%d", missing > 1 ? ", " : "", r);
    stint_status st = sti_fail(STINT_E_PEER,
                               "%d of %d ranks did not come to %s within %s (rank "
                               "%s%s); were they started "
                               "with this address, and can they reach it?",
                               missing, g->root->size, g->root->address,
                               sti_time_text((double)g->root->timeout_ns * 1e-9),
                               list.data ? list.data : "", missing > 8 ? ", ..." : "");
    sti_text_fini(&list);
    return st;
}

static bool all_are_there(gathering *g)
{
    for (int r = 1; r < g->root->size && g->there == g->root->size; r++)
        forget_if_left(g, r);
    return g->there == g->root->size;
}

static stint_status collect(gathering *g, int listener)
{
    stint_status st = STINT_OK;
    for (g->there = 1; st == STINT_OK && !all_are_there(g);) {
        bool taken = false;
        int fd;
        st = sti_socket_accept(&listener, 1, g->deadline_ns, &fd);
        if (st == STINT_OK && fd < 0)
            return say_who_is_missing(g);
        if (st == STINT_OK)
            st = take_guest(g, fd, &taken);
        if (!taken && fd >= 0)
            close(fd);
        g->there += taken;
    }
    return st;
}

static stint_status hand_out(const gathering *g)
{
    for (int r = 1; r < g->root->size; r++)
        if (!sti_socket_write(g->sockets[r], g->all, (size_t)g->root->size * g->n_bytes,
                              soon(g)))
            return sti_fail(STINT_E_PEER, "rank %d is gone before it began", r);
    return STINT_OK;
}

/* Debian gives a host's own name 127.0.1.1 on that host, where those of other hosts,
 * which know it by its real address, could not come. Who writes an address or localhost
 * means it. */
static bool is_loopback_here(const char *host, char text_out[SOCKET_ADDRESS_TEXT])
{
    wire_address all[WIRE_ADDRESSES];
    if (sti_socket_is_address(host) || strncasecmp(host, "localhost", 9) == 0 ||
        strncasecmp(host, "ip6-l", 5) == 0)
        return false;
    const int count = sti_socket_resolve(host, all, WIRE_ADDRESSES);
    for (int i = 0; i < count; i++)
        if (sti_socket_is_loopback(&all[i])) {
            sti_socket_address_text(&all[i], text_out);
            return true;
        }
    return false;
}

static void say_everywhere(const sti_root_place *place, const char *loopback)
{
    wire_address own;
    char text[SOCKET_ADDRESS_TEXT] = "no other";
    if (sti_socket_local_addresses(&own, 1) == 1 && !sti_socket_is_loopback(&own))
        sti_socket_address_text(&own, text);
    sti_log(STINT_LOG_INFO,
            "net-root: %s is %s on this host, where only ranks of this host could "
            "come; rank 0 listens at all of the host's addresses, port %d (%s first); "
            "give that one where others do not know the name",
            place->host, loopback, place->port, text);
}

static stint_status listen_at(const sti_root_place *place, int *fd_out)
{
    uint16_t bound;
    char loopback[SOCKET_ADDRESS_TEXT];
    if (place->port > 0 && is_loopback_here(place->host, loopback)) {
        say_everywhere(place, loopback);
        return sti_socket_listen(NULL, (uint16_t)place->port, fd_out, &bound);
    }
    if (place->port > 0)
        return sti_socket_listen(place->host, (uint16_t)place->port, fd_out, &bound);
    *fd_out = sti_socket_listen_name(place->host);
    if (*fd_out >= 0)
        return STINT_OK;
    return sti_fail(STINT_E_PEER, "cannot meet others at @%s: %s", place->host,
                    errno == EADDRINUSE ? "a run of this host has taken this name"
                                        : strerror(errno));
}

static stint_status be_root(gathering *g, const sti_root_place *place)
{
    int listener = -1;
    g->sockets = sti_alloc_array(g->root->size, sizeof *g->sockets, "net.root");
    if (!g->sockets)
        return STINT_E_MEMORY;
    for (int r = 0; r < g->root->size; r++)
        g->sockets[r] = -1;
    stint_status st = listen_at(place, &listener);
    if (st == STINT_OK)
        st = collect(g, listener);
    if (st == STINT_OK)
        st = hand_out(g);
    for (int r = 0; r < g->root->size; r++)
        if (g->sockets[r] >= 0)
            close(g->sockets[r]);
    if (listener >= 0)
        close(listener);
    sti_free(g->sockets);
    return st;
}

/* ---- the others ---- */

static int try_root(const gathering *g, const sti_root_place *place)
{
    wire_address all[WIRE_ADDRESSES];
    if (place->port == 0)
        return sti_socket_connect_name(place->host);
    const int count = sti_socket_resolve(place->host, all, WIRE_ADDRESSES);
    int fd = -1;
    for (int i = 0; i < count && fd < 0; i++)
        fd = sti_socket_connect(&all[i], (uint16_t)place->port, soon(g));
    return fd;
}

/* Rank 0 may start later than this one. */
static int reach_root(const gathering *g, const sti_root_place *place)
{
    int fd = -1;
    while (fd < 0 && sti_clock_ns() < g->deadline_ns) {
        fd = try_root(g, place);
        if (fd < 0)
            nanosleep(&(struct timespec){.tv_nsec = PAUSE_NS}, NULL);
    }
    return fd;
}

static stint_status be_guest(const gathering *g, const sti_root_place *place,
                             const void *mine)
{
    uint8_t out[WIRE_HELLO];
    int fd = reach_root(g, place);
    if (fd < 0)
        return sti_fail(STINT_E_PEER,
                        "rank 0 cannot be reached by rank %d at %s within %s; is it "
                        "started, and %s its host?",
                        g->root->rank, g->root->address,
                        sti_time_text((double)g->root->timeout_ns * 1e-9),
                        place->port > 0 ? "is this an address of" : "is this");
    sti_wire_put_hello(&(wire_hello){.channel = WIRE_ROOT,
                                     .rank = g->root->rank,
                                     .size = g->root->size},
                       out);
    bool fine = sti_socket_write(fd, out, sizeof out, soon(g)) &&
                sti_socket_write(fd, mine, g->n_bytes, soon(g)) &&
                sti_socket_read(fd, g->all, (size_t)g->root->size * g->n_bytes,
                                g->deadline_ns + TRY_NS);
    close(fd);
    return fine ? STINT_OK
                : sti_fail(STINT_E_PEER,
                           "rank 0 at %s has closed the meeting without rank %d; what "
                           "rank 0 says is why",
                           g->root->address, g->root->rank);
}

stint_status sti_root_exchange(void *user, const void *mine, size_t n_bytes,
                               void *all_out)
{
    const sti_root *root = user;
    gathering g = {.root = root,
                   .n_bytes = n_bytes,
                   .all = all_out,
                   .deadline_ns = sti_clock_ns() + root->timeout_ns};
    sti_root_place place;
    stint_status st = sti_root_parse(root->address, &place);
    if (st != STINT_OK)
        return st;
    memcpy(g.all + (size_t)root->rank * n_bytes, mine, n_bytes);
    return root->rank == 0 ? be_root(&g, &place) : be_guest(&g, &place, mine);
}
