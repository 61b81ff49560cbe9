/* The thread that loads models and unloads others, and what becomes of requests that
 * waited for them. */
#include <time.h>

#include "base/fail.h"
#include "serve/server_texts.h"

/* How much of what a load took is believed. */
#define BELIEF 0.3

static sti_model_place *place_of(sti_server *s, int model)
{
    return &s->models.place[model];
}

static size_t bytes_of(const sti_server *s, int model)
{
    return sti_served_weight_bytes(&s->model[model]);
}

/* ---- in and out ---- */

/* The one that was not asked for longest, among those that stay; -1: none. */
static int find_oldest(const sti_server *s, int but)
{
    int oldest = -1;
    for (int m = 0; m < s->tables.models; m++) {
        const sti_model_place *p = &s->models.place[m];
        if (m != but && p->in && !p->leaves &&
            (oldest < 0 || p->used_s < s->models.place[oldest].used_s))
            oldest = m;
    }
    return oldest;
}

static void unload(sti_server *s, int model)
{
    sti_model_place *p = place_of(s, model);
    p->in = p->leaves = false;
    s->models.bytes -= bytes_of(s, model);
    sti_served_unload(&s->model[model]);
    if (s->texts[model])
        sti_texts_look(s->texts[model]);
}

static stint_status load(sti_server *s, int model)
{
    const double begun = sti_server_now();
    const stint_status st = sti_served_load(&s->model[model]);
    sti_model_place *p = place_of(s, model);
    if (st != STINT_OK) {
        sti_served_unload(&s->model[model]);
        return st;
    }
    const double took = sti_server_now() - begun;
    p->load_s = p->load_s > 0 ? p->load_s + BELIEF * (took - p->load_s) : took;
    return STINT_OK;
}

stint_status sti_models_load_now(sti_server *s, int model)
{
    while (s->models.bytes + bytes_of(s, model) > s->models.most_bytes)
        unload(s, find_oldest(s, model));
    const stint_status st = load(s, model);
    if (st == STINT_OK) {
        place_of(s, model)->in = true;
        place_of(s, model)->used_s = sti_server_now();
        s->models.bytes += bytes_of(s, model);
    }
    return st;
}

/* ---- answers ---- */

static void end_one(sti_query *q, int status, sti_query **told)
{
    sti_pending *pending = q->user;
    pending->begun_s = pending->done_s = sti_server_now();
    sti_pending_end(pending, status);
    q->next = *told;
    *told = q;
}

static void answer_all(sti_query *told)
{
    for (sti_query *next; told; told = next) {
        sti_pending *pending = told->user;
        next = told->next; /* the query is gone once it is answered */
        sti_http_answer(pending->http);
    }
}

/* Requests that waited for the model, which is in now, or failed. Locked. */
static sti_query *release(sti_server *s, int model, bool failed)
{
    sti_model_place *p = place_of(s, model);
    sti_query *told = NULL, *q = p->first;
    p->first = NULL;
    p->last = &p->first;
    for (sti_query *next; q; q = next) {
        int partition;
        next = q->next;
        if (failed) {
            end_one(q, 503, &told);
            continue;
        }
        sti_models_begun(s, q->user);
        if (sti_scheduler_offer(s->scheduler, q, sti_server_now(), &partition) !=
            STINT_OK)
            end_one(q, 504, &told);
        else
            sti_workers_wake(s, partition);
    }
    return told;
}

void sti_models_tidy(sti_server *s)
{
    sti_query *told = NULL;
    if (!s->models.on_demand)
        return;
    (void)pthread_mutex_lock(&s->lock);
    const double now = sti_server_now();
    for (int m = 0; m < s->tables.models; m++) {
        sti_model_place *p = place_of(s, m);
        for (sti_query **link = &p->first; *link;) {
            sti_query *q = *link;
            const sti_pending *pending = q->user;
            const bool left = sti_http_left(pending->http);
            if (!left && (s->desc.serve_late || now < q->deadline_s)) {
                link = &q->next;
                continue;
            }
            *link = q->next;
            if (!q->next)
                p->last = link;
            end_one(q, left ? 499 : 504, &told);
        }
    }
    (void)pthread_mutex_unlock(&s->lock);
    answer_all(told);
}

/* ---- the thread ---- */

static bool is_idle(const sti_server *s, int model)
{
    return s->texts[model] ? sti_texts_draws_none(s->texts[model])
                           : s->models.place[model].active == 0;
}

