/* Windows: memory that a rank writes and the others only read.
 *
 * A window has one part a rank, all of one size, one after the other in the addresses
 * of every rank, so that an index counted from a rank's own part reaches any other. Its
 * own part a rank reads and writes. That of another rank of its host is the very memory
 * of that rank, mapped read-only: nothing travels, and who wrote there would fault.
 * That of a rank elsewhere (or with whom no memory can be shared) is a mirror in own
 * memory, which messages of its owner have to fill: sti_window_is_shared says which.
 *
 * Who reads a shared part synchronises by atomics that lie in it: the owner stores with
 * release, the reader loads with acquire. The memory has no name and is sealed at its
 * size. */
#ifndef STI_NET_RANK_WINDOW_H
#define STI_NET_RANK_WINDOW_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>

#include "net/comm.h"

/* Zeroed: none. */
typedef struct sti_window {
    sti_comm *comm;
    unsigned char *base; /* [size, stride_bytes] */
    size_t stride_bytes;
    bool *shared; /* [size] */
} sti_window;

/* Parts begin at multiples of it. */
enum { STI_WINDOW_ALIGN = 1 << 16 };

/* Collective; every part is zeros. part_bytes: what this rank wants; the largest wish
 * counts, rounded up to STI_WINDOW_ALIGN. share false: of any rank enough that nothing
 * is shared with it. STINT_E_MEMORY, STINT_E_PEER. The communicator must outlive the
 * window. */
stint_status sti_window_create(sti_comm *comm, size_t part_bytes, bool share,
                               sti_window *window_out);
/* NULL parts and a zeroed window are fine. Others may still read theirs. */
void sti_window_destroy(sti_window *window);

static inline void *sti_window_part(const sti_window *window, int rank)
{
    return window->base + (size_t)rank * window->stride_bytes;
}

/* Is that rank's part its own memory? Of this rank: true. Both of a pair say the same.
 */
static inline bool sti_window_is_shared(const sti_window *window, int rank)
{
    return window->shared[rank];
}

/* Until a counter in that rank's part is at least `wanted`: spinning, then letting
 * others run. STINT_E_PEER: the rank is lost. */
stint_status sti_window_wait(const sti_window *window, int rank,
                             const atomic_llong *counter, long long wanted);

#endif
