/* Requests: which path, which model, whether there is time for it, and the answer. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/fail.h"
#include "base/json.h"
#include "base/memory.h"
#include "base/number.h"
#include "base/shown.h"
#include "serve/server_texts.h"
#include "stint/version.h"

/* Numbers as text of an answer that is written at once, on the connections' thread. */
enum { NUMBERS_MOST = 2048 };

/* The last failure that was recorded, as the answer. */
static void answer_failure(sti_http_request *r, int status)
{
    sti_answer_error(r, status, stint_last_error());
}

/* ---- the end of a request for inference ---- */

static void answer_infer(const sti_pending *p, sti_http_request *r)
{
    const bool binary = p->infer.binary[STI_OUTPUT_PROBABILITIES] ||
                        p->infer.binary[STI_OUTPUT_CLASS] ||
                        p->infer.binary[STI_OUTPUT_LOGITS];
    sti_infer_answer(&p->infer, &r->answer, &r->header_bytes);
    if (binary && r->header_bytes > 0)
        r->type = "application/octet-stream";
    if (r->answer.failed) {
        sti_text_fini(&r->answer);
        r->answer = (sti_text){.data = NULL};
        r->header_bytes = 0;
        sti_answer_error(r, 503, "no memory for the answer");
    }
}

static void make_answer(sti_pending *p, sti_http_request *r)
{
    snprintf(r->timing, sizeof r->timing, "queue;dur=%.3f, compute;dur=%.3f",
             1e3 * (p->begun_s - p->query.arrival_s), 1e3 * (p->done_s - p->begun_s));
    if (r->status == 200)
        answer_infer(p, r);
    else if (r->status == 504)
        sti_answer_error(r, 504, "the deadline went by before the request's turn came");
    else if (r->status == 503)
        sti_answer_error(r, 503,
                         p->server->draining
                             ? "the server ended before the request's turn came"
                             : "the model could not be loaded; see the server's log");
    else if (r->status == 499)
        sti_answer_error(r, 499,
                         "the client had closed its end before the request's turn");
    else
        sti_answer_error(r, r->status,
                         "the model's answer is not finite for this image");
    sti_infer_request_fini(&p->infer);
    p->told = true;
}

void sti_server_finish(void *user, sti_http_request *r)
{
    sti_pending *p = r->user;
    (void)user;
    if (!p || p->told) /* by whoever ended it */
        return;
    if (p->of_text)
        sti_text_finish((sti_text_pending *)p, r);
    else
        make_answer(p, r);
}

static void write_answer(sti_server *s, sti_http_request *r)
{
    (void)s;
    make_answer(r->user, r);
    sti_http_answer(r);
}

void sti_pending_answer(sti_pending *p)
{
    if (p->http->status == 200 && sti_infer_answer_numbers(&p->infer) > NUMBERS_MOST)
        sti_readers_add(p->server, p, write_answer);
    else
        sti_http_answer(p->http);
}

/* Locked. What an answer took from its making until it had been sent: a mean and a mean
 * deviation of late, as TCP keeps them of round trips (RFC 6298). */
static void note_way(sti_server *s, double seconds)
{
    s->way_dev_s += (fabs(seconds - s->way_s) - s->way_dev_s) / 4;
    s->way_s += (seconds - s->way_s) / 8;
}

/* Locked. A client counts from when it sends until it has read: both ways are taken
 * off its time, unless that would be much of it. */
static double way_kept(const sti_server *s, double time_s)
{
    return fmin(2 * (s->way_s + 4 * s->way_dev_s), time_s / 8);
}

void sti_server_forget(void *user, sti_http_request *r)
{
    sti_server *s = user;
    sti_pending *p = r->user;
    if (!p)
        return;
    r->user = NULL;
    if (p->of_text) {
        sti_text_forget((sti_text_pending *)p);
        return;
    }
    if (p->counted) {
        (void)pthread_mutex_lock(&s->lock);
        s->in_flight_bytes -= p->bytes;
        if (r->status == 200)
            note_way(s, sti_server_now() - p->done_s);
        (void)pthread_mutex_unlock(&s->lock);
    }
    sti_infer_request_fini(&p->infer);
    sti_free(p);
}

/* ---- a new one ---- */

static void answer_too_late(sti_pending *p, sti_http_request *r)
{
    char words[160];
    const double late = p->query.expected_s - p->query.deadline_s;
    const double done = p->query.expected_s - p->query.arrival_s + p->kept_s;
    snprintf(words, sizeof words,
             "too late: an answer is expected after %.1f ms, the deadline is %.1f ms",
             1e3 * done, 1e3 * (p->query.deadline_s - p->query.arrival_s + p->kept_s));
    snprintf(r->timing, sizeof r->timing, "queue;dur=0, compute;dur=0");
    r->retry_after_s = late > 0 && late < 3600 ? (int)ceil(late) : 1;
    sti_answer_error(r, 429, words);
}

