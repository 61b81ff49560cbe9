#include "net/comm.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/fail.h"
#include "base/memory.h"
#include "net/comm_world.h"

static const int world_sizes[] = {1, 2, 3, 4, 5, 8};
#define SIZES (int)(sizeof world_sizes / sizeof world_sizes[0])

static void on_all_sizes(void (*run)(world_rank *rank))
{
    world_rank ranks[WORLD_MAX];
    for (int w = 0; w < WORLDS; w++)
        for (int i = 0; i < SIZES; i++)
            worlds[w](ranks, world_sizes[i], run, NULL);
}

/* What rank `from` says to rank `to` in message `n`. */
static uint32_t word_of(int from, int to, int n)
{
    return (uint32_t)(from * 10007 + to * 101 + n);
}

enum { TALK_WORDS = 1000, TALK_ROUNDS = 20 };

static uint32_t *words_of(int from, int to, int n)
{
    uint32_t *words = malloc(TALK_WORDS * sizeof *words);
    for (int i = 0; i < TALK_WORDS; i++)
        words[i] = word_of(from, to, n) + (uint32_t)i;
    return words;
}

/* Everyone sends to everyone under two tags, and receives them in the other order. */
static void talk(world_rank *rank)
{
    sti_comm *comm = rank->comm;
    int size = sti_comm_size(comm), me = sti_comm_rank(comm), n_requests = 0;
    sti_comm_request requests[4 * WORLD_MAX] = {0};
    uint32_t *out[2 * WORLD_MAX], *in[2 * WORLD_MAX];
    for (int round = 0; round < TALK_ROUNDS; round++) {
        n_requests = 0;
        for (int i = 0; i < 2 * size; i++) {
            int peer = i / 2, tag = i % 2;
            out[i] = words_of(me, peer, 2 * round + tag);
            in[i] = calloc(TALK_WORDS, sizeof **in);
            if (peer != me)
                sti_comm_send(comm, peer, (uint32_t)tag, out[i],
                              TALK_WORDS * sizeof **out, &requests[n_requests++]);
        }
        for (int i = 2 * size - 1; i >= 0; i--)
            if (i / 2 != me)
                sti_comm_receive(comm, i / 2, (uint32_t)(i % 2), in[i],
                                 TALK_WORDS * sizeof **in, &requests[n_requests++]);
        RANK_CHECK(rank, sti_comm_wait_all(comm, requests, n_requests) == STINT_OK);
        for (int i = 0; i < 2 * size; i++) {
            uint32_t *wanted = words_of(i / 2, me, 2 * round + i % 2);
            if (i / 2 != me)
                RANK_CHECK(rank, memcmp(wanted, in[i], TALK_WORDS * sizeof **in) == 0);
            free(wanted);
            free(out[i]);
            free(in[i]);
        }
    }
    sti_comm_counts c = sti_comm_count(comm);
    int64_t messages = (int64_t)TALK_ROUNDS * 2 * (size - 1);
    RANK_CHECK(rank, c.messages_sent == messages && c.messages_received == messages);
    RANK_CHECK(rank, c.bytes_sent == messages * TALK_WORDS * 4 &&
                         c.bytes_received == c.bytes_sent);
}

static void test_messages(void **state)
{
    (void)state;
    on_all_sizes(talk);
}

/* A short message tells how long it was; an empty one is one, too. */
static void lengths(world_rank *rank)
{
    sti_comm_request request = {0};
    char buffer[100];
    int which, me = sti_comm_rank(rank->comm);
    RANK_CHECK(rank, sti_comm_wait_any(rank->comm, &request, 1, &which) == STINT_OK &&
                         which == -1);
    for (size_t n = 0; n < 60; n += 17) {
        if (me == 0)
            sti_comm_send(rank->comm, 1, 7,
                          "abcdefghijklmnopqrstuvwxyz0123456789"
                          "abcdefghijklmnopqrstuvwxyz",
                          n, &request);
        else
            sti_comm_receive(rank->comm, 0, 7, buffer, sizeof buffer, &request);
        RANK_CHECK(rank,
                   sti_comm_wait_any(rank->comm, &request, 1, &which) == STINT_OK &&
                       which == 0 && request.bytes == n);
        RANK_CHECK(rank, request.state == STI_COMM_IDLE);
    }
}