/* Locked. Models leave, the oldest first, until there is room; false: some have not
 * ended yet. */
static bool make_room(sti_server *s, int model)
{
    size_t stays = s->models.bytes;
    for (int m = 0; m < s->tables.models; m++) {
        if (!place_of(s, m)->leaves)
            continue;
        stays -= bytes_of(s, m);
        if (is_idle(s, m))
            unload(s, m);
    }
    while (stays + bytes_of(s, model) > s->models.most_bytes) {
        const int oldest = find_oldest(s, model);
        place_of(s, oldest)->leaves = true;
        stays -= bytes_of(s, oldest);
        if (is_idle(s, oldest))
            unload(s, oldest);
    }
    return s->models.bytes + bytes_of(s, model) <= s->models.most_bytes;
}

static void wait_for_work(sti_server *s, bool soon)
{
    struct timespec until;
    if (!soon) {
        (void)pthread_cond_wait(&s->models.wake, &s->lock);
        return;
    }
    (void)clock_gettime(CLOCK_REALTIME, &until);
    until.tv_nsec += 1000000;
    if (until.tv_nsec >= 1000000000) {
        until.tv_sec++;
        until.tv_nsec -= 1000000000;
    }
    (void)pthread_cond_timedwait(&s->models.wake, &s->lock, &until);
}

/* Locked, but while it reads. */
static void load_first(sti_server *s)
{
    const int model = s->models.turn[0];
    sti_model_place *p = place_of(s, model);
    for (int i = 1; i < s->models.turns; i++)
        s->models.turn[i - 1] = s->models.turn[i];
    s->models.turns--;
    p->wanted = false;
    p->loading = true;
    p->begun_s = sti_server_now();
    s->models.bytes += bytes_of(s, model);
    (void)pthread_mutex_unlock(&s->lock);
    const stint_status st = load(s, model);
    if (st != STINT_OK)
        sti_log(STINT_LOG_WARNING, "%s: not loaded: %s", s->model[model].name,
                stint_last_error());
    (void)pthread_mutex_lock(&s->lock);
    p->loading = false;
    p->in = st == STINT_OK;
    p->loads += p->in;
    if (!p->in)
        s->models.bytes -= bytes_of(s, model);
    sti_query *told = release(s, model, !p->in);
    sti_text_pending *texts = NULL;
    if (s->texts[model])
        sti_texts_came(s->texts[model], p->in, &texts);
    (void)pthread_mutex_unlock(&s->lock);
    answer_all(told);
    sti_texts_answer(texts);
    (void)pthread_mutex_lock(&s->lock);
}

static void *models_thread(void *arg)
{
    sti_server *s = arg;
    (void)pthread_mutex_lock(&s->models.loading);
    (void)pthread_mutex_lock(&s->lock);
    while (!s->models.ends) {
        const bool wants = s->models.turns > 0;
        if (wants && make_room(s, s->models.turn[0])) {
            load_first(s);
            continue;
        }
        /* A reload may come in between. */
        (void)pthread_mutex_unlock(&s->models.loading);
        wait_for_work(s, wants);
        (void)pthread_mutex_unlock(&s->lock);
        (void)pthread_mutex_lock(&s->models.loading);
        (void)pthread_mutex_lock(&s->lock);
    }
    (void)pthread_mutex_unlock(&s->lock);
    (void)pthread_mutex_unlock(&s->models.loading);
    return NULL;
}

/* ---- life ---- */

stint_status sti_models_start(sti_server *s)
{
    (void)pthread_cond_init(&s->models.wake, NULL);
    (void)pthread_mutex_init(&s->models.loading, NULL);
    for (int m = 0; m < s->tables.models; m++)
        place_of(s, m)->last = &place_of(s, m)->first;
    s->models.begun = pthread_create(&s->models.thread, NULL, models_thread, s) == 0;
    return s->models.begun ? STINT_OK
                           : sti_fail(STINT_E_MEMORY, "no thread to load models");
}

void sti_models_stop(sti_server *s)
{
    if (!s->models.begun)
        return;
    (void)pthread_mutex_lock(&s->lock);
    s->models.ends = true;
    (void)pthread_cond_signal(&s->models.wake);
    (void)pthread_mutex_unlock(&s->lock);
    (void)pthread_join(s->models.thread, NULL);
    s->models.begun = false;
    (void)pthread_cond_destroy(&s->models.wake);
    (void)pthread_mutex_destroy(&s->models.loading);
}
