/* Requests for texts: what is asked for, whether there is time for it, and answers,
 * whole or piece by piece. */
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/fail.h"
#include "base/json.h"
#include "base/memory.h"
#include "serve/server_texts.h"

/* A byte of text as JSON, at most, and as it is kept. */
enum { BYTES_OF_BYTE = 7 };

/* ---- a new one ---- */

static size_t bytes_of(const sti_text_request *r, size_t longest)
{
    return sizeof(sti_text_pending) + 4096 + (size_t)r->count * sizeof(int32_t) +
           (size_t)r->draws * longest * BYTES_OF_BYTE;
}

/* Locked. 0: taken, else the status. */
static int offer(sti_server *s, sti_text_pending *p)
{
    sti_pending *q = &p->pending;
    sti_texts *t = s->texts[q->query.model];
    if (s->draining && !q->taken)
        return 503;
    if (s->in_flight_bytes + q->bytes > s->in_flight_most)
        return 507; /* told as 503, with other words */
    const bool in = sti_models_is_in(s, q->query.model);
    const double now = sti_server_now();
    const double wait = in ? 0 : sti_models_wait_s(s, q->query.model, now);
    q->query.expected_s = sti_texts_foretell(t, &p->request, now) + wait;
    if (!s->desc.admit_all && q->query.expected_s < HUGE_VAL &&
        q->query.expected_s > q->query.deadline_s) {
        q->http->retry_after_s = sti_retry_after_s(wait);
        return in ? 429 : 508;
    }
    s->in_flight++;
    s->in_flight_bytes += q->bytes;
    q->counted = true;
    q->query.number = ++s->completions;
    if (!q->taken)
        sti_http_wait(q->http);
    sti_texts_add(t, p);
    sti_texts_offer(t);
    return 0;
}

static void answer_too_late(const sti_query *q, sti_http_request *r)
{
    char words[200];
    const double late = q->expected_s - q->deadline_s;
    snprintf(words, sizeof words,
             "too late: the first token is expected after %.1f ms, the deadline is "
             "%.1f ms",
             1e3 * (q->expected_s - q->arrival_s),
             1e3 * (q->deadline_s - q->arrival_s));
    r->retry_after_s = late < 3600 ? (int)ceil(late) : 3600;
    sti_answer_error(r, 429, words);
}