static void test_lengths(void **state)
{
    (void)state;
    world_rank ranks[WORLD_MAX];
    for (int w = 0; w < WORLDS; w++)
        worlds[w](ranks, 2, lengths, NULL);
}

/* Lengths about those of the rings between processes of a host, and far beyond. */
static const size_t long_bytes[] = {262143, 262144, 262145, 3000001, 1, 524289, 16};
enum { LONGS = sizeof long_bytes / sizeof long_bytes[0], LONGEST = 3000001 };

static void fill_long(unsigned char *bytes, size_t n, int from, int to, int which)
{
    uint32_t x = word_of(from, to, which);
    for (size_t i = 0; i < n; i++) {
        x = x * 1664525 + 1013904223;
        bytes[i] = (unsigned char)(x >> 24);
    }
}

/* Everyone to everyone at once; receives are posted late, and in another order. */
static void talk_long(world_rank *rank)
{
    sti_comm *comm = rank->comm;
    int size = sti_comm_size(comm), me = sti_comm_rank(comm), n = 0;
    sti_comm_request requests[2 * 3 * LONGS] = {0};
    unsigned char *wanted = malloc(LONGEST), *out[3][LONGS], *in[3][LONGS];
    for (int peer = 0; peer < size; peer++)
        for (int k = 0; k < LONGS; k++) {
            out[peer][k] = malloc(long_bytes[k]);
            in[peer][k] = malloc(long_bytes[k]);
            fill_long(out[peer][k], long_bytes[k], me, peer, k);
            if (peer != me)
                sti_comm_send(comm, peer, (uint32_t)k, out[peer][k], long_bytes[k],
                              &requests[n++]);
        }
    for (int k = LONGS - 1; k >= 0; k--)
        for (int peer = size - 1; peer >= 0; peer--)
            if (peer != me)
                sti_comm_receive(comm, peer, (uint32_t)k, in[peer][k], long_bytes[k],
                                 &requests[n++]);
    RANK_CHECK(rank, sti_comm_wait_all(comm, requests, n) == STINT_OK);
    for (int peer = 0; peer < size; peer++)
        for (int k = 0; k < LONGS; k++) {
            fill_long(wanted, long_bytes[k], peer, me, k);
            RANK_CHECK(rank,
                       peer == me || memcmp(wanted, in[peer][k], long_bytes[k]) == 0);
            free(out[peer][k]);
            free(in[peer][k]);
        }
    free(wanted);
}

static void test_long_messages(void **state)
{
    (void)state;
    world_rank ranks[WORLD_MAX];
    for (int w = 0; w < WORLDS; w++)
        for (int size = 2; size <= 3; size++)
            worlds[w](ranks, size, talk_long, NULL);
}

/* ---- memory of a host ---- */

/* Taken for the system's by the communicator, which is in this program. */
static bool no_shared_memory;
int memfd_create(const char *name, unsigned flags);
int memfd_create(const char *name, unsigned flags)
{
    if (!no_shared_memory)
        return (int)syscall(SYS_memfd_create, name, flags);
    errno = EMFILE;
    return -1;
}

static int warnings; /* by several threads, under the lock */
static pthread_mutex_t warnings_lock = PTHREAD_MUTEX_INITIALIZER;

static void count_warnings(void *user, stint_log_level level, const char *text)
{
    (void)user;
    pthread_mutex_lock(&warnings_lock);
    warnings += level == STINT_LOG_WARNING && strstr(text, "shares no memory with") &&
                strstr(text, strerror(EMFILE));
    pthread_mutex_unlock(&warnings_lock);
}

