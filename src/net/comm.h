/* The communicator: ranks that send each other bytes.
 *
 * A rank is one of `size` equal peers: a thread (sti_comm_create_local) or a process.
 * Messages between two ranks with the same tag arrive in the order in which they were
 * sent; a receive names the sender and the tag, so nothing depends on who is first.
 * Sends and receives return at once; the request, owned by the caller, is done when the
 * buffer may be used again, which for a receive means that the bytes are there.
 * Nothing is allocated for messages whose receives are posted in the order of the
 * sends.
 *
 * A failure (a peer that died or is silent, a rank that gave up) is recorded once for
 * the whole communicator: from then on every wait gives it, no buffer is touched any
 * more, and only destroying is left. Its words name rank, host, collective and step.
 *
 * A communicator serves one thread at a time; sti_comm_wake and sti_comm_give_up may be
 * called by others meanwhile. */
#ifndef STI_NET_COMM_H
#define STI_NET_COMM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "stint/status.h"

typedef struct sti_comm sti_comm;

/* Tags at and above are for the communicator itself. */
#define STI_COMM_TAGS 0x80000000u

typedef enum sti_comm_state {
    STI_COMM_IDLE, /* zeroed, or waited for */
    STI_COMM_POSTED,
    STI_COMM_DONE
} sti_comm_state;

/* A message on its way, in the caller's memory; zero it before its first use. Stays
 * where it is until it was waited for. Fields are the communicator's, but `bytes` of a
 * finished receive: what came, at most what was asked for. */
typedef struct sti_comm_request {
    sti_comm_state state;
    bool sending;
    bool patient; /* of sti_comm_expect */
    int peer;
    uint32_t tag;
    size_t bytes;
    void *buffer;
    size_t moved;                  /* the maker's */
    struct sti_comm_request *next; /* likewise */
    void *handle;                  /* likewise */
} sti_comm_request;

/* ---- makers ---- */

/* `size` ranks of one process, for as many threads. Each is destroyed on its own. */
stint_status sti_comm_create_local(int size, sti_comm **comms_out);
/* Rank 0 of `size` that are not there, `group` neighbours a host: for what asks who is
 * there, and sends nothing. The first message fails with STINT_E_BUG. */
stint_status sti_comm_create_planned(int size, int group, sti_comm **comm_out);

/* Never blocks on peers. NULL is fine. A rank that goes without having failed first has
 * nothing more to say: peers that still wait for it fail. */
void sti_comm_destroy(sti_comm *comm);

/* ---- who ---- */

int sti_comm_rank(const sti_comm *comm);
int sti_comm_size(const sti_comm *comm);
const char *sti_comm_host(const sti_comm *comm, int rank);
/* "threads", "tcp", "shared memory", "tcp and shared memory" */
const char *sti_comm_kind(const sti_comm *comm);

/* Memory shared with ranks of the same host, all of it. */
size_t sti_comm_shared_bytes(const sti_comm *comm);
/* Where the resident memory of the process was highest while MPI's libraries had the
 * ranks find each other, most of which they then gave back; 0: without MPI. */
size_t sti_comm_start_peak_bytes(const sti_comm *comm);
/* Bytes of sti_alloc that the communicator holds while nothing is on its way. */
size_t sti_comm_block_bytes(const sti_comm *comm);

/* What goes on, for the words of failures: a literal ("sum of gradients"), and the step
 * counted from 1, or 0 outside of steps. */
void sti_comm_set_context(sti_comm *comm, const char *collective, int64_t step);

/* How long a peer may be silent while it is waited for; STI_COMM_TIMEOUT_NS at first.
 * A process that computes is not silent: a thread of its communicator answers. A rank
 * that is a thread has no such help: from it, the message itself must come in time. */
#define STI_COMM_TIMEOUT_NS INT64_C(30000000000)
void sti_comm_set_timeout(sti_comm *comm, int64_t timeout_ns);

/* ---- messages ---- */

/* 0 bytes are a message too. To and from oneself is a bug. */
void sti_comm_send(sti_comm *comm, int to, uint32_t tag, const void *bytes,
                   size_t n_bytes, sti_comm_request *request);
