/* What files of the server share: the clock, waking workers, how a request ends. */
#include <math.h>

#include "base/clock.h"
#include "base/json.h"
#include "serve/server.h"

double sti_server_now(void)
{
    return (double)sti_clock_ns() * 1e-9;
}

void sti_workers_wake(sti_server *server, int partition)
{
    for (int i = 0; i < server->workers; i++)
        if (partition < 0 || partition == i)
            (void)pthread_cond_signal(&server->worker[i].wake);
}

static void count_second(sti_serve_counts *c, bool served, double latency_s)
{
    const int64_t now = (int64_t)sti_server_now();
    sti_serve_second *s = &c->second[now % STI_SERVE_SECONDS];
    if (s->second != now)
        *s = (sti_serve_second){.second = now};
    s->served += served;
    s->other += !served;
    if (!served)
        return;
    s->sum_s += latency_s;
    s->most_s = latency_s > s->most_s ? latency_s : s->most_s;
}

static void count(sti_pending *p, int status)
{
    sti_serve_counts *c = &p->server->counts[p->query.model];
    const double latency = p->done_s - p->query.arrival_s;
    int range = 0;
    c->rejected += status == 429 || status == 503;
    c->late += status == 504;
    c->failed += status >= 400 && status != 429 && status != 503 && status != 504;
    count_second(c, status == 200, latency);
    if (status != 200)
        return;
    while (range < STI_SERVE_RANGES - 1 && latency > 1e-3 * (double)(1 << range))
        range++;
    c->served++;
    c->images += p->query.batch;
    c->range[range]++;
    c->latency_s += latency;
    c->queue_s += p->begun_s - p->query.arrival_s;
    c->compute_s += p->done_s - p->begun_s;
}

void sti_pending_end(sti_pending *pending, int status)
{
    sti_server *s = pending->server;
    if (pending->http)
        pending->http->status = status;
    count(pending, status);
    s->in_flight--;
    if (!pending->active)
        return;
    sti_model_place *place = &s->models.place[pending->query.model];
    if (--place->active == 0 && place->leaves)
        (void)pthread_cond_signal(&s->models.wake);
}

/* ---- answers that refuse ---- */

int sti_retry_after_s(double seconds)
{
    return seconds > 0 && seconds < 3600 ? (int)ceil(seconds) : seconds > 0 ? 3600 : 1;
}

void sti_answer_error(sti_http_request *r, int status, const char *words)
{
    sti_json j = {.out = &r->answer};
    r->status = status;
    sti_json_begin_object(&j, NULL);
    if (r->error_object) {
        sti_json_begin_object(&j, "error");
        sti_json_text(&j, "message", words);
        sti_json_text(&j, "type",
                      status < 500 ? "invalid_request_error" : "server_error");
        sti_json_text(&j, "code", NULL);
        sti_json_end_object(&j);
    } else {
        sti_json_text(&j, "error", words);
    }
    sti_json_end_object(&j);
}

/* A request that no partition has seen. */
void sti_server_count_refused(sti_server *s, int model, int status)
{
    (void)pthread_mutex_lock(&s->lock);
    s->counts[model].rejected += status == 503;
    s->counts[model].failed += status != 503;
    (void)pthread_mutex_unlock(&s->lock);
}

/* One whose body was not taken. */
void sti_server_answer_refused(sti_server *s, int model, sti_http_request *r)
{
    if (r->refused == 413) {
        sti_answer_error(r, 413, "the body is too large; see --max-body");
    } else {
        sti_answer_error(r, 503, r->reason);
        r->retry_after_s = 1;
    }
    if (model >= 0)
        sti_server_count_refused(s, model, r->refused);
}
