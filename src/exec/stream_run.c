#include "exec/stream_run.h"

#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "base/fail.h"
#include "base/memory.h"

enum { FAILURE_TEXT = 1024 };

typedef struct ring {
    char *base;
    size_t block_bytes;
    int64_t depth, written, taken;
} ring;

typedef struct runner {
    sti_rings *rings;
    int32_t process;
    pthread_t thread;
} runner;

struct sti_rings {
    const sti_stream_graph *graph;
    ring *ring;     /* [streams] */
    runner *runner; /* [processes] */
    sti_process_fn *fn;
    void *user;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    /* live: processes that have not ended; waiting: those that have found nothing to
     * do since `changes` was counted up last. */
    int32_t live, waiting;
    uint64_t changes;
    bool over, blocked;
    stint_status status;
    char failure[FAILURE_TEXT];
};

stint_status sti_rings_create(const sti_stream_graph *graph, void *memory,
                              sti_rings **rings_out)
{
    char *at = memory;
    sti_rings *r = sti_alloc(sizeof *r, "rings");
    if (!r)
        return STINT_E_MEMORY;
    r->graph = graph;
    r->ring = sti_alloc_array(graph->streams, sizeof *r->ring, "rings");
    r->runner = sti_alloc_array(graph->processes, sizeof *r->runner, "rings");
    pthread_mutex_init(&r->lock, NULL);
    pthread_cond_init(&r->changed, NULL);
    if (!r->ring || !r->runner) {
        sti_rings_destroy(r);
        return STINT_E_MEMORY;
    }
    for (int32_t s = 0; s < graph->streams; s++) {
        const size_t bytes = STI_ALIGN_UP(graph->stream[s].block_bytes, 64);
        r->ring[s] = (ring){at, bytes, graph->stream[s].depth, 0, 0};
        if (at)
            at += (size_t)graph->stream[s].depth * bytes;
    }
    *rings_out = r;
    return STINT_OK;
}

void sti_rings_destroy(sti_rings *rings)
{
    if (!rings)
        return;
    pthread_mutex_destroy(&rings->lock);
    pthread_cond_destroy(&rings->changed);
    sti_free(rings->ring);
    sti_free(rings->runner);
    sti_free(rings);
}

bool sti_rings_blocked(const sti_rings *rings)
{
    return rings->blocked;
}

size_t sti_rings_thread_bytes(int32_t processes)
{
    return (size_t)processes * ((size_t)64 << 10);
}

/* ---- waiting ---- */

static void look_for_end(sti_rings *r)
{
    if (r->over || r->live == 0 || r->waiting < r->live)
        return;
    r->over = r->blocked = true;
    pthread_cond_broadcast(&r->changed);
}

static void tell_change(sti_rings *r)
{
    r->changes++;
    r->waiting = 0;
    pthread_cond_broadcast(&r->changed);
}

static bool can_go_on(const ring *on, bool write)
{
    return write ? on->written - on->taken < on->depth : on->taken < on->written;
}

/* The block that is next, or NULL. */
static void *begin(sti_rings *r, int32_t stream, bool write)
{
    const ring *on = &r->ring[stream];
    bool counted = false;
    uint64_t seen = 0;
    pthread_mutex_lock(&r->lock);
    while (!r->over && !can_go_on(on, write)) {
        if (!counted || seen != r->changes) {
            counted = true;
            seen = r->changes;
            r->waiting++;
            look_for_end(r);
            continue;
        }
        pthread_cond_wait(&r->changed, &r->lock);
    }
    const int64_t at = write ? on->written : on->taken;
    void *block = NULL;
    if (!r->over)
        block = on->base ? on->base + (size_t)(at % on->depth) * on->block_bytes
                         : (char *)r; /* no bytes: any address but NULL */
    pthread_mutex_unlock(&r->lock);
    return block;
}

void *sti_rings_begin_write(sti_rings *rings, int32_t stream)
{
    return begin(rings, stream, true);
}

const void *sti_rings_begin_read(sti_rings *rings, int32_t stream)
{
    return begin(rings, stream, false);
}

void sti_rings_end_write(sti_rings *rings, int32_t stream)
{
    pthread_mutex_lock(&rings->lock);
    rings->ring[stream].written++;
    tell_change(rings);
    pthread_mutex_unlock(&rings->lock);
}

void sti_rings_end_read(sti_rings *rings, int32_t stream)
{
    pthread_mutex_lock(&rings->lock);
    rings->ring[stream].taken++;
    tell_change(rings);
    pthread_mutex_unlock(&rings->lock);
}

/* ---- threads ---- */

static void *run_process(void *arg)
{
    runner *w = arg;
    sti_rings *r = w->rings;
    const stint_status st = r->fn(r->user, w->process, r);
    pthread_mutex_lock(&r->lock);
    r->live--;
    if (st != STINT_OK && !r->over) {
        r->over = true;
        r->status = st;
        snprintf(r->failure, sizeof r->failure, "%s", stint_last_error());
    }
    look_for_end(r);
    pthread_cond_broadcast(&r->changed);
    pthread_mutex_unlock(&r->lock);
    return NULL;
}

/* Signals are for the threads of the program. */
static int32_t start_threads(sti_rings *r)
{
    sigset_t all, before;
    int32_t started = 0;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    for (; started < r->graph->processes; started++) {
        runner *w = &r->runner[started];
        *w = (runner){.rings = r, .process = started};
        if (pthread_create(&w->thread, NULL, run_process, w) != 0)
            break;
    }
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return started;
}

stint_status sti_rings_run(sti_rings *rings, sti_process_fn *fn, void *user)
{
    sti_rings *r = rings;
    r->fn = fn;
    r->user = user;
    r->live = r->graph->processes;
    const int32_t started = start_threads(r);
    if (started < r->graph->processes) {
        pthread_mutex_lock(&r->lock);
        r->over = true;
        pthread_cond_broadcast(&r->changed);
        pthread_mutex_unlock(&r->lock);
    }
    for (int32_t p = 0; p < started; p++)
        pthread_join(r->runner[p].thread, NULL);
    if (started < r->graph->processes)
        return sti_fail(STINT_E_FAILED, "no threads for %d stages; ask for fewer",
                        (int)r->graph->processes);
    if (r->blocked)
        return sti_fail(STINT_E_FAILED,
                        "all %d stages wait for each other: the rings between them are "
                        "not deep enough",
                        (int)r->graph->processes);
    return r->status == STINT_OK ? STINT_OK : sti_fail(r->status, "%s", r->failure);
}
