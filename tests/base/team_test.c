#include "base/team.h"

#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/fail.h"

#if defined(__SSE2__)
#include <xmmintrin.h>
#endif

#define PIECES_MAX 1000

typedef struct log {
    int runs[PIECES_MAX];
    int worker[PIECES_MAX];
    unsigned mode[PIECES_MAX];
} log_of_pieces;

static void note_piece(void *arg, int64_t piece, int worker)
{
    log_of_pieces *log = arg;
    log->runs[piece]++;
    log->worker[piece] = worker;
#if defined(__SSE2__)
    log->mode[piece] = _mm_getcsr() & 0x8040u;
#else
    log->mode[piece] = 0x8040u;
#endif
}

static void test_partition(void **state)
{
    (void)state;
    static const int64_t counts[] = {0, 1, 2, 3, 7, 8, 9, 64, 999, 1000};
    for (int threads = 1; threads <= 8; threads++)
        for (size_t c = 0; c < sizeof counts / sizeof *counts; c++) {
            log_of_pieces log = {{0}, {0}, {0}};
            int64_t pieces = counts[c];
            sti_team_run(&(sti_team){.threads = threads}, pieces, note_piece, &log);
            for (int64_t i = 0; i < PIECES_MAX; i++)
                assert_int_equal(log.runs[i], i < pieces);
            for (int64_t i = 0; i < pieces; i++) {
                int64_t w = log.worker[i];
                assert_int_equal(log.mode[i], 0x8040u);
                assert_in_range(w, 0, threads - 1);
                if (pieces > 1) {
                    assert_true(i >= w * pieces / threads);
                    assert_true(i < (w + 1) * pieces / threads);
                }
            }
        }
}

static void test_taken(void **state)
{
    (void)state;
    static const int64_t counts[] = {0, 1, 2, 3, 7, 64, 1000};
    for (int threads = 1; threads <= 8; threads++)
        for (size_t c = 0; c < sizeof counts / sizeof *counts; c++) {
            log_of_pieces log = {{0}, {0}, {0}};
            sti_team_take(&(sti_team){.threads = threads}, counts[c], note_piece, &log);
            for (int64_t i = 0; i < PIECES_MAX; i++) {
                assert_int_equal(log.runs[i], i < counts[c]);
                assert_in_range(log.worker[i], 0, threads - 1);
                if (i < counts[c])
                    assert_int_equal(log.mode[i], 0x8040u);
            }
        }
}

enum { TAKEN = 20 };

typedef struct waiting {
    atomic_int done;
    int seen; /* by the first piece at its end */
} waiting;

/* The first piece ends after all others, or when it has waited for half a minute. */
static void waiting_piece(void *arg, int64_t piece, int worker)
{
    waiting *w = arg;
    (void)worker;
    for (int i = 0; piece == 0 && i < 30000 && atomic_load(&w->done) < TAKEN - 1; i++)
        usleep(1000);
    if (piece == 0)
        w->seen = atomic_load(&w->done);
    atomic_fetch_add(&w->done, 1);
}

static void test_taken_by_turns(void **state)
{
    (void)state;
    waiting w = {0};
    sti_team_take(&(sti_team){.threads = 2}, TAKEN, waiting_piece, &w);
    assert_int_equal(w.done, TAKEN);
    assert_int_equal(w.seen, TAKEN - 1);
}

static void test_float_mode_restored(void **state)
{
    (void)state;
#if defined(__SSE2__)
    unsigned before = _mm_getcsr() & ~0x3fu; /* without the sticky flags */
    log_of_pieces log = {{0}, {0}, {0}};
    sti_team_run(&(sti_team){.threads = 3}, 10, note_piece, &log);
    assert_int_equal(_mm_getcsr() & ~0x3fu, before);
    sti_team_run(&sti_team_serial, 10, note_piece, &log);
    assert_int_equal(_mm_getcsr() & ~0x3fu, before);
#endif
}

typedef struct nest {
    sti_team inner;
    _Atomic int64_t runs;
    atomic_int strangers; /* inner pieces that were not run by worker 0 */
} nest;

static void inner_piece(void *arg, int64_t piece, int worker)
{
    nest *n = arg;
    (void)piece;
    if (worker != 0)
        atomic_fetch_add(&n->strangers, 1);
    atomic_fetch_add(&n->runs, 1);
}

static void outer_piece(void *arg, int64_t piece, int worker)
{
    nest *n = arg;
    (void)piece;
    (void)worker;
    sti_team_run(&n->inner, 5, inner_piece, n);
}

