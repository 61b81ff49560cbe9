/* Windows between ranks that are threads: what an owner writes the others see where it
 * lies, or must be sent, and nobody else can write there. */
#include "net/rank_window.h"

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

enum { RANKS = 3, WORDS = 100000 };

typedef struct seat {
    sti_comm *comm;
    bool share;
    void (*run)(struct seat *seat);
    sti_window window;
    int wrong;
} seat;

static void *sit(void *arg)
{
    seat *s = arg;
    const stint_status st =
        sti_window_create(s->comm, sizeof(uint32_t) * WORDS, s->share, &s->window);
    if (st != STINT_OK) {
        s->wrong = 1;
        return NULL;
    }
    s->run(s);
    s->wrong += sti_comm_barrier(s->comm) != STINT_OK;
    sti_window_destroy(&s->window);
    return NULL;
}

static void run_all(void (*run)(seat *), bool share_last)
{
    sti_comm *comms[RANKS];
    pthread_t threads[RANKS];
    seat seats[RANKS];
    assert_int_equal(sti_comm_create_local(RANKS, comms), STINT_OK);
    for (int r = 0; r < RANKS; r++) {
        seats[r] =
            (seat){.comm = comms[r], .share = share_last || r + 1 < RANKS, .run = run};
        assert_int_equal(pthread_create(&threads[r], NULL, sit, &seats[r]), 0);
    }
    for (int r = 0; r < RANKS; r++)
        pthread_join(threads[r], NULL);
    for (int r = 0; r < RANKS; r++) {
        assert_int_equal(seats[r].wrong, 0);
        sti_comm_destroy(comms[r]);
    }
}

/* Its own numbers, then a counter; others wait for that in the owner's memory. */
static void write_and_read(seat *s)
{
    const int own = sti_comm_rank(s->comm);
    uint32_t *mine = sti_window_part(&s->window, own);
    for (uint32_t i = 0; i < WORDS; i++)
        s->wrong += mine[i] != 0;
    for (uint32_t i = 2; i < WORDS; i++)
        mine[i] = i * 7 + (uint32_t)own;
    atomic_store_explicit((atomic_llong *)(void *)mine, 5, memory_order_release);
    for (int r = 0; r < RANKS; r++) {
        const uint32_t *theirs = sti_window_part(&s->window, r);
        s->wrong += !sti_window_is_shared(&s->window, r);
        s->wrong +=
            sti_window_wait(&s->window, r, (const atomic_llong *)(const void *)theirs,
                            5) != STINT_OK;
        for (uint32_t i = 2; i < WORDS; i++)
            s->wrong += theirs[i] != i * 7 + (uint32_t)r;
    }
    s->wrong += s->window.stride_bytes % STI_WINDOW_ALIGN != 0;
}

static void owners_are_read_where_they_write(void **state)
{
    (void)state;
    run_all(write_and_read, true);
}

/* The last rank shares nothing: the others have mirrors of it, and it of them. */
static void keep_mirrors(seat *s)
{
    const int own = sti_comm_rank(s->comm), last = RANKS - 1;
    uint32_t *mine = sti_window_part(&s->window, own);
    for (int r = 0; r < RANKS; r++)
        s->wrong += sti_window_is_shared(&s->window, r) !=
                    (r == own || (r != last && own != last));
    mine[9] = 40 + (uint32_t)own;
    s->wrong += sti_comm_barrier(s->comm) != STINT_OK;
    for (int r = 0; r < RANKS; r++) {
        uint32_t *theirs = sti_window_part(&s->window, r);
        if (sti_window_is_shared(&s->window, r)) {
            s->wrong += theirs[9] != 40 + (uint32_t)r;
        } else {
            s->wrong += theirs[9] != 0;
            theirs[9] = 1; /* a mirror is this rank's to fill */
        }
    }
    s->wrong += sti_comm_barrier(s->comm) != STINT_OK;
    s->wrong += mine[9] != 40 + (uint32_t)own;
}

static void who_does_not_share_is_mirrored(void **state)
{
    (void)state;
    run_all(keep_mirrors, false);
}

/* In a child of rank 0, which a fault may end. */
static void write_elsewhere(seat *s)
{
    if (sti_comm_rank(s->comm) != 0)
        return;
    int status = 0;
    const pid_t child = fork();
    if (child == 0) {
        *(volatile uint32_t *)sti_window_part(&s->window, 0) = 1; /* its own: fine */
        *(volatile uint32_t *)sti_window_part(&s->window, 1) = 1;
        _exit(0);
    }
    s->wrong += child < 0 || waitpid(child, &status, 0) != child;
    s->wrong += WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

static void nobody_else_can_write(void **state)
{
    (void)state;
    run_all(write_elsewhere, true);
}

/* A rank that goes while it is waited for is told by name. */
static void *leave(void *arg)
{
    seat *s = arg;
    if (sti_window_create(s->comm, 8, true, &s->window) != STINT_OK)
        s->wrong = 1;
    if (sti_comm_rank(s->comm) == 1) {
        sti_window_destroy(&s->window);
        sti_comm_destroy(s->comm);
        return NULL;
    }
    const atomic_llong *counter = sti_window_part(&s->window, 1);
    s->wrong += sti_window_wait(&s->window, 1, counter, 1) != STINT_E_PEER;
    s->wrong += strstr(stint_last_error(), "rank 1") == NULL;
    sti_window_destroy(&s->window);
    sti_comm_destroy(s->comm);
    return NULL;
}

static void a_lost_rank_ends_a_wait(void **state)
{
    sti_comm *comms[2];
    pthread_t threads[2];
    seat seats[2];
    (void)state;
    assert_int_equal(sti_comm_create_local(2, comms), STINT_OK);
    for (int r = 0; r < 2; r++) {
        seats[r] = (seat){.comm = comms[r]};
        assert_int_equal(pthread_create(&threads[r], NULL, leave, &seats[r]), 0);
    }
    for (int r = 0; r < 2; r++)
        pthread_join(threads[r], NULL);
    assert_int_equal(seats[0].wrong + seats[1].wrong, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(owners_are_read_where_they_write),
        cmocka_unit_test(who_does_not_share_is_mirrored),
        cmocka_unit_test(nobody_else_can_write),
        cmocka_unit_test(a_lost_rank_ends_a_wait),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
