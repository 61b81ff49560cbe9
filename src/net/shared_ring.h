/* Bytes between two processes of one host, through memory that both have mapped: a ring
 * each way. Nobody waits in here: who finds a ring empty or full says so in it, and the
 * other side then knows that a bell must be rung (the caller has a socket for it).
 *
 * The memory has no name, so nothing is left behind however a process ends, and it is
 * sealed at its size, so that no peer can make the other fault by cutting it. */
#ifndef STI_NET_SHARED_RING_H
#define STI_NET_SHARED_RING_H

#include <stdbool.h>
#include <stddef.h>

#include "stint/status.h"

typedef struct sti_ring sti_ring;

/* Zeroed: no memory is shared. Serves one thread at a time. */
typedef struct sti_shared {
    void *memory;
    size_t bytes;      /* of the mapping, all resident */
    size_t ring_bytes; /* a power of two */
    sti_ring *in, *out;
} sti_shared;

/* Bytes of the mapping that each pair of so many ranks of a host has. */
size_t sti_shared_bytes(int ranks);
/* By one of the two, on a host of so many ranks; *fd_out is for the other and the
 * caller's to close. */
stint_status sti_shared_create(int ranks, sti_shared *shared_out, int *fd_out);
/* By the other. The caller closes fd, too. */
stint_status sti_shared_open(int fd, sti_shared *shared_out);
void sti_shared_close(sti_shared *shared);

#define STI_SHARED_BROKEN SIZE_MAX /* the ring says what cannot be */

/* Up to n_bytes; how many. Less than n_bytes: the peer will ring when there is more
 * room, or more to read. *ring: the peer waits for this and must be told. */
size_t sti_shared_put(sti_shared *shared, const void *bytes, size_t n_bytes,
                      bool *ring);
size_t sti_shared_get(sti_shared *shared, void *bytes, size_t n_bytes, bool *ring);

#endif
