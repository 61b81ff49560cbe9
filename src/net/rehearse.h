/* Rehearsal: the schedule of a sum run over a model of ranks and links, message by
 * message: of a compressed one, or of an exact one (net/tree_sum.h).
 *
 * Links serve messages in the order in which they come, each at its own rate; a message
 * passes the links of its path at once (cut-through) and is there when the slowest has
 * served it, and after all latencies. A sum goes in the parts of a real one. Of each, a
 * rank enters a round when the one before is done: it encodes before it sends, waits
 * for what others send and decodes it; while it waits it turns to other parts. The
 * moves are those of net/exchange_schedule.h, which real sums follow too.
 *
 * All ranks of a schedule do the same, only with other neighbours: what one host (of a
 * fat tree: one leaf switch, of a dumbbell: one side) does is rehearsed, and the others
 * do likewise. So thousands of ranks take as long as those of one host. */
#ifndef STI_NET_REHEARSE_H
#define STI_NET_REHEARSE_H

#include <stdbool.h>
#include <stdint.h>

#include "net/exchange_schedule.h"

/* What is taken where nobody says otherwise, as options have it: from host to host at
 * one switch; between the processes of a host; of a process a value, encoded, or
 * decoded and added. */
#define STI_USUAL_LATENCY        "50us"
#define STI_USUAL_INSIDE         "5GB/s"
#define STI_USUAL_INSIDE_LATENCY 1e-6
#define STI_USUAL_ENCODE         "0.5ns"
#define STI_USUAL_DECODE         "0.4ns"

typedef enum sti_topology_kind {
    STI_TOPOLOGY_ETHERNET, /* every host at one switch */
    STI_TOPOLOGY_DUMBBELL, /* two switches, half of the hosts at each, one trunk */
    STI_TOPOLOGY_FAT_TREE, /* leaf switches with as much upwards as downwards, divided
                              by `taper`; what is above them never blocks */
} sti_topology_kind;

/* A direction of a link. */
typedef struct sti_link {
    double latency_s, seconds_per_byte;
} sti_link;

typedef struct sti_topology {
    sti_topology_kind kind;
    int ranks, group; /* group: ranks a host, neighbours by number */
    sti_link inside;  /* from a rank to others of its host */
    sti_link host;    /* between host and switch */
    sti_link trunk;   /* dumbbell: between the switches. Fat tree: its latency; the rate
                         of an uplink is that of its hosts / taper */
    int leaf;         /* fat tree: hosts a leaf switch */
    double taper;     /* fat tree: 1 is full bisection */
} sti_topology;

typedef struct sti_rehearsal {
    sti_scheme scheme;
    int64_t values;
    int64_t fusion;            /* values of a part; 0: one part */
    int window;                /* parts on their way at a time; 0: all */
    bool exact;                /* floats along the shard tree: only adding is work */
    int64_t shards;            /* of it; 0: one a rank */
    double bytes_per_value;    /* of encoded slices; raw moves take 4 */
    double encode_s, decode_s; /* a rank's work a value; decode: and to add */
} sti_rehearsal;

typedef struct sti_rehearsed {
    double seconds;
    int parts;
    int64_t messages;
    double bytes;      /* of all messages */
    double rank_bytes; /* sent by a rank, at most */
    double busiest;    /* part of the time that the busiest link is at work */
} sti_rehearsed;

/* Compressed sums that go in parts as training's do: the values, scheme and work are
 * set. Parts are larger where all messages would be over a few millions and take
 * minutes to rehearse. */
void sti_rehearsal_cut(const sti_topology *topology, sti_rehearsal *rehearsal);
/* The exact sum as training makes it of so many shards (0: one a rank), where a rank
 * adds a value in add_s. */
sti_rehearsal sti_rehearsal_exact(const sti_topology *topology, int64_t values,
                                  int64_t shards, double add_s);

/* STINT_E_USAGE: a topology that cannot be. STINT_E_MEMORY: about 50 bytes a message
 * are needed, and 16 a part more; or they are more than the host has. */
stint_status sti_rehearse(const sti_topology *topology, const sti_rehearsal *rehearsal,
                          sti_rehearsed *out);

const char *sti_topology_name(sti_topology_kind kind);

#endif