static void take(sti_server *s, sti_pending *p)
{
    s->in_flight++;
    s->in_flight_bytes += p->bytes;
    p->counted = true;
}

/* Locked. A request of a model that is not loaded waits for it, if it can be answered
 * in time then; the model comes in any case. 0: it waits; 508: told as 503, with other
 * words. */
static int await_model(sti_server *s, sti_pending *p)
{
    const double now = sti_server_now();
    const double wait = sti_models_wait_s(s, p->query.model, now);
    p->query.expected_s =
        now + wait + sti_scheduler_least(s->scheduler, p->query.model, p->query.batch);
    if (!s->desc.admit_all && p->query.expected_s > p->query.deadline_s) {
        p->http->retry_after_s = sti_retry_after_s(wait);
        return 508;
    }
    take(s, p);
    if (!p->taken)
        sti_http_wait(p->http);
    sti_models_park(s, p);
    return 0;
}

/* Locked. 0: taken, else the status. */
static int offer(sti_server *s, sti_pending *p)
{
    int partition;
    if (s->draining && !p->taken)
        return 503;
    s->seen[p->query.model][p->query.batch - 1]++;
    if (s->in_flight_bytes + p->bytes > s->in_flight_most)
        return 507; /* told as 503, with other words */
    if (!sti_models_is_in(s, p->query.model))
        return await_model(s, p);
    take(s, p);
    sti_models_begun(s, p);
    const stint_status st =
        sti_scheduler_offer(s->scheduler, &p->query, sti_server_now(), &partition);
    if (st != STINT_OK) {
        p->begun_s = p->done_s = sti_server_now();
        sti_pending_end(p, st == STINT_E_BUDGET ? 429 : 500);
        return p->http->status;
    }
    if (!p->taken)
        sti_http_wait(p->http);
    sti_workers_wake(s, partition);
    return 0;
}

/* True: it is taken, and may be gone already. */
static bool submit(sti_server *s, sti_pending *p, sti_http_request *r)
{
    p->query.batch = p->infer.batch;
    p->query.user = p;
    p->query.arrival_s = (double)r->arrival_ns * 1e-9;
    const double time_s = p->infer.timeout_s > 0
                              ? p->infer.timeout_s
                              : s->tables.model[p->query.model].sla_s;
    p->bytes = sti_infer_request_bytes(&p->infer);
    sti_http_drop_body(r); /* all of it is in the pixels now */
    (void)pthread_mutex_lock(&s->lock);
    p->kept_s = way_kept(s, time_s);
    p->query.deadline_s = p->query.arrival_s + time_s - p->kept_s;
    const int status = offer(s, p);
    if (status == 503 || status >= 507)
        s->counts[p->query.model].rejected++;
    (void)pthread_mutex_unlock(&s->lock);
    if (status == 429)
        answer_too_late(p, r);
    else if (status == 500)
        answer_failure(r, 500);
    else if (status == 503)
        sti_answer_error(r, 503, "the server is shutting down");
    else if (status == 507)
        sti_answer_error(r, 503, "too many requests wait for their answers; try later");
    else if (status == 508)
        sti_answer_error(r, 503, STI_SERVER_LOADS);
    if (status == 507 || status == 503)
        r->retry_after_s = 1;
    return status == 0;
}

/* Bytes of the JSON before binary data; false: the header is none. */
static bool read_header_bytes(const sti_http_request *r, size_t *bytes_out)
{
    const char *text = sti_http_header(r, "Inference-Header-Content-Length");
    int64_t n;
    *bytes_out = r->body_bytes;
    if (!text)
        return true;
    if (!sti_digits_read(text, text + strlen(text), (int64_t)r->body_bytes, &n))
        return false;
    *bytes_out = (size_t)n;
    return true;
}

static bool read_infer(sti_server *s, sti_http_request *r)
{
    static char nothing[1];
    sti_pending *p = r->user;
    const int model = p->query.model;
    int status = 400;
    if (sti_infer_request_parse(
            &s->model[model], &s->limits, r->body ? r->body : nothing, r->body_bytes,
            p->json_bytes, p->image, &p->infer, &status) == STINT_OK)
        return submit(s, p, r);
    answer_failure(r, status);
    sti_server_count_refused(s, model, status);
    return false;
}

