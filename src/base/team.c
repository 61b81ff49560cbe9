/* Parallel loops. The only file that knows OpenMP.
 *
 * The number of OpenMP threads is always the team's, even for fewer pieces: libgomp
 * ends and restarts threads whenever a region asks for another number than the last
 * one. */
#define _GNU_SOURCE /* nanosleep */
#include "base/team.h"

#include <omp.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <time.h>
#if defined(__SSE2__)
#include <xmmintrin.h>
#endif

#include "base/rng.h"

/* ThreadSanitizer does not see libgomp's barriers (libgomp is not instrumented), so the
 * order that they give is spelled out to it. */
#if defined(__SANITIZE_THREAD__)
#define WITH_TSAN 1
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define WITH_TSAN 1
#endif
#endif
#ifdef WITH_TSAN
void __tsan_acquire(void *address);
void __tsan_release(void *address);
#define TSAN_ACQUIRE(address) __tsan_acquire(address)
#define TSAN_RELEASE(address) __tsan_release(address)
#define TSAN_UNSEEN           __attribute__((no_sanitize("thread"), noinline))
#else
#define TSAN_ACQUIRE(address) ((void)(address))
#define TSAN_RELEASE(address) ((void)(address))
#define TSAN_UNSEEN
#endif

typedef struct region {
    sti_piece_fn *fn;
    void *arg;
    int64_t pieces;
    atomic_int here; /* threads that have come */
    char fork, join; /* addresses for ThreadSanitizer */
} region;

const sti_team sti_team_serial = {.threads = 1};

/* > 0 while this thread runs a piece: loops inside it are serial. */
static _Thread_local int depth;

/* Flush denormals to zero, on input and output;
 * gives what sti_float_mode_leave wants. */
unsigned sti_float_mode_enter(void)
{
#if defined(__SSE2__)
    unsigned saved = _mm_getcsr();
    _mm_setcsr(saved | 0x8040u); /* FTZ | DAZ */
    return saved;
#else
    return 0;
#endif
}

void sti_float_mode_leave(unsigned saved)
{
#if defined(__SSE2__)
    _mm_setcsr(saved);
#else
    (void)saved;
#endif
}

/* ---- sleeps ---- */

enum { SLEEP_ODDS = 64, SLEEP_MOST_NS = 1000000 };

static uint64_t sleep_seed; /* 0: none; set once */
static pthread_once_t sleep_once = PTHREAD_ONCE_INIT;
static _Thread_local uint64_t sleep_draws;

static void find_sleep_seed(void)
{
    const char *text = getenv("STINT_SLEEPS");
    sleep_seed = text ? strtoull(text, NULL, 10) : 0;
}

/* Each thread has its own draws, so that workers come apart. */
static void sleep_perhaps(int worker)
{
    uint32_t word[4];
    sti_random4(sleep_seed, STI_STREAM_NOISE, (uint64_t)worker, sleep_draws++, word);
    if (sti_below(word[0], SLEEP_ODDS) == 0)
        nanosleep(&(struct timespec){.tv_nsec = sti_below(word[1], SLEEP_MOST_NS)},
                  NULL);
}

static void run_pieces(const region *r, int64_t begin, int64_t end, int worker)
{
    unsigned saved = sti_float_mode_enter();
    depth++;
    for (int64_t piece = begin; piece < end; piece++) {
        if (sleep_seed)
            sleep_perhaps(worker);
        r->fn(r->arg, piece, worker);
    }
    depth--;
    sti_float_mode_leave(saved);
}

/* floor(worker * pieces / workers), without the overflow. */
static int64_t first_piece(int64_t pieces, int worker, int workers)
{
    return pieces / workers * worker + pieces % workers * worker / workers;
}

static void run_share(region *r, int worker, int workers)
{
    TSAN_ACQUIRE(&r->fork);
    run_pieces(r, first_piece(r->pieces, worker, workers),
               first_piece(r->pieces, worker + 1, workers), worker);
    TSAN_RELEASE(&r->join);
}

