#define _GNU_SOURCE /* SOCK_CLOEXEC, getaddrinfo */
#include "serve/http_listen.h"

#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/fail.h"
#include "base/shown.h"

enum { BACKLOG = 1024, PORT_MOST = 65535 };

static bool is_socket(const char *path)
{
    struct stat file;
    return lstat(path, &file) == 0 && S_ISSOCK(file.st_mode);
}

/* The socket of an earlier server that is gone is replaced; any other file stays. */
static stint_status listen_path(const char *path, sti_http_listener *l)
{
    struct sockaddr_un name = {.sun_family = AF_UNIX};
    if (strlen(path) >= sizeof name.sun_path || !*path)
        return sti_fail(STINT_E_USAGE, "unix:%s: a path of 1 to 107 bytes was wanted",
                        sti_shown(path));
    snprintf(name.sun_path, sizeof name.sun_path, "%s", path);
    l->fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (l->fd < 0)
        return sti_fail_errno("%s", sti_shown(path));
    if (connect(l->fd, (struct sockaddr *)&name, sizeof name) < 0 &&
        errno == ECONNREFUSED && is_socket(path))
        (void)unlink(path);
    (void)close(l->fd);
    l->fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (l->fd < 0 || bind(l->fd, (struct sockaddr *)&name, sizeof name) < 0 ||
        listen(l->fd, BACKLOG) < 0)
        return sti_fail_errno("cannot listen on %s", sti_shown(path));
    snprintf(l->path, sizeof l->path, "%s", path);
    snprintf(l->address, sizeof l->address, "unix:%s", path);
    return STINT_OK;
}

static stint_status split(const char *address, char *host, size_t host_bytes,
                          const char **port_out)
{
    const char *colon = strrchr(address, ':');
    size_t length = colon ? (size_t)(colon - address) : 0;
    const char *first = address;
    if (length > 1 && *first == '[' && first[length - 1] == ']') {
        first++;
        length -= 2;
    }
    if (!colon || length >= host_bytes || !colon[1] ||
        strspn(colon + 1, "0123456789") != strlen(colon + 1) || strlen(colon + 1) > 5 ||
        atoi(colon + 1) > PORT_MOST)
        return sti_fail(STINT_E_USAGE,
                        "%s: HOST:PORT or unix:PATH was wanted, 127.0.0.1:8000 for one",
                        sti_shown(address));
    memcpy(host, first, length);
    host[length] = '\0';
    *port_out = colon + 1;
    return STINT_OK;
}

static int open_one(const struct addrinfo *a)
{
    const int yes = 1;
    const int fd = socket(a->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0)
        return -1;
    (void)setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
    if (bind(fd, a->ai_addr, a->ai_addrlen) == 0 && listen(fd, BACKLOG) == 0)
        return fd;
    const int error = errno;
    (void)close(fd);
    errno = error;
    return -1;
}

/* The address with the port that the system gave. */
static stint_status tell(const char *host, sti_http_listener *l)
{
    struct sockaddr_storage name;
    socklen_t bytes = sizeof name;
    if (getsockname(l->fd, (struct sockaddr *)&name, &bytes) < 0)
        return sti_fail_errno("%s", sti_shown(host));
    const uint16_t port = name.ss_family == AF_INET6
                              ? ((struct sockaddr_in6 *)&name)->sin6_port
                              : ((struct sockaddr_in *)&name)->sin_port;
    const bool six = strchr(host, ':') != NULL;
    snprintf(l->address, sizeof l->address, "%s%.100s%s:%d", six ? "[" : "", host,
             six ? "]" : "", ntohs(port));
    return STINT_OK;
}

stint_status sti_http_listen(const char *address, sti_http_listener *listener_out)
{
    char host[256];
    const char *port = NULL;
    struct addrinfo *found = NULL;
    const struct addrinfo want = {.ai_socktype = SOCK_STREAM,
                                  .ai_flags = AI_PASSIVE | AI_NUMERICSERV};
    sti_http_listener *l = listener_out;
    *l = (sti_http_listener){.fd = -1};
    if (strncmp(address, "unix:", 5) == 0)
        return listen_path(address + 5, l);
    stint_status st = split(address, host, sizeof host, &port);
    if (st != STINT_OK)
        return st;
    const int error = getaddrinfo(*host ? host : NULL, port, &want, &found);
    if (error != 0)
        return sti_fail(STINT_E_IO, "%s: %s", sti_shown(address), gai_strerror(error));
    for (const struct addrinfo *a = found; a && l->fd < 0; a = a->ai_next)
        l->fd = open_one(a);
    if (l->fd < 0)
        st = sti_fail_errno("cannot listen on %s (port 0 takes a free one)",
                            sti_shown(address));
    freeaddrinfo(found);
    return st == STINT_OK ? tell(host, l) : st;
}

void sti_http_unlisten(sti_http_listener *listener)
{
    if (listener->fd >= 0)
        (void)close(listener->fd);
    if (*listener->path)
        (void)unlink(listener->path);
    *listener = (sti_http_listener){.fd = -1};
}