static void infer(sti_server *s, int model, sti_http_request *r)
{
    const char *type = sti_http_header(r, "Content-Type");
    if (r->refused) {
        sti_server_answer_refused(s, model, r);
        return;
    }
    sti_pending *p = sti_alloc(sizeof *p, "request");
    if (!p) {
        answer_failure(r, 503);
        sti_server_count_refused(s, model, 503);
        return;
    }
    *p = (sti_pending){.server = s,
                       .http = r,
                       .query = {.model = model},
                       .image = type && strncmp(type, "image/", 6) == 0};
    r->user = p;
    if (!read_header_bytes(r, &p->json_bytes)) {
        sti_answer_error(r, 400,
                         "Inference-Header-Content-Length: at most the body's bytes "
                         "were wanted");
        sti_server_count_refused(s, model, 400);
    } else if (!sti_readers_want(r, p->image) || !sti_readers_take(s, p, read_infer)) {
        (void)read_infer(s, r);
    }
}

/* ---- paths ---- */

static bool is_get(const sti_http_request *r)
{
    return strcmp(r->method, "GET") == 0 || strcmp(r->method, "HEAD") == 0;
}

static void answer_server(sti_http_request *r)
{
    sti_json j = {.out = &r->answer};
    sti_json_begin_object(&j, NULL);
    sti_json_text(&j, "name", "stint");
    sti_json_text(&j, "version", STINT_VERSION);
    sti_json_begin_array(&j, "extensions");
    sti_json_text(&j, NULL, "binary_tensor_data");
    sti_json_end_array(&j);
    sti_json_end_object(&j);
}

static void answer_state(sti_http_request *r, const char *key, bool is)
{
    sti_json j = {.out = &r->answer};
    r->status = is ? 200 : 503;
    sti_json_begin_object(&j, NULL);
    sti_json_bool(&j, key, is);
    sti_json_end_object(&j);
}

/* A model that is loaded when it is asked for is ready to be asked, too. */
static void answer_ready(sti_server *s, int model, sti_http_request *r)
{
    sti_json j = {.out = &r->answer};
    r->status = s->draining ? 503 : 200;
    sti_json_begin_object(&j, NULL);
    sti_json_bool(&j, "ready", !s->draining);
    if (s->models.on_demand) {
        (void)pthread_mutex_lock(&s->lock);
        sti_json_bool(&j, "loaded", s->models.place[model].in);
        (void)pthread_mutex_unlock(&s->lock);
    }
    sti_json_end_object(&j);
}

/* "NAME", "NAME/versions/V", and what is behind it, at `at`. */
static int find_model(const sti_server *s, const char *at, const char **rest_out)
{
    for (int m = 0; m < s->tables.models; m++) {
        const size_t length = strlen(s->model[m].name);
        if (strncmp(at, s->model[m].name, length) != 0 ||
            (at[length] != '/' && at[length] != '\0'))
            continue;
        const char *rest = at + length;
        if (strncmp(rest, "/versions/", 10) == 0) {
            const char *version = rest + 10;
            const size_t digits = strcspn(version, "/");
            if (digits != 12 ||
                strncmp(version, sti_served_version(&s->model[m]), 12) != 0)
                return -1;
            rest = version + digits;
        }
        *rest_out = rest;
        return m;
    }
    return -1;
}

/* What a model is asked for. False: not that of a model of its kind. */
static bool ask_model(sti_server *s, int m, const char *what, sti_http_request *r)
{
    const bool text = s->model[m].text != NULL;
    if (strcmp(r->method, "POST") != 0)
        return false;
    if (!text && strcmp(what, "/infer") == 0)
        infer(s, m, r);
    else if (text && strcmp(what, "/generate") == 0)
        sti_server_generate(s, m, false, r);
    else if (text && strcmp(what, "/generate_stream") == 0)
        sti_server_generate(s, m, true, r);
    else
        return false;
    return true;
}

static void answer_model(sti_server *s, const char *at, sti_http_request *r)
{
    const char *rest;
    const int m = find_model(s, at, &rest);
    if (m < 0)
        sti_answer_error(r, 404, "there is no such model; GET /v2/models lists them");
    else if (ask_model(s, m, rest, r))
        return;
    else if (r->refused)
        sti_server_answer_refused(s, -1, r);
    else if (strcmp(rest, "/ready") == 0 && is_get(r))
        answer_ready(s, m, r);
    else if (*rest == '\0' && is_get(r) && s->model[m].text)
        sti_text_metadata(&s->model[m], s->tables.model[m].sla_s, &r->answer);
    else if (*rest == '\0' && is_get(r))
        sti_infer_metadata(&s->model[m], s->model[m].name, s->tables.model[m].sla_s,
                           s->desc.batch_max, &r->answer);
    else
        sti_answer_error(
            r, 404,
            s->model[m].text
                ? "of a text model there are GET, GET ready, POST generate "
                  "and POST generate_stream"
                : "of a model there are GET, GET ready and POST infer");
}

