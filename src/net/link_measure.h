/* Measuring the links between ranks: round trips of messages over the very communicator
 * that training uses.
 *
 * One ordered pair at a time: the first sends s bytes, the second answers with one. A
 * time is that round trip less half of the round trip of one byte, so that the two
 * directions are measured apart and clocks of two hosts are never compared. Sizes are
 * spread by logarithm and drawn in a shuffled order, at least 30 times each unless time
 * runs out, until the 95 % interval of each median is within 2 %. The second rank says
 * when it is ready, so that nobody's delay counts, and looks at every byte. */
#ifndef STI_NET_LINK_MEASURE_H
#define STI_NET_LINK_MEASURE_H

#include "net/comm.h"
#include "net/link_model.h"

enum { STI_TAG_LINK = 0x2200, STI_LINK_LARGEST_LEAST = 1 << 16 };
enum { STI_LINK_SIZES_DRAWN = 24, STI_LINK_LEAST_DRAWS = 30 }; /* of each size */

typedef struct sti_measure_desc {
    double seconds;    /* for all pairs; 0: 10 */
    int64_t max_bytes; /* of a message, at least STI_LINK_LARGEST_LEAST, and less where
                          the time does not allow them; 0: 4 MiB */
    uint64_t seed;
    bool links_alone; /* how fast gradients are coded is not measured */
} sti_measure_desc;

/* A message's bytes, which depend on their places and its number; and whether those
 * that came from a rank are the ones from `place` on. STINT_E_PEER names what differs,
 * to all ranks. */
void sti_link_fill(uint64_t number, int64_t n_bytes, uint8_t *out);
stint_status sti_link_check(sti_comm *comm, int from, uint64_t number, int64_t place,
                            int64_t n_bytes, const uint8_t *bytes);

/* Collective; links_out (of the arena) is filled on every rank. All ordered pairs of up
 * to 4 ranks; of more, each rank and the next, both ways. STINT_E_USAGE: one rank.
 * STINT_E_PEER: bytes that came are not those that were sent. */
stint_status sti_links_measure(sti_comm *comm, const sti_measure_desc *desc,
                               sti_arena *arena, sti_links *links_out);

#endif