static void pause_briefly(void)
{
#if defined(__SSE2__)
    _mm_pause();
#endif
}

enum { SPINS = 1000 /* about 50 us before a thread sleeps */ };

/* Before the barrier at the end of a region, where OpenMP's threads spin: a thread that
 * woke on the CPU of one that spins would wait there for a time slice, some
 * milliseconds. So that one sleeps for a moment. */
static void wait_for_all(atomic_int *here, int threads)
{
    const struct timespec moment = {.tv_nsec = 1000};
    for (int i = 0; atomic_load(here) < threads; i++)
        if (i < SPINS)
            pause_briefly();
        else
            nanosleep(&moment, NULL);
}

static void share_and_wait(region *r, int worker, int workers)
{
    TSAN_ACQUIRE(&r->fork);
    atomic_fetch_add(&r->here, 1);
    run_share(r, worker, workers);
    wait_for_all(&r->here, workers);
    TSAN_RELEASE(&r->join);
}

/* Hidden from ThreadSanitizer: the compiler's hand-over of `r` to the workers happens
 * before the first annotation can be reached. */
TSAN_UNSEEN static void fork_and_join(region *r, int threads)
{
    /* The runtime may give fewer threads (OMP_THREAD_LIMIT); all pieces still run. */
#pragma omp parallel num_threads(threads)
    share_and_wait(r, omp_get_thread_num(), omp_get_num_threads());
}

/* ---- held teams ----
 *
 * The threads of one OpenMP region wait for the loops that its first thread comes to.
 * Who has a worker's share is one bit: the worker sets it when it begins, or the first
 * thread when it has nothing else to do, so a thread that the system lets wait holds
 * nobody up. All bits are set between loops, which makes it safe to try at any time;
 * the loop is read after that. */

enum { HOLD_THREADS = 64 };

typedef struct hold {
    int threads;
    region *loop;
    _Atomic uint64_t taken; /* bit w: somebody has the share of worker w */
    atomic_int left;        /* shares that are not done */
    atomic_uint turn;       /* loops so far, and one for the end */
    atomic_bool over;
    atomic_int asleep; /* threads that want to hear of a change */
    atomic_int here;   /* threads that have come */
    pthread_mutex_t mutex;
    pthread_cond_t changed;
    char fork, join; /* addresses for ThreadSanitizer */
} hold;

static _Thread_local hold *held; /* by this thread */

static bool has_turned(hold *h, unsigned seen)
{
    return atomic_load(&h->turn) != seen;
}

static bool is_done(hold *h, unsigned unused)
{
    (void)unused;
    return atomic_load(&h->left) == 0;
}

typedef bool hold_test(hold *h, unsigned seen);

static void wait_until(hold *h, hold_test *test, unsigned seen)
{
    for (int i = 0; i < SPINS; i++) {
        if (test(h, seen))
            return;
        pause_briefly();
    }
    pthread_mutex_lock(&h->mutex);
    /* Before the test, as tell() looks after a change. */
    atomic_fetch_add(&h->asleep, 1);
    while (!test(h, seen))
        pthread_cond_wait(&h->changed, &h->mutex);
    atomic_fetch_sub(&h->asleep, 1);
    pthread_mutex_unlock(&h->mutex);
}

static void tell(hold *h)
{
    if (atomic_load(&h->asleep) == 0)
        return;
    pthread_mutex_lock(&h->mutex);
    pthread_cond_broadcast(&h->changed);
    pthread_mutex_unlock(&h->mutex);
}

static void run_held_share(hold *h, int worker)
{
    run_share(h->loop, worker, h->threads);
    if (atomic_fetch_sub(&h->left, 1) == 1)
        tell(h);
}

