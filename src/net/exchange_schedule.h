/* Schedules of the compressed sum: who sends which slice to whom, in which round.
 *
 * The vector that ranks sum is cut into as many slices as there are ranks. A
 * schedule is one rank's list of moves; the exchange (net/compressed_allreduce.h) runs
 * it over a communicator, and the rehearsal (net/rehearse.h) over a model of links.
 * After CGX (arXiv 2111.08617):
 *
 * - scatter: every rank owns a slice. Round 0: to each owner its slice, compressed; the
 *   owner adds them to its own, which it never rounded, by ascending sender. Round 1:
 * the sum, compressed once, to all. Two roundings a path, 2 (n - 1) messages a rank.
 * - ring: n - 1 hops that decode, add and encode again, then the bytes go round. n
 *   roundings, the same bytes.
 * - two levels: `group` neighbouring ranks share a host. They exchange their parts as
 *   they are (exact), rank i of every host scatters part i with the same local rank
 * elsewhere, and hands the bytes to its neighbours. A host's uplink carries one copy of
 * the vector. */
#ifndef STI_NET_EXCHANGE_SCHEDULE_H
#define STI_NET_EXCHANGE_SCHEDULE_H

#include <stdint.h>

#include "stint/status.h"

typedef enum sti_scheme {
    STI_SCHEME_SCATTER,
    STI_SCHEME_RING,
    STI_SCHEME_TWO_LEVEL,
    STI_SCHEMES
} sti_scheme;

typedef enum sti_move_kind {
    STI_MOVE_SEND_RAW, /* floats of the slice */
    STI_MOVE_ADD_RAW,  /* receive floats, add */
    STI_MOVE_SEND,     /* encode the slice, send */
    STI_MOVE_ADD,      /* receive, decode and add */
    STI_MOVE_KEEP,     /* encode the slice, decode it into its place */
    STI_MOVE_FORWARD,  /* send the slice's bytes as they are */
    STI_MOVE_SET       /* receive the slice's bytes, decode into place */
} sti_move_kind;

typedef struct sti_move {
    sti_move_kind kind;
    int32_t round, peer;
    int32_t slice, count; /* consecutive slices: one message */
    /* For correlated rounding: this encoder is number part of `parts` whose codes of
     * the slice meet in one sum; 0 of 0: alone. */
    int32_t part, parts;
} sti_move;

enum { STI_SCHEDULE_LEAST_PART = 1 << 16 }; /* but where fusion is less */

/* Values of the part that begins where `left` are left, of at most `fusion` (0: all):
 * smaller ones at the end, where nothing is computed any more that would hide them. */
int64_t sti_schedule_part(int64_t fusion, int64_t left);

/* STINT_E_USAGE: two levels need 1 <= group dividing size. group is looked at by that
 * scheme alone. */
stint_status sti_schedule_check(sti_scheme scheme, int size, int group);

/* Moves of a rank, by round and in the order in which they are to be made; sends of a
 * round before its receives. moves NULL: only their number. */
int64_t sti_schedule_make(sti_scheme scheme, int size, int group, int rank,
                          sti_move *moves);

/* What a rank sends of a vector, on average over all ranks: so many times its floats,
 * and so many times its encoded slices. */
typedef struct sti_schedule_share {
    double raw, coded;
} sti_schedule_share;
sti_schedule_share sti_schedule_sent(sti_scheme scheme, int size, int group);

static inline int sti_move_sends(sti_move_kind kind)
{
    return kind == STI_MOVE_SEND_RAW || kind == STI_MOVE_SEND ||
           kind == STI_MOVE_FORWARD;
}

static inline int sti_move_receives(sti_move_kind kind)
{
    return kind == STI_MOVE_ADD_RAW || kind == STI_MOVE_ADD || kind == STI_MOVE_SET;
}

const char *sti_scheme_name(sti_scheme scheme); /* "scatter", "ring", "two-level" */

#endif
