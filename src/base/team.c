/* Parallel loops. Each thread that runs them has a crew of its own, whose workers wait
 * for what it comes to.
 *
 * Whatever CPUs the system gives, no thread stands in the way of one that it waits for:
 * a share of a loop that its worker has not begun is the caller's as soon as it has
 * nothing else to do, and threads that wait spin but for a moment before they let
 * others have the CPU. (The barriers of OpenMP's runtime spin for milliseconds, and a
 * pair of threads that met on one CPU, because others were busy, took two time slices a
 * loop.) */
#define _GNU_SOURCE /* nanosleep */
#include "base/team.h"

#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <time.h>
#if defined(__SSE2__)
#include <xmmintrin.h>
#endif

#include "base/clock.h"
#include "base/rng.h"

typedef struct region {
    sti_piece_fn *fn;
    void *arg;
    int64_t pieces;
    int workers;
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

static int smaller(int a, int b)
{
    return a < b ? a : b;
}

/* Some workers have no pieces where there are fewer than workers. */
static bool has_share(const region *r, int worker)
{
    return r->pieces >= r->workers ||
           first_piece(r->pieces, worker, r->workers) <
               first_piece(r->pieces, worker + 1, r->workers);
}

static void run_share(const region *r, int worker)
{
    run_pieces(r, first_piece(r->pieces, worker, r->workers),
               first_piece(r->pieces, worker + 1, r->workers), worker);
}

/* ---- crews ----
 *
 * Who has a worker's share of a loop: the worker takes the offer when it begins, or the
 * caller when it has nothing else to do. No offers are left between loops, which makes
 * it safe to try at any time; the loop is read after that. */

enum {
    LINE_BYTES = 128,    /* two, as they are fetched in pairs */
    SPINS = 50000,       /* about 1 to 2 ms, before a thread sleeps */
    SPINS_TO_LOOK = 250, /* for others on its CPU */
    STAY_NS = 10000000,  /* between moves of a thread */
};

enum { OFFER_NONE, OFFER_SHARE, OFFER_TAKEN, OFFER_END };

/* A thread of a crew: the caller at 0, then the workers. */
typedef struct seat {
    _Alignas(LINE_BYTES) atomic_int offer;
    atomic_int cpu; /* of the worker when its last share began */
    atomic_bool asleep;
    int worker;
    int64_t stay_until_ns;
    struct crew *crew;
    pthread_t thread;
    pthread_mutex_t mutex;
    pthread_cond_t rung;
} seat;

typedef struct crew {
    const region *loop;
    atomic_int cpu;                       /* of the caller when the loop began */
    int asked, seated;                    /* threads, with the caller */
    _Alignas(LINE_BYTES) atomic_int left; /* shares that are not done */
    seat seats[];
} crew;

static bool is_called(const seat *s)
{
    const int offer = atomic_load(&s->offer);
    return offer == OFFER_SHARE || offer == OFFER_END;
}

static bool is_done(const seat *s)
{
    return atomic_load(&s->crew->left) == 0;
}

static bool is_with_caller(const seat *s)
{
    return s->worker > 0 && atomic_load(&s->crew->cpu) == sched_getcpu();
}

/* Whether one that works seems to be on this thread's CPU. */
static bool is_in_the_way(const seat *self)
{
    const crew *c = self->crew;
    const int cpu = sched_getcpu();
    for (int w = 1; w < c->asked; w++) {
        const seat *s = &c->seats[w];
        if (s != self && atomic_load(&s->cpu) == cpu &&
            atomic_load(&s->offer) == OFFER_TAKEN)
            return true;
    }
    return is_with_caller(self);
}

static bool find_allowed(pthread_t thread, cpu_set_t *allowed_out)
{
    return pthread_getaffinity_np(thread, sizeof *allowed_out, allowed_out) == 0;
}

/* To another CPU, if any is allowed. Whoever changes what is allowed while the thread
 * waits for its turn there changes it for the caller, too, which never moves itself;
 * a thread that has CPUs of its own stays. */
static bool leave_cpu(seat *s)
{
    const pthread_t caller = s->crew->seats[0].thread;
    const int64_t now = sti_clock_ns();
    const int cpu = sched_getcpu();
    cpu_set_t allowed, others;
    if (now < s->stay_until_ns || cpu < 0)
        return false;
    s->stay_until_ns = now + STAY_NS;
    if (!find_allowed(pthread_self(), &others) || !find_allowed(caller, &allowed) ||
        !CPU_EQUAL(&others, &allowed))
        return false;
    CPU_CLR((size_t)cpu, &others);
    if (CPU_COUNT(&others) == 0 || sched_setaffinity(0, sizeof others, &others) != 0)
        return false;
    if (find_allowed(caller, &allowed))
        sched_setaffinity(0, sizeof allowed, &allowed);
    return true;
}

static void pause_briefly(void)
{
#if defined(__SSE2__)
    _mm_pause();
#endif
}

/* A thread that shares its CPU with one that it waits for does not spin. A worker
 * moves, which the system would do in its own time: some leave a CPU idle for a quarter
 * of a second where two threads take turns so quickly. */
static void wait_until(seat *s, bool (*test)(const seat *))
{
    for (int i = 1; i < SPINS; i++) {
        if (test(s))
            return;
        pause_briefly();
        if (i % SPINS_TO_LOOK == 0 && is_in_the_way(s) &&
            (s->worker == 0 || !leave_cpu(s)))
            break;
    }
    pthread_mutex_lock(&s->mutex);
    /* Before the test, as ring() looks after a change. */
    atomic_store(&s->asleep, true);
    while (!test(s))
        pthread_cond_wait(&s->rung, &s->mutex);
    atomic_store(&s->asleep, false);
    pthread_mutex_unlock(&s->mutex);
}

static void ring(seat *s)
{
    if (!atomic_load(&s->asleep))
        return;
    pthread_mutex_lock(&s->mutex);
    pthread_cond_signal(&s->rung);
    pthread_mutex_unlock(&s->mutex);
}

static void take_share(seat *s)
{
    crew *c = s->crew;
    int offered = OFFER_SHARE;
    if (!atomic_compare_exchange_strong(&s->offer, &offered, OFFER_TAKEN))
        return;
    atomic_store(&s->cpu, sched_getcpu());
    run_share(c->loop, s->worker);
    atomic_store(&s->offer, OFFER_NONE);
    if (atomic_fetch_sub(&c->left, 1) == 1)
        ring(&c->seats[0]);
}

static void *serve(void *arg)
{
    seat *s = arg;
    do {
        wait_until(s, is_called);
        if (is_with_caller(s))
            leave_cpu(s);
        take_share(s);
    } while (atomic_load(&s->offer) != OFFER_END);
    return NULL;
}

static void make_offer(seat *s, int offered)
{
    atomic_store(&s->offer, offered);
    ring(s);
}

static void seat_init(seat *s, int worker, crew *c)
{
    *s = (seat){.worker = worker, .crew = c, .cpu = -1};
    pthread_mutex_init(&s->mutex, NULL);
    pthread_cond_init(&s->rung, NULL);
}

static void seat_fini(seat *s)
{
    pthread_cond_destroy(&s->rung);
    pthread_mutex_destroy(&s->mutex);
}

static void crew_destroy(void *arg)
{
    crew *c = arg;
    if (!c)
        return;
    for (int w = 1; w < c->seated; w++)
        make_offer(&c->seats[w], OFFER_END);
    for (int w = 1; w < c->seated; w++) {
        pthread_join(c->seats[w].thread, NULL);
        seat_fini(&c->seats[w]);
    }
    seat_fini(&c->seats[0]);
    free(c);
}

/* Signals are for the threads of the program, but for those of a thread's own faults
 * and of its profiler. */
static void block_signals(sigset_t *before_out)
{
    static const int own[] = {SIGBUS, SIGFPE, SIGILL, SIGSEGV, SIGPROF};
    sigset_t set;
    sigfillset(&set);
    for (size_t i = 0; i < sizeof own / sizeof *own; i++)
        sigdelset(&set, own[i]);
    pthread_sigmask(SIG_BLOCK, &set, before_out);
}

static void seat_workers(crew *c)
{
    sigset_t before;
    block_signals(&before);
    c->seated = 1;
    while (c->seated < c->asked && pthread_create(&c->seats[c->seated].thread, NULL,
                                                  serve, &c->seats[c->seated]) == 0)
        c->seated++;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
}

/* With as many workers as the system gives. (Not counted memory: it lasts as long as
 * the thread that it serves.) */
static crew *crew_create(int threads)
{
    crew *c = aligned_alloc(LINE_BYTES, sizeof *c + (size_t)threads * sizeof(seat));
    if (!c)
        return NULL;
    *c = (crew){.asked = threads};
    for (int w = 0; w < threads; w++)
        seat_init(&c->seats[w], w, c);
    c->seats[0].thread = pthread_self();
    seat_workers(c);
    for (int w = c->seated; w < threads; w++)
        seat_fini(&c->seats[w]);
    return c;
}

static _Thread_local crew *own_crew;
static pthread_key_t crew_key; /* for the end of a thread */

/* Whatever else ends with the thread may run loops after this, with a new crew. */
static void end_crew(void *arg)
{
    own_crew = NULL;
    crew_destroy(arg);
}

static bool has_crew_key;
static pthread_once_t crew_once = PTHREAD_ONCE_INIT;

/* In a child process, which has none of the workers. */
static void forget_crew(void)
{
    own_crew = NULL;
    pthread_setspecific(crew_key, NULL);
}

static void make_crew_key(void)
{
    has_crew_key = pthread_key_create(&crew_key, end_crew) == 0 &&
                   pthread_atfork(NULL, NULL, forget_crew) == 0;
}

/* The calling thread's, of so many threads or more; fewer where the system gives no
 * more. */
static crew *crew_of(int threads)
{
    if (own_crew && own_crew->asked >= threads)
        return own_crew;
    pthread_once(&crew_once, make_crew_key);
    if (!has_crew_key)
        return NULL;
    crew_destroy(own_crew);
    own_crew = crew_create(threads);
    pthread_setspecific(crew_key, own_crew);
    return own_crew;
}

static void run_loop(crew *c, const region *r)
{
    const int seated = smaller(c->seated, r->workers);
    int shares = 0;
    for (int w = 1; w < seated; w++)
        shares += has_share(r, w);
    c->loop = r;
    atomic_store(&c->cpu, sched_getcpu());
    atomic_store(&c->left, shares);
    for (int w = 1; w < seated; w++)
        if (has_share(r, w))
            make_offer(&c->seats[w], OFFER_SHARE);
    run_share(r, 0);
    for (int w = seated; w < r->workers; w++)
        run_share(r, w);
    for (int w = 1; w < seated; w++)
        take_share(&c->seats[w]);
    wait_until(&c->seats[0], is_done);
}

void sti_team_run(const sti_team *team, int64_t pieces, sti_piece_fn *fn, void *arg)
{
    region r = {.fn = fn, .arg = arg, .pieces = pieces, .workers = team->threads};
    if (pieces <= 0)
        return;
    pthread_once(&sleep_once, find_sleep_seed);
    crew *c =
        team->threads > 1 && pieces > 1 && depth == 0 ? crew_of(team->threads) : NULL;
    if (c)
        run_loop(c, &r);
    else
        run_pieces(&r, 0, pieces, 0);
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
