/* Ranks as threads of a test: each runs a function, whose first complaint fails the
 * test. (cmocka's own assertions belong to the main thread.) */
#ifndef STINT_TESTS_COMM_WORLD_H
#define STINT_TESTS_COMM_WORLD_H

#include <pthread.h>
#include <stdio.h>

#include "net/comm.h"
#include "net/comm_tcp.h"

#define WORLD_MAX 16

typedef struct world_rank {
    sti_comm *comm;
    void *user;
    void (*run)(struct world_rank *rank);
    stint_status status; /* of what it did */
    char text[1024];     /* stint_last_error() of it */
    char complaint[256]; /* "" when all was well */
    int complaint_line;
} world_rank;

#define RANK_CHECK(rank, condition)                                                 \
    do {                                                                            \
        if (!(condition) && !(rank)->complaint[0]) {                                \
            snprintf((rank)->complaint, sizeof(rank)->complaint, "%s", #condition); \
            (rank)->complaint_line = __LINE__;                                      \
        }                                                                           \
    } while (0)

static void *world_thread(void *arg)
{
    world_rank *rank = arg;
    rank->run(rank);
    snprintf(rank->text, sizeof rank->text, "%s", stint_last_error());
    return NULL;
}

static void world_run_threads(world_rank *ranks, int size,
                              void (*run)(world_rank *rank), void *user)
{
    pthread_t threads[WORLD_MAX];
    for (int r = 0; r < size; r++) {
        ranks[r].run = run;
        ranks[r].user = user;
        assert_int_equal(pthread_create(&threads[r], NULL, world_thread, &ranks[r]), 0);
    }
    for (int r = 0; r < size; r++)
        pthread_join(threads[r], NULL);
    for (int r = 0; r < size; r++)
        if (ranks[r].complaint[0])
            fail_msg("rank %d of %d, line %d: %s", r, size, ranks[r].complaint_line,
                     ranks[r].complaint);
}

/* Ranks that share the process. */
static void world_run_local(world_rank *ranks, int size, void (*run)(world_rank *rank),
                            void *user)
{
    sti_comm *comms[WORLD_MAX];
    assert_int_equal(sti_comm_create_local(size, comms), STINT_OK);
    for (int r = 0; r < size; r++)
        ranks[r] = (world_rank){.comm = comms[r]};
    world_run_threads(ranks, size, run, user);
    for (int r = 0; r < size; r++)
        sti_comm_destroy(comms[r]);
}

static stint_status world_exchange(void *user, const void *mine, size_t n_bytes,
                                   void *all_out)
{
    return sti_comm_gather_all(user, mine, n_bytes, all_out);
}

typedef struct world_tcp {
    void (*run)(world_rank *rank);
    void *user;
    bool sockets_only;
} world_tcp;

/* Over sockets: the threads' own communicator tells the addresses. */
static void run_over_tcp(world_rank *rank)
{
    const world_tcp *world = rank->user;
    sti_comm *threads = rank->comm;
    sti_comm_tcp_desc desc = {.rank = sti_comm_rank(threads),
                              .size = sti_comm_size(threads),
                              .timeout_ns = STI_COMM_TIMEOUT_NS,
                              .exchange = world_exchange,
                              .user = threads,
                              .sockets_only = world->sockets_only};
    RANK_CHECK(rank, sti_comm_create_tcp(&desc, &rank->comm) == STINT_OK);
    if (rank->complaint[0])
        return;
    rank->user = world->user;
    world->run(rank);
    sti_comm_destroy(rank->comm);
    rank->comm = threads;
}

static void world_run_tcp(world_rank *ranks, int size, void (*run)(world_rank *rank),
                          void *user)
{
    world_tcp world = {run, user, true};
    world_run_local(ranks, size, run_over_tcp, &world);
}

/* As processes of one host find each other. */
static void world_run_shared(world_rank *ranks, int size, void (*run)(world_rank *rank),
                             void *user)
{
    world_tcp world = {run, user, false};
    world_run_local(ranks, size, run_over_tcp, &world);
}

typedef void world_run_fn(world_rank *ranks, int size, void (*run)(world_rank *rank),
                          void *user);
static world_run_fn *const worlds[] = {world_run_local, world_run_tcp,
                                       world_run_shared};
#define WORLDS 3

#endif