static void answer_models(const sti_server *s, sti_http_request *r)
{
    sti_json j = {.out = &r->answer};
    sti_json_begin_object(&j, NULL);
    sti_json_begin_array(&j, "models");
    for (int m = 0; m < s->tables.models; m++)
        sti_json_text(&j, NULL, s->model[m].name);
    sti_json_end_array(&j);
    sti_json_end_object(&j);
}

/* The text models, as OpenAI's interface lists them. */
static void answer_v1_models(const sti_server *s, sti_http_request *r)
{
    sti_json j = {.out = &r->answer};
    sti_json_begin_object(&j, NULL);
    sti_json_text(&j, "object", "list");
    sti_json_begin_array(&j, "data");
    for (int m = 0; m < s->tables.models; m++) {
        if (!s->model[m].text)
            continue;
        sti_json_begin_object(&j, NULL);
        sti_json_text(&j, "id", s->model[m].name);
        sti_json_text(&j, "object", "model");
        sti_json_int(&j, "created", 0);
        sti_json_text(&j, "owned_by", "stint");
        sti_json_end_object(&j);
    }
    sti_json_end_array(&j);
    sti_json_end_object(&j);
}

static void answer_page(sti_server *s, sti_http_request *r)
{
    (void)pthread_mutex_lock(&s->lock);
    if (strcmp(r->path, "/metrics") == 0) {
        r->type = "text/plain; version=0.0.4";
        sti_server_metrics(s, &r->answer);
    } else {
        r->type = "text/html; charset=utf-8";
        r->refresh_s = 5;
        sti_server_page(s, &r->answer);
    }
    (void)pthread_mutex_unlock(&s->lock);
}

/* "NAME/load": the answer comes when it is done. */
static void load(sti_server *s, const char *at, sti_http_request *r)
{
    const char *rest;
    const int m = find_model(s, at, &rest);
    if (m < 0 || strcmp(rest, "/load") != 0) {
        sti_answer_error(r, 404, "of the repository there is POST models/NAME/load");
        return;
    }
    (void)pthread_mutex_lock(&s->lock);
    const bool busy = s->load[m] != NULL || s->draining;
    if (!busy) {
        s->load[m] = r;
        sti_http_wait(r);
    }
    (void)pthread_mutex_unlock(&s->lock);
    if (busy)
        sti_answer_error(r, 409,
                         "the model is being loaded already, or the server ends");
}

static void answer_path(sti_server *s, sti_http_request *r)
{
    const char *path = r->path;
    r->status = 200;
    r->error_object = strncmp(path, "/v1/", 4) == 0;
    if (strncmp(path, "/v2/models/", 11) == 0)
        answer_model(s, path + 11, r);
    else if (strcmp(path, "/v1/completions") == 0 && strcmp(r->method, "POST") == 0)
        sti_server_generate(s, -1, false, r);
    else if (r->refused)
        sti_server_answer_refused(s, -1, r);
    else if (strncmp(path, "/v2/repository/models/", 22) == 0 &&
             strcmp(r->method, "POST") == 0)
        load(s, path + 22, r);
    else if (!is_get(r))
        sti_answer_error(r, 404, "there is no such path; see GET /");
    else if (strcmp(path, "/v2") == 0 || strcmp(path, "/v2/") == 0)
        answer_server(r);
    else if (strcmp(path, "/v2/models") == 0)
        answer_models(s, r);
    else if (strcmp(path, "/v1/models") == 0)
        answer_v1_models(s, r);
    else if (strcmp(path, "/v2/health/live") == 0)
        answer_state(r, "live", true);
    else if (strcmp(path, "/v2/health/ready") == 0)
        answer_state(r, "ready", !s->draining);
    else if (strcmp(path, "/metrics") == 0 || strcmp(path, "/") == 0)
        answer_page(s, r);
    else
        sti_answer_error(r, 404, "there is no such path; see GET /");
}

void sti_server_handle(void *user, sti_http_request *r)
{
    sti_server *s = user;
    (void)pthread_rwlock_rdlock(&s->files);
    answer_path(s, r);
    (void)pthread_rwlock_unlock(&s->files);
}
