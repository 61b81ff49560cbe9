/* Sockets with deadlines, for the time before ranks talk to each other. Times are
 * those of sti_clock_ns. Failures are STINT_E_PEER. */
#ifndef STI_NET_SOCKET_H
#define STI_NET_SOCKET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "net/wire.h"

enum { SOCKET_NAME_MAX = 64 };

/* Listen on all interfaces of both families (port 0: any), or on one address. */
stint_status sti_socket_listen(const char *host, uint16_t port, int *fd_out,
                               uint16_t *port_out);
/* At any of the listeners; *fd_out -1 when nobody came in time. */
stint_status sti_socket_accept(const int *listeners, int count, int64_t deadline_ns,
                               int *fd_out);
/* -1 when there is no way, or none in time. */
int sti_socket_connect(const wire_address *address, uint16_t port, int64_t deadline_ns);
/* Addresses of a name ("node1", "10.0.0.1", "::1"); the number of them. */
int sti_socket_resolve(const char *host, wire_address *out, int max_count);
/* Is this text an address in numbers, not a name? */
bool sti_socket_is_address(const char *host);
/* Does it lead to the very host that uses it (127.x.x.x, ::1)? */
bool sti_socket_is_loopback(const wire_address *address);
/* In numbers, as "10.0.0.7". */
enum { SOCKET_ADDRESS_TEXT = 48 };
void sti_socket_address_text(const wire_address *address,
                             char text_out[SOCKET_ADDRESS_TEXT]);
/* Addresses of this host's interfaces that are up, loopback last. */
int sti_socket_local_addresses(wire_address *out, int max_count);

/* Within a host: a door is a name that its system knows while somebody listens, seen
 * by those who share its network (two network namespaces do not). -1: errno says why,
 * or nobody is there. */
int sti_socket_listen_door(const uint8_t door[WIRE_DOOR]);
int sti_socket_connect_door(const uint8_t door[WIRE_DOOR]);
/* The same by a name of at most SOCKET_NAME_MAX bytes that people have agreed on. */
int sti_socket_listen_name(const char *name);
int sti_socket_connect_name(const char *name);
bool sti_socket_is_door(int fd);
/* A byte, and with it a file descriptor to a process of this host; -1: none. */
bool sti_socket_write_fd(int fd, uint8_t byte, int pass_fd, int64_t deadline_ns);
bool sti_socket_read_fd(int fd, uint8_t *byte_out, int *pass_fd_out,
                        int64_t deadline_ns);

/* All n_bytes or false. */
bool sti_socket_read(int fd, void *bytes, size_t n_bytes, int64_t deadline_ns);
bool sti_socket_write(int fd, const void *bytes, size_t n_bytes, int64_t deadline_ns);
/* The other side has closed, and all that it sent was read. */
bool sti_socket_has_left(int fd);

#endif