static void check_kind(world_rank *rank)
{
    const char *wanted = rank->user;
    RANK_CHECK(rank, strcmp(sti_comm_kind(rank->comm), wanted) == 0);
    RANK_CHECK(rank, (sti_comm_shared_bytes(rank->comm) > 0) ==
                         (strcmp(wanted, "shared memory") == 0));
    talk(rank);
}

static void test_kinds(void **state)
{
    (void)state;
    world_rank ranks[WORLD_MAX];
    char tcp[] = "tcp", shared[] = "shared memory";
    world_run_tcp(ranks, 3, check_kind, tcp);
    world_run_shared(ranks, 3, check_kind, shared);
    world_run_shared(ranks, 16, check_kind, shared);
}

/* Without memory to share they still talk, and say why it is slower. */
static void test_no_shared_memory(void **state)
{
    (void)state;
    world_rank ranks[WORLD_MAX];
    char tcp[] = "tcp";
    no_shared_memory = true;
    warnings = 0;
    stint_set_log(count_warnings, NULL);
    world_run_shared(ranks, 3, check_kind, tcp);
    world_run_shared(ranks, 2, talk_long, NULL);
    stint_set_log(NULL, NULL);
    no_shared_memory = false;
    assert_int_equal(warnings, 3 + 1); /* one a pair */
}

static void collectives(world_rank *rank)
{
    sti_comm *comm = rank->comm;
    int size = sti_comm_size(comm), me = sti_comm_rank(comm);
    for (int root = 0; root < size; root++) {
        int64_t blob[3] = {me, 2 * me, -me}, all[3 * WORLD_MAX] = {0};
        RANK_CHECK(rank, sti_comm_gather(comm, root, blob, sizeof blob, all) == 0);
        for (int i = 0; i < size && me == root; i++)
            RANK_CHECK(rank, all[3 * i] == i && all[3 * i + 2] == -i);
        RANK_CHECK(rank, sti_comm_broadcast(comm, root, blob, sizeof blob) == 0);
        RANK_CHECK(rank, blob[0] == root && blob[1] == 2 * root && blob[2] == -root);
        blob[0] = 100 - me;
        blob[1] = me;
        RANK_CHECK(rank, sti_comm_max(comm, blob, 2) == STINT_OK);
        RANK_CHECK(rank, blob[0] == 100 && blob[1] == size - 1);
        RANK_CHECK(rank, sti_comm_gather_all(comm, &me, sizeof me, all) == STINT_OK);
        for (int i = 0; i < size; i++)
            RANK_CHECK(rank, ((int *)all)[i] == i);
        RANK_CHECK(rank, sti_comm_barrier(comm) == STINT_OK);
    }
}

static void test_collectives(void **state)
{
    (void)state;
    on_all_sizes(collectives);
}

static void agree(world_rank *rank)
{
    sti_comm *comm = rank->comm;
    int me = sti_comm_rank(comm), size = sti_comm_size(comm);
    RANK_CHECK(rank, sti_comm_agree(comm, STINT_OK) == STINT_OK);
    for (int first = 0; first < size; first++) {
        stint_status mine =
            me >= first ? sti_fail(STINT_E_INPUT, "rank %d says", me) : STINT_OK;
        char wanted[32];
        snprintf(wanted, sizeof wanted, "rank %d says", first);
        RANK_CHECK(rank, sti_comm_agree(comm, mine) == STINT_E_INPUT);
        RANK_CHECK(rank, strcmp(stint_last_error(), wanted) == 0);
    }
    RANK_CHECK(rank, sti_comm_barrier(comm) == STINT_OK); /* still sound */
}

static void test_agree(void **state)
{
    (void)state;
    on_all_sizes(agree);
}

/* ---- failures ---- */

