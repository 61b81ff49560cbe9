/* Everyone's bytes to everyone beside a double loop over senders and receivers: counts
 * that differ for each pair, none among them, and lengths beyond what a socket or a
 * ring of shared memory takes at once. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/fail.h"
#include "net/comm_world.h"

enum { ROUNDS = 6 };

/* How much rank `from` has for rank `to` in a round. */
static size_t count_of(int round, int from, int to)
{
    const unsigned k = (unsigned)(round * 31 + from * 7 + to * 13);
    if (round == 0)
        return 0;
    if (round == 1)
        return (size_t)(1 + from); /* the same to all */
    if (round == 2)
        return to == 0 ? 100003 : 0; /* all to one */
    if (round == 3)
        return from == to ? 0 : 900001 + k;
    return k % 5 == 0 ? 0 : (size_t)k * k;
}

static uint8_t byte_of(int round, int from, int to, size_t i)
{
    return (uint8_t)((size_t)(round * 3 + from * 59 + to * 113) + i * 7 + (i >> 8));
}

/* All that rank `from` sends: a block for each receiver. */
static uint8_t *make_sent(int round, int from, int size, size_t *bytes)
{
    size_t sum = 0, at = 0;
    for (int to = 0; to < size; to++)
        sum += bytes[to] = count_of(round, from, to);
    uint8_t *all = malloc(sum + 1);
    for (int to = 0; to < size; to++)
        for (size_t i = 0; i < bytes[to]; i++)
            all[at++] = byte_of(round, from, to, i);
    return all;
}

static void exchange(world_rank *rank)
{
    const int size = sti_comm_size(rank->comm), me = sti_comm_rank(rank->comm);
    for (int round = 0; round < ROUNDS; round++) {
        size_t send[WORLD_MAX], receive[WORLD_MAX], sum = 0, at = 0;
        uint8_t *sent = make_sent(round, me, size, send);
        for (int from = 0; from < size; from++)
            sum += receive[from] = count_of(round, from, me);
        uint8_t *came = malloc(sum + 1);
        memset(came, 0xee, sum + 1);
        RANK_CHECK(rank, sti_comm_all_to_all(rank->comm, sent, send, came, receive) ==
                             STINT_OK);
        for (int from = 0; from < size; from++)
            for (size_t i = 0; i < receive[from]; i++, at++)
                RANK_CHECK(rank, came[at] == byte_of(round, from, me, i));
        RANK_CHECK(rank, came[sum] == 0xee);
        free(sent);
        free(came);
    }
}

static void everyone_gets_what_was_meant_for_it(void **state)
{
    static const int sizes[] = {1, 2, 3, 4, 7};
    world_rank ranks[WORLD_MAX];
    (void)state;
    for (int w = 0; w < WORLDS; w++)
        for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
            worlds[w](ranks, sizes[i], exchange, NULL);
}

/* A rank that gives up frees those that wait for its bytes. */
static void one_gives_up(world_rank *rank)
{
    const int me = sti_comm_rank(rank->comm);
    size_t bytes[3] = {8, 8, 8};
    char sent[24] = {0}, came[24];
    if (me == 1)
        rank->status = sti_comm_give_up(
            rank->comm, sti_fail(STINT_E_IO, "the disk of rank 1 is full"));
    else
        rank->status = sti_comm_all_to_all(rank->comm, sent, bytes, came, bytes);
    RANK_CHECK(rank, rank->status == STINT_E_IO);
    RANK_CHECK(rank, strstr(stint_last_error(), "disk of rank 1 is full") != NULL);
}

static void a_failure_reaches_all(void **state)
{
    world_rank ranks[WORLD_MAX];
    (void)state;
    for (int w = 0; w < WORLDS; w++)
        worlds[w](ranks, 3, one_gives_up, NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(everyone_gets_what_was_meant_for_it),
        cmocka_unit_test(a_failure_reaches_all),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
