/* Threads of partitions: take a batch, run it, answer. */
#define _GNU_SOURCE /* pthread_condattr_setclock */
#include <math.h>
#include <string.h>
#include <time.h>

#include "base/fail.h"
#include "base/finite.h"
#include "base/memory.h"
#include "serve/server_texts.h"

/* ---- one batch ---- */

static void gather(sti_worker *w, const sti_serve_batch *batch)
{
    float *x = sti_runner_input(w->runner, batch->model, batch->images);
    for (const sti_query *q = batch->first; q; q = q->next) {
        const sti_pending *p = q->user;
        const sti_served *m = p->infer.model;
        const size_t count = (size_t)(q->batch * m->height * m->width * m->channels);
        memcpy(x, p->infer.pixels, count * sizeof *x);
        x += count;
    }
}

static void scatter(sti_worker *w, const sti_serve_batch *batch)
{
    const float *probabilities =
        sti_runner_probabilities(w->runner, batch->model, batch->images);
    const float *logits = sti_runner_logits(w->runner, batch->model, batch->images);
    for (const sti_query *q = batch->first; q; q = q->next) {
        sti_pending *p = q->user;
        const size_t count = (size_t)(q->batch * p->infer.model->classes);
        memcpy(p->infer.probabilities, probabilities, count * sizeof(float));
        memcpy(p->infer.logits, logits, count * sizeof(float));
        probabilities += count;
        logits += count;
    }
}

/* Answers that a network of finite weights has made of finite images may still be none:
 * status 500. */
static int status_of(const sti_pending *p)
{
    const int64_t count = p->query.batch * p->infer.model->classes;
    return sti_first_not_finite(p->infer.probabilities, count) < 0 ? 200 : 500;
}

/* With the lock: who is answered, in a list by next; answers are given without it. */
static sti_query *end_batch(sti_worker *w, sti_serve_batch *batch, double begun)
{
    sti_server *s = w->server;
    sti_query *first = batch->first;
    const double now = sti_server_now();
    w->batches++;
    w->images += batch->images;
    w->busy_s += now - begun;
    for (sti_query *q = first; q; q = q->next) {
        sti_pending *p = q->user;
        p->begun_s = begun;
        p->done_s = now;
        p->infer.version[0] = '\0';
        strncat(p->infer.version, p->infer.model->file->weights_sha256, 12);
        sti_pending_end(p, status_of(p));
    }
    sti_scheduler_done(s->scheduler, w->number, batch, now);
    w->running = false;
    return first;
}

static void answer_all(sti_query *q)
{
    while (q) {
        sti_query *next = q->next; /* the query is gone once it is answered */
        sti_pending_answer(q->user);
        q = next;
    }
}

/* Queries that were given up. Locked; they are answered without the lock. */
static sti_query *end_late(sti_query *late)
{
    for (sti_query *q = late; q; q = q->next) {
        sti_pending *p = q->user;
        p->begun_s = p->done_s = sti_server_now();
        sti_pending_end(p, sti_http_left(p->http) ? 499 : 504);
    }
    return late;
}

/* ---- the thread ---- */

static void wait_for_work(sti_worker *w, double wake_s)
{
    sti_server *s = w->server;
    struct timespec until;
    if (!(wake_s < HUGE_VAL)) {
        (void)pthread_cond_wait(&w->wake, &s->lock);
        return;
    }
    until.tv_sec = (time_t)wake_s;
    until.tv_nsec = (long)((wake_s - (double)until.tv_sec) * 1e9);
    (void)pthread_cond_timedwait(&w->wake, &s->lock, &until);
}

