#define _GNU_SOURCE /* MSG_CMSG_CLOEXEC */
#include "net/socket.h"

#include <arpa/inet.h>
#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fail.h"

/* ---- addresses ---- */

static socklen_t to_system(const wire_address *address, uint16_t port,
                           struct sockaddr_storage *out)
{
    memset(out, 0, sizeof *out);
    if (address->family == 4) {
        struct sockaddr_in *in = (struct sockaddr_in *)out;
        in->sin_family = AF_INET;
        in->sin_port = htons(port);
        memcpy(&in->sin_addr, address->bytes, 4);
        return sizeof *in;
    }
    struct sockaddr_in6 *in6 = (struct sockaddr_in6 *)out;
    in6->sin6_family = AF_INET6;
    in6->sin6_port = htons(port);
    memcpy(&in6->sin6_addr, address->bytes, 16);
    return sizeof *in6;
}

static bool from_system(const struct sockaddr *in, wire_address *out)
{
    *out = (wire_address){0};
    if (in->sa_family == AF_INET) {
        out->family = 4;
        memcpy(out->bytes, (const char *)in + offsetof(struct sockaddr_in, sin_addr),
               4);
    } else if (in->sa_family == AF_INET6) {
        out->family = 6;
        memcpy(out->bytes, (const char *)in + offsetof(struct sockaddr_in6, sin6_addr),
               16);
    }
    /* A link-local address means nothing without its interface. */
    return out->family == 4 ||
           (out->family == 6 && !(out->bytes[0] == 0xfe && out->bytes[1] == 0x80));
}

bool sti_socket_is_address(const char *host)
{
    uint8_t bytes[16];
    return inet_pton(AF_INET, host, bytes) == 1 ||
           inet_pton(AF_INET6, host, bytes) == 1;
}

bool sti_socket_is_loopback(const wire_address *address)
{
    static const uint8_t one[16] = {[15] = 1};
    return address->family == 4 ? address->bytes[0] == 127
                                : memcmp(address->bytes, one, sizeof one) == 0;
}

void sti_socket_address_text(const wire_address *address,
                             char text_out[SOCKET_ADDRESS_TEXT])
{
    const int family = address->family == 4 ? AF_INET : AF_INET6;
    if (!inet_ntop(family, address->bytes, text_out, SOCKET_ADDRESS_TEXT))
        text_out[0] = '\0';
}

int sti_socket_resolve(const char *host, wire_address *out, int max_count)
{
    struct addrinfo hints = {.ai_socktype = SOCK_STREAM}, *list = NULL;
    int count = 0;
    if (getaddrinfo(host, NULL, &hints, &list) != 0)
        return 0;
    for (const struct addrinfo *a = list; a && count < max_count; a = a->ai_next)
        count += from_system(a->ai_addr, &out[count]);
    freeaddrinfo(list);
    return count;
}

int sti_socket_local_addresses(wire_address *out, int max_count)
{
    struct ifaddrs *list = NULL;
    int count = 0;
    if (getifaddrs(&list) != 0)
        return 0;
    for (int loopback = 0; loopback < 2; loopback++)
        for (const struct ifaddrs *a = list; a && count < max_count; a = a->ifa_next)
            if (a->ifa_addr && (a->ifa_flags & IFF_UP) &&
                !(a->ifa_flags & IFF_LOOPBACK) == !loopback)
                count += from_system(a->ifa_addr, &out[count]);
    freeifaddrs(list);
    return count;
}

/* ---- listening and connecting ---- */

static void no_delay(int fd)
{
    int on = 1;
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
}

/* Always -1; errno stays what it was. */
static int close_failed(int fd)
{
    int saved = errno;
    close(fd);
    errno = saved;
    return -1;
}

static int listen_on(const struct sockaddr_storage *address, socklen_t length)
{
    int on = 1, off = 0;
    int fd = socket(address->ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0)
        return -1;
    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    if (address->ss_family == AF_INET6)
        setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof off);
    if (bind(fd, (const struct sockaddr *)address, length) == 0 &&
        listen(fd, 1024) == 0)
        return fd;
    return close_failed(fd);
}

static uint16_t port_of(int fd)
{
    struct sockaddr_storage bound;
    socklen_t length = sizeof bound;
    if (getsockname(fd, (struct sockaddr *)&bound, &length) != 0)
        return 0;
    return ntohs(bound.ss_family == AF_INET
                     ? ((struct sockaddr_in *)&bound)->sin_port
                     : ((struct sockaddr_in6 *)&bound)->sin6_port);
}

