/* A watermark that a thread moves bit by bit while the exchange runs: the vector's
 * values are put there just before they are said to be final, rubbish lies there until
 * then.
 */
#ifndef STINT_TESTS_SLOW_WATERMARK_H
#define STINT_TESTS_SLOW_WATERMARK_H

#include <math.h>
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>
#include <unistd.h>

#include "net/ready_watermark.h"

typedef struct slow_watermark {
    sti_ready_watermark watermark;
    sti_comm *comm;
    float *vector;
    const float *values;
    int64_t count, step;
    unsigned pause_us;
    _Atomic int64_t from;
    int64_t taken; /* all that was taken, in order and once */
    pthread_t thread;
} slow_watermark;

static int64_t slow_from(void *user)
{
    return atomic_load(&((slow_watermark *)user)->from);
}

static void slow_take(void *user, int64_t from, int64_t end)
{
    slow_watermark *g = user;
    if (end == g->taken && from >= atomic_load(&g->from))
        g->taken = from;
    else
        g->taken = -1;
}

static void *slow_open(void *user)
{
    slow_watermark *g = user;
    for (int64_t at = g->count; at > 0;) {
        const int64_t n = at < g->step ? at : g->step;
        usleep(g->pause_us);
        at -= n;
        memcpy(g->vector + at, g->values + at, (size_t)n * sizeof *g->vector);
        atomic_store(&g->from, at);
        sti_comm_wake(g->comm);
    }
    return NULL;
}

static void slow_watermark_begin(slow_watermark *g, sti_comm *comm, float *vector,
                                 const float *values, int64_t count, int64_t step,
                                 unsigned pause_us)
{
    *g = (slow_watermark){.watermark = {.final_from = slow_from,
                                        .take = slow_take,
                                        .user = g,
                                        .taken = count},
                          .comm = comm,
                          .vector = vector,
                          .values = values,
                          .count = count,
                          .step = step,
                          .pause_us = pause_us,
                          .from = count,
                          .taken = count};
    for (int64_t i = 0; i < count; i++)
        vector[i] = NAN;
    pthread_create(&g->thread, NULL, slow_open, g);
}

/* True: everything was taken when it was final, each value once. */
static bool slow_watermark_end(slow_watermark *g)
{
    pthread_join(g->thread, NULL);
    return g->taken == 0;
}

#endif
