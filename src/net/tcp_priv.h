/* Inside the communicator over TCP: its peers, and what its files share. */
#ifndef STI_NET_TCP_PRIV_H
#define STI_NET_TCP_PRIV_H

#include <errno.h>
#include <poll.h>
#include <unistd.h>

#include "net/comm_priv.h"
#include "net/shared_ring.h"
#include "net/wire.h"

/* A message set aside; its bytes follow. */
typedef struct tcp_aside {
    struct tcp_aside *next;
    uint32_t tag;
    size_t bytes, got;
    sti_comm_request *claimed; /* asked for while it was still arriving */
} tcp_aside;

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
    tcp_aside *beside;      /* or here */
    tcp_aside *asides;      /* oldest first, the arriving one included */
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

static inline void sti_tcp_wake(const tcp_comm *c)
{
    uint64_t one = 1;
    ssize_t n = write(c->wake, &one, sizeof one);
    (void)n; /* full means that it is awake already */
}

static inline void sti_tcp_close_socket(int *fd)
{
    if (*fd >= 0)
        close(*fd);
    *fd = -1;
}

static inline bool sti_tcp_try_later(ssize_t n)
{
    return n < 0 && (errno == EAGAIN || errno == EINTR);
}

/* Every function below but the last is called with the lock held. */

/* ---- life and end (tcp_life.c) ---- */

/* A connection of the peer is closed: fine when it said that it leaves (which may still
 * be on its way while the other connection is open) and nobody wants more of it. */
void sti_tcp_lost(tcp_comm *c, int peer, bool broken);
void sti_tcp_say_to_all(tcp_comm *c, const wire_life *life);
void sti_tcp_tell_failure(sti_comm *comm);
void sti_tcp_read_life(tcp_comm *c, int peer);

/* ---- messages (tcp_data.c) ---- */

/* As much of what waits to be sent and to be read as the peer's socket or memory takes
 * and has. */
void sti_tcp_write_data(tcp_comm *c, int peer);
void sti_tcp_read_data(tcp_comm *c, int peer);
/* A request for a message, which may have been set aside already. */
void sti_tcp_post_receive(tcp_comm *c, tcp_peer *p, sti_comm_request *r);
void sti_tcp_hear_bell(tcp_peer *p);
/* After a failure what still comes is read and thrown away: closing a socket with
 * unread bytes would reset the connection and take the last words with it. */
void sti_tcp_discard(tcp_peer *p);
/* All requests, and what was set aside, are forgotten. */
void sti_tcp_forget(tcp_peer *p);

/* ---- the thread (tcp_thread.c) ---- */

/* Signs of life come and go every fourth of the timeout. A thread that comes later than
 * that to its sockets was stopped, with its process or its host (a job that was
 * suspended, a machine that slept), and may have missed what others said. */
bool sti_tcp_was_stopped(const tcp_comm *c, int64_t now_ns);
/* Gives 0, or the error of pthread_create. The thread takes the lock by itself. */
int sti_tcp_start_thread(tcp_comm *c);

#endif