stint_status sti_socket_listen(const char *host, uint16_t port, int *fd_out,
                               uint16_t *port_out)
{
    /* Without IPv6 the second of the two works. */
    wire_address all[WIRE_ADDRESSES] = {{.family = 6}, {.family = 4}};
    int count = host ? sti_socket_resolve(host, all, WIRE_ADDRESSES) : 2;
    struct sockaddr_storage address;
    *fd_out = -1;
    if (count == 0)
        return sti_fail(STINT_E_PEER,
                        "cannot listen on %s: no address of that name is known here "
                        "(link-local ones are of no use)",
                        host);
    for (int i = 0; i < count && *fd_out < 0; i++) {
        socklen_t length = to_system(&all[i], port, &address);
        *fd_out = listen_on(&address, length);
    }
    if (*fd_out < 0)
        return sti_fail(STINT_E_PEER, "cannot listen on %s port %d: %s",
                        host ? host : "this host,", port, strerror(errno));
    *port_out = port_of(*fd_out);
    return STINT_OK;
}

/* Until one is ready or the deadline is over. */
static bool wait_for_any(struct pollfd *polls, int count, int64_t deadline_ns)
{
    for (;;) {
        int64_t left = deadline_ns - sti_clock_ns();
        int n = poll(polls, (nfds_t)count, left > 0 ? (int)(left / 1000000) + 1 : 0);
        if (n > 0)
            return true;
        if (left <= 0 || (n < 0 && errno != EINTR))
            return false;
    }
}

static bool wait_for(int fd, short events, int64_t deadline_ns)
{
    return wait_for_any(&(struct pollfd){.fd = fd, .events = events}, 1, deadline_ns);
}

stint_status sti_socket_accept(const int *listeners, int count, int64_t deadline_ns,
                               int *fd_out)
{
    struct pollfd polls[2];
    assert(count <= 2);
    for (int i = 0; i < count; i++)
        polls[i] = (struct pollfd){.fd = listeners[i], .events = POLLIN};
    *fd_out = -1;
    while (wait_for_any(polls, count, deadline_ns)) {
        for (int i = 0; i < count && *fd_out < 0; i++)
            *fd_out = polls[i].revents ? accept(listeners[i], NULL, NULL) : -1;
        if (*fd_out >= 0) {
            fcntl(*fd_out, F_SETFD, FD_CLOEXEC);
            fcntl(*fd_out, F_SETFL, O_NONBLOCK);
            no_delay(*fd_out);
            return STINT_OK;
        }
        if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM)
            return sti_fail(STINT_E_PEER, "a connection cannot be taken: %s",
                            strerror(errno));
    }
    return STINT_OK;
}

int sti_socket_connect(const wire_address *address, uint16_t port, int64_t deadline_ns)
{
    struct sockaddr_storage to;
    socklen_t length = to_system(address, port, &to);
    int error = 0;
    socklen_t error_length = sizeof error;
    int fd = socket(to.ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0)
        return -1;
    bool fine = connect(fd, (const struct sockaddr *)&to, length) == 0 ||
                (errno == EINPROGRESS && wait_for(fd, POLLOUT, deadline_ns) &&
                 getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &error_length) == 0 &&
                 error == 0);
    if (!fine) {
        close(fd);
        return -1;
    }
    no_delay(fd);
    return fd;
}

/* ---- within a host ---- */

/* An abstract name: no file, gone with the last who has it open. */
static socklen_t address_of_name(const char *kind, const char *name,
                                 struct sockaddr_un *out)
{
    *out = (struct sockaddr_un){.sun_family = AF_UNIX};
    int n =
        snprintf(out->sun_path + 1, sizeof out->sun_path - 1, "stint-%s%s", kind, name);
    assert(n > 0 && n < (int)sizeof out->sun_path - 1);
    return (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + (size_t)n);
}

/* Bound or connected by `join`. */
static int open_name(const char *kind, const char *name,
                     int (*join)(int, const struct sockaddr *, socklen_t))
{
    struct sockaddr_un address;
    const socklen_t length = address_of_name(kind, name, &address);
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0 || join(fd, (const struct sockaddr *)&address, length) == 0)
        return fd;
    return close_failed(fd);
}

static int listen_to(int fd)
{
    return fd < 0 || listen(fd, 1024) == 0 ? fd : close_failed(fd);
}