static void test_nested_is_serial(void **state)
{
    (void)state;
    for (int threads = 1; threads <= 4; threads++) {
        nest n = {.inner = {.threads = 3}};
        sti_team_run(&(sti_team){.threads = threads}, 20, outer_piece, &n);
        assert_int_equal(n.runs, 100);
        assert_int_equal(n.strangers, 0);
    }
    /* And the next loop on this thread is parallel again. */
    log_of_pieces log = {{0}, {0}, {0}};
    sti_team_run(&(sti_team){.threads = 2}, 10, note_piece, &log);
    assert_int_equal(log.worker[9], 1);
}

/* Plain memory written before, in and after the loops:
 * what ThreadSanitizer looks at. */
static void add_piece(void *arg, int64_t piece, int worker)
{
    int64_t *cells = arg;
    (void)worker;
    cells[piece] += piece;
}

static void test_order_of_memory(void **state)
{
    (void)state;
    static int64_t cells[256];
    for (int round = 0; round < 50; round++) {
        for (int i = 0; i < 256; i++)
            cells[i]++;
        sti_team_run(&(sti_team){.threads = 1 + round % 4}, 256, add_piece, cells);
    }
    for (int i = 0; i < 256; i++)
        assert_int_equal(cells[i], 50 + 50 * i);
}

typedef struct loops {
    sti_team team;
    int64_t cells[256];
    log_of_pieces log;
} loops;

static void *many_loops(void *arg)
{
    loops *l = arg;
    for (int round = 0; round < 200; round++) {
        for (int i = 0; i < 256; i++)
            l->cells[i]++;
        sti_team_run(&l->team, round % 3 == 0 ? 7 : 256, add_piece, l->cells);
        if (round % 50 == 0) /* another team, in the midst of it */
            sti_team_run(&(sti_team){l->team.threads + 1}, 256, add_piece, l->cells);
    }
    sti_team_run(&l->team, PIECES_MAX, note_piece, &l->log);
    return NULL;
}

static void loops_piece(void *arg, int64_t piece, int worker)
{
    (void)worker;
    many_loops((loops *)arg + piece);
}

static void check_loops(const loops *l)
{
    for (int i = 0; i < 256; i++)
        assert_int_equal(l->cells[i], 200 + i * (i < 7 ? 204 : 137));
    for (int64_t i = 0; i < PIECES_MAX; i++) {
        assert_int_equal(l->log.runs[i], 1);
        assert_in_range(l->log.worker[i], 0, l->team.threads - 1);
        assert_int_equal(l->log.mode[i], 0x8040u);
    }
}

static void test_many_loops(void **state)
{
    (void)state;
    static loops l, two[2];
    for (int threads = 1; threads <= 4; threads++) {
        l = (loops){.team = {.threads = threads}};
        many_loops(&l);
        check_loops(&l);
    }
    l = (loops){.team = {.threads = 80}};
    many_loops(&l);
    check_loops(&l);
    for (int i = 0; i < 2; i++)
        two[i] = (loops){.team = {.threads = 3}};
    sti_team_run(&(sti_team){.threads = 2}, 2, loops_piece, two);
    check_loops(&two[0]);
    check_loops(&two[1]);
}

/* Each with a crew of its own, which ends with it. */
static void test_several_callers(void **state)
{
    (void)state;
    static loops l[3];
    pthread_t thread[3];
    for (int i = 0; i < 3; i++) {
        l[i] = (loops){.team = {.threads = 2 + i}};
        assert_int_equal(pthread_create(&thread[i], NULL, many_loops, &l[i]), 0);
    }
    for (int i = 0; i < 3; i++) {
        assert_int_equal(pthread_join(thread[i], NULL), 0);
        check_loops(&l[i]);
    }
}

static void loops_at_end(void *arg)
{
    many_loops(arg);
}

typedef struct ending {
    pthread_key_t key[2]; /* one before the key of crews, where this test runs first */
    loops l[2];
} ending;

static void *end_with_loops(void *arg)
{
    ending *e = arg;
    for (int i = 0; i < 2; i++)
        pthread_setspecific(e->key[i], &e->l[i]);
    sti_team_run(&(sti_team){.threads = 3}, 3, add_piece, (int64_t[3]){0});
    return NULL;
}

/* Something that a thread owns may run loops when the thread ends, whether its worker
 * threads are still there or have ended first. */
