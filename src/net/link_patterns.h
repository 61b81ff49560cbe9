/* Patterns of many messages at once, over the communicator that training uses: what
 * links give when they are shared.
 *
 *   at-once      neighbours in pairs (0 and 1, 2 and 3, ...), both ways at a time
 *   neighbours   each with the next and the one before, as a halo of one dimension
 *   all-to-all   each to each
 *   incast       all to rank 0
 *   fan-out      rank 0 to all
 *   allreduce    an exact sum of float32, as training makes it
 *
 * A time is that of the slowest rank from one barrier to the next, less what that takes
 * without messages, so that it counts when the last byte is there and not who is late
 * at the start. Sizes are drawn in a shuffled order, and every byte is looked at. Of
 * the two conventions for rates, "algorithm" counts the operation's buffer (n messages
 * of all-to-all, incast and fan-out, the vector of allreduce), and "bus" what the
 * busiest rank has to move one way: n - 1 messages, 2 (n - 1) / n of the vector. */
#ifndef STI_NET_LINK_PATTERNS_H
#define STI_NET_LINK_PATTERNS_H

#include "net/link_measure.h"

typedef enum sti_pattern {
    STI_PATTERN_PAIRS, /* of sti_links_measure, one message at a time */
    STI_PATTERN_AT_ONCE,
    STI_PATTERN_NEIGHBOURS,
    STI_PATTERN_ALL_TO_ALL,
    STI_PATTERN_INCAST,
    STI_PATTERN_FAN_OUT,
    STI_PATTERN_ALLREDUCE
} sti_pattern;
const char *sti_pattern_name(sti_pattern pattern);

enum { STI_PATTERN_SIZES = 8 };

typedef struct sti_pattern_row {
    int64_t bytes; /* of a message, or of the vector */
    int64_t samples;
    double median_s, low_s, high_s; /* 50, 5 and 95 % of the samples */
    /* At the median; NaN where that is 0: no longer than a round without messages. */
    double algorithm_bytes_per_s, bus_bytes_per_s;
} sti_pattern_row;

/* Measure a pattern for sizes from max_bytes down by fours, the smallest first.
 * Collective, all but pairs; rows_out is filled on every rank. STINT_E_PEER: bytes that
 * came are not those that were sent. */
stint_status sti_links_pattern(sti_comm *comm, sti_pattern pattern,
                               const sti_measure_desc *desc,
                               sti_pattern_row rows_out[STI_PATTERN_SIZES]);

#endif