/* As text: "00ff...". */
static const char *name_of_door(const uint8_t door[WIRE_DOOR],
                                char name_out[2 * WIRE_DOOR + 1])
{
    for (int i = 0; i < WIRE_DOOR; i++)
        snprintf(name_out + 2 * i, 3, "%02x", door[i]);
    return name_out;
}

int sti_socket_listen_door(const uint8_t door[WIRE_DOOR])
{
    char name[2 * WIRE_DOOR + 1];
    return listen_to(open_name("", name_of_door(door, name), bind));
}

int sti_socket_connect_door(const uint8_t door[WIRE_DOOR])
{
    char name[2 * WIRE_DOOR + 1];
    return open_name("", name_of_door(door, name), connect);
}

int sti_socket_listen_name(const char *name)
{
    return listen_to(open_name("at-", name, bind));
}

int sti_socket_connect_name(const char *name)
{
    return open_name("at-", name, connect);
}

bool sti_socket_is_door(int fd)
{
    struct sockaddr_storage bound;
    socklen_t length = sizeof bound;
    return getsockname(fd, (struct sockaddr *)&bound, &length) == 0 &&
           bound.ss_family == AF_UNIX;
}

typedef union fd_room { /* aligned as a control message must be */
    struct cmsghdr header;
    char bytes[CMSG_SPACE(sizeof(int))];
} fd_room;

bool sti_socket_write_fd(int fd, uint8_t byte, int pass_fd, int64_t deadline_ns)
{
    fd_room room = {0};
    struct iovec part = {.iov_base = &byte, .iov_len = 1};
    struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1};
    if (pass_fd >= 0) {
        message.msg_control = room.bytes;
        message.msg_controllen = sizeof room.bytes;
        struct cmsghdr *c = CMSG_FIRSTHDR(&message);
        *c = (struct cmsghdr){.cmsg_len = CMSG_LEN(sizeof(int)),
                              .cmsg_level = SOL_SOCKET,
                              .cmsg_type = SCM_RIGHTS};
        memcpy(CMSG_DATA(c), &pass_fd, sizeof pass_fd);
    }
    return wait_for(fd, POLLOUT, deadline_ns) &&
           sendmsg(fd, &message, MSG_DONTWAIT | MSG_NOSIGNAL) == 1;
}

bool sti_socket_read_fd(int fd, uint8_t *byte_out, int *pass_fd_out,
                        int64_t deadline_ns)
{
    fd_room room = {0};
    struct iovec part = {.iov_base = byte_out, .iov_len = 1};
    struct msghdr message = {.msg_iov = &part,
                             .msg_iovlen = 1,
                             .msg_control = room.bytes,
                             .msg_controllen = sizeof room.bytes};
    *pass_fd_out = -1;
    if (!wait_for(fd, POLLIN, deadline_ns) ||
        recvmsg(fd, &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC) != 1)
        return false;
    const struct cmsghdr *c = CMSG_FIRSTHDR(&message);
    if (c && c->cmsg_level == SOL_SOCKET && c->cmsg_type == SCM_RIGHTS &&
        c->cmsg_len == CMSG_LEN(sizeof(int)))
        memcpy(pass_fd_out, CMSG_DATA(c), sizeof *pass_fd_out);
    return true;
}

/* ---- bytes ---- */

bool sti_socket_read(int fd, void *bytes, size_t n_bytes, int64_t deadline_ns)
{
    for (size_t done = 0; done < n_bytes;) {
        if (!wait_for(fd, POLLIN, deadline_ns))
            return false;
        ssize_t n = recv(fd, (char *)bytes + done, n_bytes - done, MSG_DONTWAIT);
        if (n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR))
            return false;
        done += n > 0 ? (size_t)n : 0;
    }
    return true;
}

bool sti_socket_write(int fd, const void *bytes, size_t n_bytes, int64_t deadline_ns)
{
    for (size_t done = 0; done < n_bytes;) {
        if (!wait_for(fd, POLLOUT, deadline_ns))
            return false;
        ssize_t n = send(fd, (const char *)bytes + done, n_bytes - done,
                         MSG_DONTWAIT | MSG_NOSIGNAL);
        if (n < 0 && errno != EAGAIN && errno != EINTR)
            return false;
        done += n > 0 ? (size_t)n : 0;
    }
    return true;
}

bool sti_socket_has_left(int fd)
{
    char byte;
    const ssize_t n = recv(fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT);
    return n == 0 || (n < 0 && errno == ECONNRESET);
}