/* With the lock, which is let go in between. False: there was nothing to do. */
static bool work_once(sti_worker *w, double *wake_s)
{
    sti_server *s = w->server;
    sti_query *late;
    sti_serve_batch *batch =
        sti_scheduler_take(s->scheduler, w->number, sti_server_now(), &late, wake_s);
    if (!batch && !late)
        return false;
    late = end_late(late);
    w->running = batch != NULL;
    (void)pthread_mutex_unlock(&s->lock);
    answer_all(late);
    if (batch && batch->first->steady) {
        sti_texts_run(w, batch);
    } else if (batch) {
        const double begun = sti_server_now();
        gather(w, batch);
        sti_runner_run(w->runner, batch->model, batch->images);
        scatter(w, batch);
        (void)pthread_mutex_lock(&s->lock);
        sti_query *done = end_batch(w, batch, begun);
        (void)pthread_mutex_unlock(&s->lock);
        answer_all(done);
    }
    (void)pthread_mutex_lock(&s->lock);
    return true;
}

static void *worker_thread(void *arg)
{
    sti_worker *w = arg;
    sti_server *s = w->server;
    sti_keep_to_cpus(s->cpu + w->first_cpu, s->kind[w->size].threads);
    if (w->share && sti_cpu_share_enter(w->share) != STINT_OK)
        sti_log(STINT_LOG_WARNING, "%s", stint_last_error());
    (void)pthread_mutex_lock(&s->lock);
    while (!s->stopping) {
        double wake_s = HUGE_VAL;
        if ((s->paused || !work_once(w, &wake_s)) && !s->stopping)
            wait_for_work(w, wake_s);
    }
    (void)pthread_mutex_unlock(&s->lock);
    return NULL;
}

/* ---- life ---- */

static stint_status start_worker(sti_server *s, int number, int first_cpu)
{
    sti_worker *w = &s->worker[number];
    pthread_condattr_t clock;
    *w = (sti_worker){.server = s,
                      .number = number,
                      .size = sti_scheduler_size(s->scheduler, number),
                      .first_cpu = first_cpu};
    (void)pthread_condattr_init(&clock);
    (void)pthread_condattr_setclock(&clock, CLOCK_MONOTONIC);
    (void)pthread_cond_init(&w->wake, &clock);
    (void)pthread_condattr_destroy(&clock);
    stint_status st = sti_runner_create(s->model, s->tables.models, w->size,
                                        s->kind[w->size].threads, &w->runner);
    if (st == STINT_OK && s->kind[w->size].share > 0)
        st = sti_cpu_share_create("", s->kind[w->size].share, &w->share);
    if (st != STINT_OK)
        return st;
    w->begun = pthread_create(&w->thread, NULL, worker_thread, w) == 0;
    return w->begun ? STINT_OK : sti_fail(STINT_E_MEMORY, "no thread for a partition");
}

stint_status sti_workers_start(sti_server *server)
{
    int cpu[STI_SERVE_UNITS];
    stint_status st = STINT_OK;
    const int count = sti_scheduler_partitions(server->scheduler);
    (void)sti_serve_cut_place(&server->tables, &server->plan.cut, cpu);
    server->worker = sti_alloc_array(count, sizeof *server->worker, "partitions");
    if (!server->worker)
        return STINT_E_MEMORY;
    for (int i = 0; i < count && st == STINT_OK; i++) {
        server->workers++;
        st = start_worker(server, i, cpu[i]);
    }
    return st;
}

void sti_workers_stop(sti_server *server)
{
    if (!server->worker)
        return;
    (void)pthread_mutex_lock(&server->lock);
    server->stopping = true;
    sti_workers_wake(server, -1);
    (void)pthread_mutex_unlock(&server->lock);
    for (int i = 0; i < server->workers; i++) {
        sti_worker *w = &server->worker[i];
        if (w->begun)
            (void)pthread_join(w->thread, NULL);
        sti_runner_destroy(w->runner);
        sti_cpu_share_destroy(w->share);
        (void)pthread_cond_destroy(&w->wake);
    }
    /* Connections are still open, and who asks for the page looks at partitions. */
    (void)pthread_mutex_lock(&server->lock);
    sti_free(server->worker);
    server->worker = NULL;
    server->workers = 0;
    (void)pthread_mutex_unlock(&server->lock);
}
