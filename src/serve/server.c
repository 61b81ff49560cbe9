/* stint_serve: from the start to the drained end. */
#include "serve/server_texts.h"

#include <inttypes.h>
#include <string.h>
#include <time.h>

#include "base/fail.h"
#include "base/file.h"
#include "base/memory.h"
#include "base/stop.h"
#include "base/units.h"

enum { IDLE_S = 30 };

static void rest(long ms)
{
    const struct timespec time = {0, ms * 1000000};
    (void)nanosleep(&time, NULL);
}

static bool is_gone(const sti_query *query)
{
    const sti_pending *p = query->user;
    return sti_http_left(p->http);
}

static stint_status start(sti_server *s)
{
    stint_status st;
    s->locked = pthread_mutex_init(&s->lock, NULL) == 0 &&
                pthread_rwlock_init(&s->files, NULL) == 0;
    s->plan.scheduler.is_gone = is_gone;
    STI_TRY(sti_scheduler_create(&s->plan.scheduler, &s->scheduler));
    for (int m = 0; m < s->tables.models; m++)
        if (s->model[m].text)
            STI_TRY(sti_texts_create(s, m, s->model[m].text, &s->texts[m]));
    STI_TRY(sti_workers_start(s));
    STI_TRY(sti_readers_start(s));
    STI_TRY(sti_models_start(s));
    STI_TRY(sti_http_start(&(sti_http_desc){.listen = s->desc.listen,
                                            .max_body_bytes = s->desc.max_body_bytes,
                                            .bodies_most_bytes = s->bodies_most,
                                            .max_connections = s->desc.max_connections,
                                            .idle_s = IDLE_S,
                                            .handle = sti_server_handle,
                                            .finish = sti_server_finish,
                                            .more = sti_server_more,
                                            .forget = sti_server_forget,
                                            .user = s},
                           &s->http));
out:
    return st;
}

static stint_status tell_address(const sti_server *s)
{
    sti_text line = {0};
    stint_status st = STINT_OK;
    if (s->desc.address_file) {
        sti_text_printf(&line, "%s\n", sti_http_address(s->http));
        st = line.failed ? STINT_E_MEMORY
                         : sti_file_write(s->desc.address_file, line.data, line.length);
    }
    sti_text_fini(&line);
    if (st == STINT_OK && s->desc.ready)
        s->desc.ready(s->desc.user, sti_http_address(s->http));
    return st;
}

static int64_t in_flight(sti_server *s)
{
    (void)pthread_mutex_lock(&s->lock);
    const int64_t count = s->in_flight + s->reading;
    (void)pthread_mutex_unlock(&s->lock);
    return count;
}

/* Answers that were given go out before connections are closed. */
static void deliver(sti_server *s, double until)
{
    while (s->http && sti_http_open(s->http) > 0 && sti_server_now() < until)
        rest(2);
}

static void take_no_more(sti_server *s)
{
    (void)pthread_mutex_lock(&s->lock);
    s->draining = true;
    (void)pthread_mutex_unlock(&s->lock);
    sti_server_reload(s, false); /* who asked is answered */
}

/* What was taken is answered, as long as it may take. */
static stint_status drain(sti_server *s)
{
    const double until = sti_server_now() + s->desc.drain_s;
    sti_http_quiesce(s->http);
    while (in_flight(s) > 0 && sti_server_now() < until) {
        sti_models_tidy(s);
        rest(2);
    }
    deliver(s, until);
    if (in_flight(s) == 0)
        return STINT_OK;
    return sti_fail(STINT_E_TERMINATED,
                    "%" PRId64 " requests were not answered within %s of the end "
                    "(--drain)",
                    in_flight(s), sti_time_text(s->desc.drain_s));
}

/* Before partitions, and for models. Locked. */
static sti_query *withdraw_all(sti_server *s)
{
    sti_query *all = sti_scheduler_withdraw_all(s->scheduler);
    sti_query **last = &all;
    while (*last)
        last = &(*last)->next;
    *last = sti_models_withdraw_all(s);
    return all;
}