/* Receive a message of at most n_bytes; a longer one is a failure. */
void sti_comm_receive(sti_comm *comm, int from, uint32_t tag, void *buffer,
                      size_t n_bytes, sti_comm_request *request);
/* As sti_comm_receive, long before the message: others of that peer that nobody asked
 * for yet may come first, and wait for it where they are. */
void sti_comm_expect(sti_comm *comm, int from, uint32_t tag, void *buffer,
                     size_t n_bytes, sti_comm_request *request);

/* Those that are done become idle, and came[i] true. Never blocks. */
stint_status sti_comm_sweep(sti_comm *comm, sti_comm_request *requests, int64_t count,
                            bool *came);
/* Until one request is done; it becomes idle. *which_out: its place, -1 when all are
 * idle. */
stint_status sti_comm_wait_any(sti_comm *comm, sti_comm_request *requests, int count,
                               int *which_out);
/* Until one is done (none becomes idle), or news(user) is true. Whoever makes it true
 * calls sti_comm_wake then. news is called under a lock: it only looks. */
stint_status sti_comm_wait_news(sti_comm *comm, const sti_comm_request *requests,
                                int count, bool (*news)(void *user), void *user);
void sti_comm_wake(sti_comm *comm);
/* For who waits for a peer in memory that both share, now and then: fails as a wait for
 * its message would that began at since_ns (sti_clock_ns). Never blocks. */
stint_status sti_comm_watch(sti_comm *comm, int peer, int64_t since_ns);
/* Until all are done, idle ones left out. STINT_E_PEER, or what a rank gave up for. */
stint_status sti_comm_wait_all(sti_comm *comm, sti_comm_request *requests, int count);

/* ---- small collectives: every rank calls them, in the same order ---- */

stint_status sti_comm_barrier(sti_comm *comm);
/* Send the bytes of root to all, along a binary tree. */
stint_status sti_comm_broadcast(sti_comm *comm, int root, void *bytes, size_t n_bytes);
/* n_bytes of each rank to root's all_out [size, n_bytes] (elsewhere unused). */
stint_status sti_comm_gather(sti_comm *comm, int root, const void *bytes,
                             size_t n_bytes, void *all_out);
/* Likewise to all ranks. */
stint_status sti_comm_gather_all(sti_comm *comm, const void *bytes, size_t n_bytes,
                                 void *all_out);
/* To each rank its own bytes: `send` holds those for rank 0, 1 and so on, one after the
 * other, send_bytes[r] for rank r, which may be 0; so lie those that came in
 * receive_out. Both ends of a pair know how many: receive_bytes[r] here is send_bytes
 * of this rank there. What a rank has for itself is copied. Nothing is allocated. */
stint_status sti_comm_all_to_all(sti_comm *comm, const void *send,
                                 const size_t *send_bytes, void *receive_out,
                                 const size_t *receive_bytes);
/* Largest of each value over the ranks; count <= 16. */
stint_status sti_comm_max(sti_comm *comm, int64_t *values, int count);
/* Every rank brings what became of its part; all get that of the lowest rank that
 * failed, with its words. The communicator stays sound. */
stint_status sti_comm_agree(sti_comm *comm, stint_status mine);

/* This rank cannot go on: `status` (not STINT_OK) and the words of stint_last_error()
 * reach all others, whatever they wait for. Returns status. Where the communicator has
 * failed already, nothing happens. */
stint_status sti_comm_give_up(sti_comm *comm, stint_status status);
/* Until that rank has left or is lost, also after a failure. Nobody is told: others may
 * still be busy with what it has said. */
void sti_comm_outstay(sti_comm *comm, int rank);
/* Has the communicator failed? Its words are then in text_out (may be NULL), and
 * *local_out (may be NULL) says whether this rank was the first to know. */
stint_status sti_comm_failure(sti_comm *comm, char *text_out, size_t text_bytes,
                              bool *local_out);

/* ---- counters ---- */

/* Messages sent and received so far, with those of the collectives above and without
 * signs of life; bytes without headers. */
typedef struct sti_comm_counts {
    int64_t messages_sent, messages_received;
    int64_t bytes_sent, bytes_received;
} sti_comm_counts;
sti_comm_counts sti_comm_count(const sti_comm *comm);

#endif