static void test_loops_at_end(void **state)
{
    (void)state;
    static ending e;
    pthread_t thread;
    for (int i = 0; i < 2; i++) {
        e.l[i] = (loops){.team = {.threads = 2}};
        assert_int_equal(pthread_key_create(&e.key[i], loops_at_end), 0);
        sti_team_run(&(sti_team){.threads = 2}, 2, add_piece, (int64_t[2]){0});
    }
    assert_int_equal(pthread_create(&thread, NULL, end_with_loops, &e), 0);
    assert_int_equal(pthread_join(thread, NULL), 0);
    for (int i = 0; i < 2; i++) {
        check_loops(&e.l[i]);
        pthread_key_delete(e.key[i]);
    }
}

static void note_signal(int signal)
{
    (void)signal;
}

/* Workers take no signals that the program's threads have blocked since. */
static void test_signals(void **state)
{
    (void)state;
    sigset_t set, before;
    struct sigaction action = {.sa_handler = note_signal}, was;
    sti_team_run(&(sti_team){.threads = 3}, 3, add_piece, (int64_t[3]){0});
    sigemptyset(&set);
    sigaddset(&set, SIGUSR1);
    pthread_sigmask(SIG_BLOCK, &set, &before);
    sigaction(SIGUSR1, &action, &was);
    kill(getpid(), SIGUSR1);
    usleep(1000);
    assert_int_equal(sigtimedwait(&set, NULL, &(struct timespec){0}), SIGUSR1);
    sigaction(SIGUSR1, &was, NULL);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
}

/* Workers that sleep by now. */
static void test_after_a_pause(void **state)
{
    (void)state;
    static log_of_pieces log;
    for (int i = 0; i < 10; i++) {
        sti_team_run(&(sti_team){.threads = 3}, 3, note_piece, &log);
        usleep(5000);
    }
    for (int i = 0; i < 3; i++)
        assert_int_equal(log.runs[i], 10);
}

/* A child has its parent's memory, and none of the workers. (ThreadSanitizer forbids a
 * child to start threads.) */
static void test_fork(void **state)
{
    (void)state;
#if defined(__SANITIZE_THREAD__)
    skip();
#endif
    static loops l;
    l = (loops){.team = {.threads = 3}};
    sti_team_run(&l.team, 3, add_piece, (int64_t[3]){0});
    const pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        many_loops(&l);
        _exit(l.cells[255] == 200 + 255 * 137 ? 0 : 1);
    }
    int status = -1;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
}

static void choose(const char *own, const char *omp, int request, stint_status wanted,
                   int threads)
{
    own ? setenv("STINT_NUM_THREADS", own, 1) : unsetenv("STINT_NUM_THREADS");
    omp ? setenv("OMP_NUM_THREADS", omp, 1) : unsetenv("OMP_NUM_THREADS");
    int chosen = -1;
    const char *why = NULL;
    assert_int_equal(sti_threads_choose(request, &chosen, &why), wanted);
    if (wanted != STINT_OK) {
        assert_true(strlen(stint_last_error()) > 20);
        return;
    }
    assert_non_null(why);
    if (threads > 0)
        assert_int_equal(chosen, threads);
    else
        assert_in_range(chosen, 1, 1024);
}

static void test_choose(void **state)
{
    (void)state;
    choose("5", "6", 3, STINT_OK, 3);
    choose("5", "6", 0, STINT_OK, 5);
    choose(NULL, "6", 0, STINT_OK, 6);
    choose(NULL, "4,2", 0, STINT_OK, 4);
    choose(NULL, NULL, 0, STINT_OK, 0);
    choose("", "", 0, STINT_OK, 0);
    static const char *const bad[] = {
        "0", "-2", "two", "2x", "1.5", " 2", "99999999999999", "1025"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        choose(bad[i], NULL, 0, STINT_E_USAGE, 0);
        choose(NULL, bad[i], 0, STINT_E_USAGE, 0);
    }
    choose(NULL, ",2", 0, STINT_E_USAGE, 0);
    choose(NULL, NULL, -1, STINT_E_USAGE, 0);
    choose(NULL, NULL, 100000, STINT_E_USAGE, 0);
    int chosen;
    assert_int_equal(sti_threads_choose(2, &chosen, NULL), STINT_OK);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_loops_at_end), /* first: see there */
        cmocka_unit_test(test_partition),
        cmocka_unit_test(test_taken),
        cmocka_unit_test(test_taken_by_turns),
        cmocka_unit_test(test_float_mode_restored),
        cmocka_unit_test(test_nested_is_serial),
        cmocka_unit_test(test_order_of_memory),
        cmocka_unit_test(test_many_loops),
        cmocka_unit_test(test_several_callers),
        cmocka_unit_test(test_signals),
        cmocka_unit_test(test_after_a_pause),
        cmocka_unit_test(test_fork),
        cmocka_unit_test(test_choose),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