/* Queries that still wait, which nobody will take: they are told so. */
static void give_up(sti_server *s)
{
    if (!s->scheduler)
        return;
    (void)pthread_mutex_lock(&s->lock);
    sti_query *all = withdraw_all(s);
    for (sti_query *q = all; q; q = q->next) {
        sti_pending *pending = q->user;
        if (q->steady)
            continue; /* of texts, which end below */
        pending->begun_s = pending->done_s = sti_server_now();
        sti_pending_end(pending, 503);
    }
    (void)pthread_mutex_unlock(&s->lock);
    for (sti_query *q = all, *next; q; q = next) {
        const sti_pending *pending = q->user;
        next = q->next; /* the query is gone once it is answered */
        if (!q->steady)
            sti_http_answer(pending->http);
    }
    sti_texts_give_up(s);
    if (all)
        deliver(s, sti_server_now() + 1);
}

static void sum_up(const sti_server *s, stint_serve_result *result)
{
    *result = (stint_serve_result){.planned_peak_bytes = s->account.total_bytes,
                                   .peak_rss_bytes = sti_process_peak_bytes()};
    for (int m = 0; m < s->tables.models; m++) {
        result->served += s->counts[m].served;
        result->rejected += s->counts[m].rejected;
        result->late += s->counts[m].late;
        result->failed += s->counts[m].failed;
    }
}

stint_status sti_server_run(sti_server *server, stint_serve_result *result_out)
{
    stint_status st = start(server);
    if (st == STINT_OK)
        st = tell_address(server);
    while (st == STINT_OK && sti_stop_asked() == STINT_OK) {
        sti_server_reload(server, sti_stop_take_save());
        sti_texts_tidy(server);
        sti_models_tidy(server);
        sti_http_tidy(server->http);
        st = sti_server_watch(server);
        rest(20);
    }
    sti_stop_clear();
    take_no_more(server);
    if (st == STINT_OK)
        st = drain(server);
    sti_workers_stop(server);
    sti_readers_stop(server);
    sti_models_stop(server);
    give_up(server);
    sti_http_stop(server->http);
    server->http = NULL;
    sum_up(server, result_out);
    return st;
}

void sti_server_fini(sti_server *server)
{
    sti_scheduler_destroy(server->scheduler);
    for (int m = 0; m < STI_SERVE_MODELS; m++) {
        if (server->leaving[m])
            sti_served_text_destroy(server->leaving[m]->use);
        sti_texts_destroy(server->leaving[m]);
        sti_texts_destroy(server->texts[m]);
    }
    if (server->locked) {
        (void)pthread_mutex_destroy(&server->lock);
        (void)pthread_rwlock_destroy(&server->files);
    }
    for (int m = 0; m < STI_SERVE_MODELS; m++)
        sti_served_fini(&server->model[m]);
    sti_serve_tables_fini(&server->tables);
}

/* ---- the public calls ---- */

stint_status stint_serve(const stint_serve_desc *desc, stint_serve_result *result_out)
{
    sti_server *server = sti_alloc(sizeof *server, "server");
    if (!server)
        return STINT_E_MEMORY;
    stint_status st = sti_server_prepare(server, desc);
    if (st == STINT_OK)
        st = sti_server_run(server, result_out);
    sti_server_fini(server);
    sti_free(server);
    return st;
}

stint_status stint_serve_explain(const stint_serve_desc *desc, char **json_out)
{
    sti_text text = {0};
    sti_server *server = sti_alloc(sizeof *server, "server");
    if (!server)
        return STINT_E_MEMORY;
    stint_status st = sti_server_prepare(server, desc);
    if (st == STINT_OK) {
        sti_server_explain(server, &text);
        st = text.failed ? STINT_E_MEMORY : STINT_OK;
    }
    sti_server_fini(server);
    sti_free(server);
    if (st == STINT_OK)
        *json_out = text.data;
    else
        sti_text_fini(&text);
    return st;
}

void stint_serve_free(char *json)
{
    sti_text text = {.data = json};
    sti_text_fini(&text);
}
