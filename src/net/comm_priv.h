/* What a maker of communicators fills in. */
#ifndef STI_NET_COMM_PRIV_H
#define STI_NET_COMM_PRIV_H

#include <pthread.h>

#include "net/comm.h"

#define COMM_HOST_BYTES 64
#define COMM_TEXT_BYTES 1024

typedef struct comm_maker {
    const char *kind;
    /* With the lock held: take the request, and finish it (sti_comm_finish) when it is.
     */
    void (*post)(sti_comm *comm, sti_comm_request *request);
    /* With the lock held and comm->failure set by this rank: tell the others. */
    void (*tell_failure)(sti_comm *comm);
    /* With the lock held: when the peer was last heard of, on sti_clock_ns; 0: never.
     */
    int64_t (*heard_ns)(sti_comm *comm, int peer);
    /* With the lock held: has it said that it leaves, or is it lost? What makes it true
     * wakes all who wait for changes. */
    bool (*is_gone)(sti_comm *comm, int peer);
    /* After a failure, with the lock held: forget all requests; on return no buffer is
     * touched any more. May let go of the lock meanwhile. */
    void (*drop)(sti_comm *comm);
    void (*destroy)(sti_comm *comm); /* its own part and the comm itself */
} comm_maker;

struct sti_comm {
    const comm_maker *maker;
    const char *kind;
    int rank, size;
    char (*hosts)[COMM_HOST_BYTES]; /* [size] */
    const char *collective;
    int64_t step, timeout_ns;
    sti_comm_counts counts;
    size_t shared_bytes, start_peak_bytes, block_bytes;
    pthread_mutex_t *lock;  /* of this rank, or of the whole world of threads */
    pthread_cond_t changed; /* a request of this rank is done, or a failure came */
    stint_status failure;
    bool local_failure;
    char failure_text[COMM_TEXT_BYTES];
    bool dropped; /* no buffer is touched any more */
};

/* The parts that every maker's struct begins with; hosts are the maker's to fill, and
 * what else it allocates is to be added to block_bytes. */
stint_status sti_comm_init(sti_comm *comm, const comm_maker *maker, int rank, int size,
                           pthread_mutex_t *lock);
void sti_comm_fini(sti_comm *comm);
void sti_comm_local_host(char host_out[COMM_HOST_BYTES]);

/* With the lock held. */
void sti_comm_finish(sti_comm *comm, sti_comm_request *request);
/* The first failure stays. */
void sti_comm_set_failure(sti_comm *comm, bool local, stint_status status,
                          const char *text);
/* STINT_E_PEER: "rank 3 (host) WHAT in sum of gradients of step 12; the way out". */
void sti_comm_fail_peer(sti_comm *comm, int peer, const char *what);
void sti_comm_message_too_long(sti_comm *comm, const sti_comm_request *request,
                               size_t came_bytes);

/* Queues of requests. */
typedef struct comm_queue {
    sti_comm_request *first, *last;
} comm_queue;
void sti_comm_queue_add(comm_queue *queue, sti_comm_request *request);
/* The first one for that peer and tag, taken out; NULL. */
sti_comm_request *sti_comm_queue_take(comm_queue *queue, int peer, uint32_t tag);

#endif