static void take_share(hold *h, int worker)
{
    const uint64_t bit = UINT64_C(1) << worker;
    if (!(atomic_fetch_or(&h->taken, bit) & bit))
        run_held_share(h, worker);
}

static void run_held(hold *h, region *r)
{
    h->loop = r;
    atomic_store(&h->left, h->threads);
    atomic_store(&h->taken, 1);
    atomic_fetch_add(&h->turn, 1);
    tell(h);
    run_held_share(h, 0);
    for (int w = 1; w < h->threads; w++)
        take_share(h, w);
    wait_until(h, is_done, 0);
}

static void serve(hold *h, int worker)
{
    unsigned seen = 0;
    for (;;) {
        wait_until(h, has_turned, seen);
        seen = atomic_load(&h->turn);
        if (atomic_load(&h->over))
            return;
        take_share(h, worker);
    }
}

static void lead(hold *h, void (*fn)(void *arg), void *arg)
{
    held = h;
    fn(arg);
    held = NULL;
    atomic_store(&h->over, true);
    atomic_fetch_add(&h->turn, 1);
    tell(h);
}

static void lead_or_serve(hold *h, int worker, int workers, void (*fn)(void *arg),
                          void *arg)
{
    TSAN_ACQUIRE(&h->fork);
    atomic_fetch_add(&h->here, 1);
    if (worker == 0)
        lead(h, fn, arg);
    else
        serve(h, worker);
    wait_for_all(&h->here, workers);
    TSAN_RELEASE(&h->join);
}

TSAN_UNSEEN static void fork_and_hold(hold *h, void (*fn)(void *arg), void *arg)
{
#pragma omp parallel num_threads(h->threads)
    lead_or_serve(h, omp_get_thread_num(), omp_get_num_threads(), fn, arg);
}

void sti_team_hold(const sti_team *team, void (*fn)(void *arg), void *arg)
{
    if (team->threads <= 1 || team->threads > HOLD_THREADS || depth > 0 || held) {
        fn(arg);
        return;
    }
    hold h = {.threads = team->threads,
              .taken = UINT64_MAX,
              .mutex = PTHREAD_MUTEX_INITIALIZER,
              .changed = PTHREAD_COND_INITIALIZER};
    TSAN_RELEASE(&h.fork);
    fork_and_hold(&h, fn, arg);
    TSAN_ACQUIRE(&h.join);
}

void sti_team_run(const sti_team *team, int64_t pieces, sti_piece_fn *fn, void *arg)
{
    region r = {.fn = fn, .arg = arg, .pieces = pieces};
    if (pieces <= 0)
        return;
    pthread_once(&sleep_once, find_sleep_seed);
    if (team->threads <= 1 || pieces == 1 || depth > 0) {
        run_pieces(&r, 0, pieces, 0);
        return;
    }
    TSAN_RELEASE(&r.fork);
    if (held && held->threads == team->threads) {
        run_held(held, &r);
        return;
    }
    fork_and_join(&r, team->threads);
    TSAN_ACQUIRE(&r.join);
}

/* ---- pieces by turns ---- */

typedef struct turns {
    sti_piece_fn *fn;
    void *arg;
    int64_t pieces;
    atomic_llong next; /* piece */
} turns;

static void take_turns(void *arg, int64_t unused, int worker)
{
    turns *t = arg;
    (void)unused;
    for (;;) {
        const int64_t piece =
            atomic_fetch_add_explicit(&t->next, 1, memory_order_relaxed);
        if (piece >= t->pieces)
            return;
        if (sleep_seed)
            sleep_perhaps(worker);
        t->fn(t->arg, piece, worker);
    }
}

void sti_team_take(const sti_team *team, int64_t pieces, sti_piece_fn *fn, void *arg)
{
    turns t = {.fn = fn, .arg = arg, .pieces = pieces};
    const int64_t workers = pieces < team->threads ? pieces : team->threads;
    atomic_init(&t.next, 0);
    sti_team_run(team, workers, take_turns, &t);
}
