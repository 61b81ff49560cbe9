/* Parallel loops. The only file that knows OpenMP.
 *
 * The number of OpenMP threads is always the team's, even for fewer pieces: libgomp
 * ends and restarts threads whenever a region asks for another number than the last
 * one. */
#define _GNU_SOURCE /* nanosleep */
#include "base/team.h"

#include <omp.h>
#include <pthread.h>
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

/* Hidden from ThreadSanitizer: the compiler's hand-over of `r` to the workers happens
 * before the first annotation can be reached. */
TSAN_UNSEEN static void fork_and_join(region *r, int threads)
{
    /* The runtime may give fewer threads (OMP_THREAD_LIMIT); all pieces still run. */
#pragma omp parallel num_threads(threads)
    run_share(r, omp_get_thread_num(), omp_get_num_threads());
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
    fork_and_join(&r, team->threads);
    TSAN_ACQUIRE(&r.join);
}
