/* Parts of a vector on their way through the rounds of a schedule
 * (exchange_schedule.h), as their values and messages come: what exact and compressed
 * sums have in common.
 *
 * Each part goes through the rounds on its own: it enters one when all of the round
 * before has come and left. Nothing blocks but the wait for any news, so parts cannot
 * hold each other up; every message has a tag of its part. So many parts as `window`
 * says are on their way at a time, from the first on that is not done. */
#ifndef STI_NET_ROUNDS_H
#define STI_NET_ROUNDS_H

#include "net/ready_watermark.h"

typedef enum sti_round_kind {
    STI_ROUND_WORK,   /* done when it is made */
    STI_ROUND_SEND,   /* done when it has left */
    STI_ROUND_EXPECT, /* a receive that is posted before its part begins */
    STI_ROUND_RECEIVE /* ... when its round begins */
} sti_round_kind;

/* A move of a part. Every part has the same ones, by round; the receives of a round
 * come last. */
typedef struct sti_round_move {
    int32_t round;
    sti_round_kind kind;
} sti_round_move;

/* What is done, by number of the part and of the move. */
typedef struct sti_rounds_ways {
    /* A part begins when all of the vector from here on is final. */
    int64_t (*from)(void *user, int part);
    void (*post)(void *user, int part, int move, sti_comm_request *request);
    /* Work, or a send. */
    stint_status (*make)(void *user, int part, int move, sti_comm_request *request);
    /* Moves [first, end), a round, are done; NULL: nothing is left to do. `bytes` of
     * the requests are what came. */
    stint_status (*finish)(void *user, int part, int first, int end,
                           const sti_comm_request *requests);
} sti_rounds_ways;

typedef struct sti_rounds {
    sti_comm *comm;
    const sti_rounds_ways *ways;
    int move_count, part_count, window;
    sti_round_move *moves;      /* [move_count] */
    sti_comm_request *requests; /* [window, move_count] */
    bool *came;                 /* likewise: it is done */
    struct sti_rounds_part {
        int first, end;       /* moves of the round that runs */
    } * parts;                /* [window] */
    int opened, begun, ended; /* parts from the first on */
} sti_rounds;

/* comm, ways and counts are set; the moves are the caller's to set then. `window` is
 * cut to the number of parts. After a failure, too, sti_rounds_fini. */
stint_status sti_rounds_init(sti_rounds *rounds);
void sti_rounds_fini(sti_rounds *rounds);
size_t sti_rounds_bytes(int window, int64_t moves); /* that it allocates */

/* All parts. Allocates nothing; no request outlives it. */
stint_status sti_rounds_run(sti_rounds *rounds, sti_ready_watermark *watermark,
                            void *user);

#endif