/* True: it is taken, and may be gone already. */
static bool submit(sti_server *s, sti_text_pending *p, sti_http_request *r)
{
    sti_query *q = &p->pending.query;
    const sti_served_text *text = s->model[q->model].text;
    q->batch = 1;
    q->arrival_s = (double)r->arrival_ns * 1e-9;
    q->deadline_s =
        q->arrival_s + (p->request.timeout_s > 0 ? p->request.timeout_s
                                                 : s->tables.model[q->model].sla_s);
    p->pending.bytes = bytes_of(&p->request, text->longest);
    p->created = (int64_t)time(NULL);
    sti_http_drop_body(r);
    if (p->pending.bytes > s->in_flight_most) {
        sti_answer_error(r, 413,
                         "a text of so many tokens takes more memory than there "
                         "is for requests; ask for fewer (max_tokens)");
        sti_server_count_refused(s, q->model, 413);
        return false;
    }
    (void)pthread_mutex_lock(&s->lock);
    const int status = offer(s, p);
    s->counts[q->model].rejected += status != 0;
    (void)pthread_mutex_unlock(&s->lock);
    if (status == 429)
        answer_too_late(q, r);
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

/* The model of a completion is named in the body; with one text model it need not be.
 */
static int find_text_model(const sti_server *s, const char *name)
{
    int found = -1, count = 0;
    for (int m = 0; m < s->tables.models; m++) {
        if (!s->model[m].text)
            continue;
        if (strcmp(name, s->model[m].name) == 0)
            return m;
        found = m;
        count++;
    }
    return !*name && count == 1 ? found : -1;
}

/* True: the request was read; else its answer is set and *status_out says how. */
static bool read_request(sti_server *s, int *model, sti_http_request *r,
                         sti_text_pending *p, int *status_out)
{
    const bool completion = *model < 0;
    stint_status st =
        sti_text_request_parse(r->body ? r->body : "", r->body_bytes, completion,
                               p->asked_stream, &p->request, status_out);
    if (st == STINT_OK && completion)
        *model = find_text_model(s, p->request.model);
    if (st == STINT_OK && *model < 0) {
        *status_out = 404;
        st =
            sti_fail(STINT_E_INPUT,
                     "model: there is no text model of that name; GET /v1/models lists "
                     "them");
    }
    if (st == STINT_OK) {
        const sti_served_text *text = s->model[*model].text;
        st = sti_text_request_encode(&p->request, text->facts.tokenizer,
                                     text->facts.context, text->longest, status_out);
    }
    if (st == STINT_OK)
        return true;
    sti_answer_error(r, *status_out, stint_last_error());
    return false;
}

/* A completion's query has no model before its body is read. */
static bool read_text(sti_server *s, sti_http_request *r)
{
    sti_text_pending *p = r->user;
    int status = 503, model = p->pending.query.model;
    if (read_request(s, &model, r, p, &status)) {
        p->pending.query.model = model;
        return submit(s, p, r);
    }
    p->ended = true;
    if (model >= 0)
        sti_server_count_refused(s, model, status);
    return false;
}

void sti_server_generate(sti_server *s, int model, bool stream, sti_http_request *r)
{
    if (r->refused) {
        sti_server_answer_refused(s, model, r);
        return;
    }
    sti_text_pending *p = sti_alloc(sizeof *p, "request");
    if (!p) {
        sti_answer_error(r, 503, stint_last_error());
        if (model >= 0)
            sti_server_count_refused(s, model, 503);
        return;
    }
    p->pending = (sti_pending){
        .server = s, .http = r, .of_text = true, .query = {.model = model}};
    p->asked_stream = stream;
    r->user = &p->pending;
    if (!sti_readers_want(r, false) || !sti_readers_take(s, &p->pending, read_text))
        (void)read_text(s, r);
}

/* ---- the end ---- */

static sti_text_reply reply_of(const sti_text_pending *p)
{
    const sti_pending *q = &p->pending;
    return (sti_text_reply){.model = q->server->model[q->query.model].name,
                            .version = p->version,
                            .number = q->query.number,
                            .created = p->created,
                            .finish = p->finish,
                            .drawn = p->count};
}

static void answer_text(sti_text_pending *p, sti_http_request *r)
{
    const sti_text_reply reply = reply_of(p);
    if (p->drawn.data)
        p->drawn.data[p->safe] = '\0';
    sti_text_answer(&p->request, &reply, p->drawn.data ? p->drawn.data : "",
                    &r->answer);
    if (!r->answer.failed)
        return;
    sti_text_fini(&r->answer);
    r->answer = (sti_text){.data = NULL};
    sti_answer_error(r, 503, "no memory for the answer");
}

void sti_text_finish(sti_text_pending *p, sti_http_request *r)
{
    sti_server *s = p->pending.server;
    (void)pthread_mutex_lock(&s->lock);
    const bool ended = p->ended;
    const double begun = p->pending.begun_s;
    const double done = ended && !p->request.stream ? p->ended_s : p->pending.done_s;
    (void)pthread_mutex_unlock(&s->lock);
    snprintf(r->timing, sizeof r->timing, "queue;dur=%.3f, compute;dur=%.3f",
             1e3 * (begun - p->pending.query.arrival_s), 1e3 * (done - begun));
    if (!ended || (r->status == 200 && p->request.stream)) {
        r->status = 200;
        r->type = "text/event-stream";
        r->streams = true;
    } else if (r->status == 200) {
        answer_text(p, r);
    } else if (r->status == 504) {
        sti_answer_error(r, 504, "the deadline went by before the text's turn came");
    } else if (r->status == 503) {
        sti_answer_error(r, 503,
                         s->draining ? "the server ended before the text did"
                                     : "the model could not be loaded; see the "
                                       "server's log");
    } else if (r->status == 499) {
        sti_answer_error(r, 499, "the client had closed its end");
    } else {
        sti_answer_error(r, 500, "the scores of the tokens are no finite numbers");
    }
}

void sti_text_forget(sti_text_pending *p)
{
    sti_server *s = p->pending.server;
    (void)pthread_mutex_lock(&s->lock);
    p->pending.http = NULL;
    if (p->ended || !p->pending.counted)
        sti_text_free(p); /* else whoever draws it does */
    (void)pthread_mutex_unlock(&s->lock);
}

/* ---- a stream ---- */

/* Locked: what has come since the last event becomes one. */
static void make_event(sti_text_pending *p, sti_text *out)
{
    sti_text_reply reply = reply_of(p);
    const bool well = !p->ended || p->finish;
    if (!well) {
        sti_text_event_error("the text was broken off", out);
    } else if (p->drawn.data) {
        const char kept = p->drawn.data[p->safe];
        p->drawn.data[p->safe] = '\0';
        sti_text_event(&p->request, &reply, p->drawn.data + p->sent, out);
        p->drawn.data[p->safe] = kept;
    } else {
        sti_text_event(&p->request, &reply, "", out);
    }
    p->sent = p->safe;
    p->closed = p->ended;
}

int64_t sti_server_more(void *user, sti_http_request *r, char *out, size_t room)
{
    sti_server *s = user;
    sti_text_pending *p = r->user;
    int64_t count = 0;
    (void)pthread_mutex_lock(&s->lock);
    if (p->given == r->answer.length) {
        r->answer.length = p->given = 0;
        if (!p->closed && (p->safe > p->sent || p->ended))
            make_event(p, &r->answer);
    }
    if (r->answer.failed) {
        count = -1;
    } else if (r->answer.length > p->given) {
        const size_t left = r->answer.length - p->given;
        count = (int64_t)(left < room ? left : room);
        memcpy(out, r->answer.data + p->given, (size_t)count);
        p->given += (size_t)count;
    } else if (p->closed) {
        count = -1;
    } else {
        p->asleep = true;
        sti_http_sleep(r);
    }
    (void)pthread_mutex_unlock(&s->lock);
    return count;
}

/* ---- what there is ---- */

static void add_tensor(sti_json *j, const char *list, const char *name)
{
    sti_json_begin_array(j, list);
    sti_json_begin_object(j, NULL);
    sti_json_text(j, "name", name);
    sti_json_text(j, "datatype", "BYTES");
    sti_json_begin_array(j, "shape");
    sti_json_int(j, NULL, 1);
    sti_json_end_array(j);
    sti_json_end_object(j);
    sti_json_end_array(j);
}

void sti_text_metadata(const sti_served *m, double sla_s, sti_text *out)
{
    char version[13];
    const sti_served_text *text = m->text;
    sti_json j = {.out = out};
    snprintf(version, sizeof version, "%.12s", text->version);
    sti_json_begin_object(&j, NULL);
    sti_json_text(&j, "name", m->name);
    sti_json_begin_array(&j, "versions");
    sti_json_text(&j, NULL, version);
    sti_json_end_array(&j);
    sti_json_text(&j, "platform", "stint");
    add_tensor(&j, "inputs", "text_input");
    add_tensor(&j, "outputs", "text_output");
    sti_json_begin_object(&j, "parameters");
    sti_json_float(&j, "sla_s", sla_s);
    sti_json_int(&j, "context", text->facts.context);
    sti_json_int(&j, "texts_max", text->desc.texts);
    sti_json_int(&j, "pages", text->desc.pages);
    sti_json_end_object(&j);
    sti_json_end_object(&j);
}