/* The last rank gives up while all others wait for it, or for those who do. */
static void someone_gives_up(world_rank *rank)
{
    sti_comm *comm = rank->comm;
    int me = sti_comm_rank(comm), last = sti_comm_size(comm) - 1;
    bool own;
    char text[256], buffer[8];
    sti_comm_request request = {0};
    sti_comm_set_context(comm, "test", 3);
    if (me == last) {
        rank->status = sti_comm_give_up(comm, sti_fail(STINT_E_IO, "the disk is full"));
    } else {
        sti_comm_receive(comm, me + 1, 1, buffer, sizeof buffer, &request);
        rank->status = sti_comm_wait_all(comm, &request, 1);
    }
    RANK_CHECK(rank, rank->status == STINT_E_IO);
    RANK_CHECK(rank, strstr(stint_last_error(), "the disk is full"));
    RANK_CHECK(rank, sti_comm_failure(comm, text, sizeof text, &own) == STINT_E_IO);
    RANK_CHECK(rank, own == (me == last) && strstr(text, "the disk is full"));
    RANK_CHECK(rank, sti_comm_barrier(comm) == STINT_E_IO); /* for good */
}

static void test_give_up(void **state)
{
    (void)state;
    world_rank ranks[WORLD_MAX];
    for (int w = 0; w < WORLDS; w++)
        for (int size = 2; size <= 5; size++)
            worlds[w](ranks, size, someone_gives_up, NULL);
}

static void wait_in_vain(world_rank *rank)
{
    sti_comm *comm = rank->comm;
    sti_comm_request request = {0};
    char buffer[8];
    sti_comm_set_timeout(comm, 100000000);
    sti_comm_set_context(comm, "sum of gradients", 12);
    if (sti_comm_rank(comm) != 0)
        return;
    sti_comm_receive(comm, 2, 1, buffer, sizeof buffer, &request);
    rank->status = sti_comm_wait_all(comm, &request, 1);
}

static void test_silence(void **state)
{
    (void)state;
    world_rank ranks[WORLD_MAX];
    char wanted[256];
    world_run_local(ranks, 3, wait_in_vain, NULL);
    assert_int_equal(ranks[0].status, STINT_E_PEER);
    snprintf(wanted, sizeof wanted, "rank 2 (");
    assert_non_null(strstr(ranks[0].text, wanted));
    assert_non_null(strstr(ranks[0].text, "has been silent for "));
    assert_non_null(strstr(ranks[0].text, "in sum of gradients of step 12"));
}

/* Rank 0 has said all and leaves; rank 1 waits for that, and rank 2 for words of rank 1
 * that come later. */
static void outstay(world_rank *rank)
{
    const int me = sti_comm_rank(rank->comm);
    sti_comm_request request = {0};
    char word = 'a';
    if (me == 0)
        return;
    if (me == 1) {
        sti_comm_outstay(rank->comm, 0);
        sti_comm_send(rank->comm, 2, 1, &word, 1, &request);
    } else {
        sti_comm_receive(rank->comm, 1, 1, &word, 1, &request);
    }
    RANK_CHECK(rank, sti_comm_wait_all(rank->comm, &request, 1) == STINT_OK);
    RANK_CHECK(rank, sti_comm_failure(rank->comm, NULL, 0, NULL) == STINT_OK);
}

/* (In the local world a rank leaves when its test does.) */
static void test_outstay(void **state)
{
    (void)state;
    world_rank ranks[WORLD_MAX];
    for (int w = 1; w < WORLDS; w++)
        worlds[w](ranks, 3, outstay, NULL);
}

static void send_too_much(world_rank *rank)
{
    sti_comm_request request = {0};
    char buffer[8] = {0};
    if (sti_comm_rank(rank->comm) == 0)
        sti_comm_send(rank->comm, 1, 5, "0123456789", 10, &request);
    else
        sti_comm_receive(rank->comm, 0, 5, buffer, sizeof buffer, &request);
    rank->status = sti_comm_wait_all(rank->comm, &request, 1);
    if (sti_comm_rank(rank->comm) == 1)
        RANK_CHECK(rank, rank->status == STINT_E_PEER &&
                             strstr(stint_last_error(), "10 bytes where at most 8"));
}

