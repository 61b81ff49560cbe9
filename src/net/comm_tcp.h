/* Ranks that are processes on one host or several, joined by TCP, and those of one host
 * by memory that they share. */
#ifndef STI_NET_COMM_TCP_H
#define STI_NET_COMM_TCP_H

#include "net/comm.h"

/* Every rank brings n_bytes and gets those of all, [size, n_bytes]: how ranks learn of
 * each other's addresses before they have connections. */
typedef stint_status sti_comm_exchange_fn(void *user, const void *mine, size_t n_bytes,
                                          void *all_out);

typedef struct sti_comm_tcp_desc {
    int rank, size;
    int64_t timeout_ns; /* of silence; also for connecting, but at least 10 s */
    bool sockets_only;  /* no memory is shared; enough that one of a pair says so */
    /* What all must have; NULL or "": not compared. */
    const char *build, *purpose;
    sti_comm_exchange_fn *exchange;
    void *user;
} sti_comm_tcp_desc;

/* Called by all ranks. STINT_E_PEER names who could not be reached. */
stint_status sti_comm_create_tcp(const sti_comm_tcp_desc *desc, sti_comm **comm_out);

#endif
