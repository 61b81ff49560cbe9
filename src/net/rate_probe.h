/* What a rank's link carries while all exchange at once, as in a sum of gradients: a
 * short look before training. net/link_measure.h does it with care. */
#ifndef STI_NET_RATE_PROBE_H
#define STI_NET_RATE_PROBE_H

#include "net/comm.h"

enum { STI_TAG_PROBE = 0x2300 };

/* Every rank sends to the next and receives from the one before; the messages double
 * until they take so long. The rate of the slowest rank, the same on all, of three
 * figures. Collective; two ranks or more. */
stint_status sti_rate_probe(sti_comm *comm, double seconds, double *bits_per_s_out);

#endif