static void test_too_long(void **state)
{
    (void)state;
    world_rank ranks[WORLD_MAX];
    for (int w = 0; w < WORLDS; w++)
        worlds[w](ranks, 2, send_too_much, NULL);
}

static void test_no_memory(void **state)
{
    (void)state;
    sti_comm *comms[3];
    int64_t n = 1;
    for (;; n++) {
        sti_alloc_fail_nth(n);
        stint_status st = sti_comm_create_local(3, comms);
        sti_alloc_fail_nth(0);
        if (st == STINT_OK)
            break;
        assert_int_equal(st, STINT_E_MEMORY);
    }
    assert_true(n > 3);
    for (int r = 0; r < 3; r++)
        sti_comm_destroy(comms[r]);
    assert_int_equal(sti_alloc_now_bytes(), 0);
}

/* Memory of a host that its ranks share is foretold. */
static void note_library(world_rank *rank)
{
    size_t *bytes = rank->user;
    bytes[sti_comm_rank(rank->comm)] = sti_comm_shared_bytes(rank->comm);
}

/* Ranks that are not there: all that can be asked, and no message. */
static void test_planned(void **state)
{
    (void)state;
    world_rank ranks[WORLD_MAX];
    size_t library[3] = {0};
    sti_comm *comm = NULL;
    uint32_t word = 1;
    const size_t before = sti_alloc_now_bytes();
    assert_int_equal(sti_comm_create_planned(6, 1, &comm), STINT_OK);
    assert_int_equal(sti_comm_rank(comm), 0);
    assert_int_equal(sti_comm_size(comm), 6);
    assert_int_equal(sti_comm_shared_bytes(comm), 0);
    assert_int_equal(sti_comm_block_bytes(comm), sti_alloc_now_bytes() - before);
    for (int r = 1; r < 6; r++)
        assert_string_not_equal(sti_comm_host(comm, r), sti_comm_host(comm, r - 1));
    for (int n = 0; n < 3; n++) {
        sti_comm_request request = {0};
        sti_comm_set_context(comm, "the sum of a test", 0);
        if (n == 0)
            sti_comm_send(comm, 5, 7, &word, sizeof word, &request);
        else if (n == 1)
            sti_comm_receive(comm, 5, 7, &word, sizeof word, &request);
        if (n < 2)
            assert_int_equal(sti_comm_wait_all(comm, &request, 1), STINT_E_BUG);
        else
            assert_int_equal(sti_comm_agree(comm, STINT_OK), STINT_E_BUG);
        assert_non_null(strstr(stint_last_error(), "rank 5 (tag 7) in the sum of a "));
    }
    sti_comm_destroy(comm);
    assert_int_equal(sti_alloc_now_bytes(), before);
    world_run_shared(ranks, 3, note_library, library);
    assert_int_equal(sti_comm_create_planned(6, 3, &comm), STINT_OK);
    assert_string_equal(sti_comm_host(comm, 0), sti_comm_host(comm, 2));
    assert_string_not_equal(sti_comm_host(comm, 2), sti_comm_host(comm, 3));
    for (int r = 0; r < 3; r++)
        assert_int_equal(sti_comm_shared_bytes(comm), library[r]);
    sti_comm_destroy(comm);
    for (int64_t n = 1; n <= 2; n++) {
        sti_alloc_fail_nth(n);
        assert_int_equal(sti_comm_create_planned(6, 1, &comm), STINT_E_MEMORY);
        sti_alloc_fail_nth(0);
    }
    assert_int_equal(sti_alloc_now_bytes(), before);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_messages),         cmocka_unit_test(test_lengths),
        cmocka_unit_test(test_collectives),      cmocka_unit_test(test_agree),
        cmocka_unit_test(test_give_up),          cmocka_unit_test(test_silence),
        cmocka_unit_test(test_too_long),         cmocka_unit_test(test_no_memory),
        cmocka_unit_test(test_long_messages),    cmocka_unit_test(test_kinds),
        cmocka_unit_test(test_no_shared_memory), cmocka_unit_test(test_outstay),
        cmocka_unit_test(test_planned),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
