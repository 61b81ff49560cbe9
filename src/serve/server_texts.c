#include "serve/server_texts.h"

#include <math.h>
#include <string.h>

#include "base/fail.h"
#include "base/memory.h"

stint_status sti_texts_create(sti_server *server, int model, sti_served_text *use,
                              sti_texts **texts_out)
{
    sti_texts *t = sti_alloc(sizeof *t, "texts");
    if (!t)
        return STINT_E_MEMORY;
    t->server = server;
    t->model = model;
    t->use = use;
    t->last = &t->first;
    sti_texts_look(t);
    *texts_out = t;
    return STINT_OK;
}

void sti_texts_destroy(sti_texts *texts)
{
    sti_free(texts);
}

/* ---- those that wait ---- */

void sti_texts_add(sti_texts *t, sti_text_pending *p)
{
    p->next = NULL;
    *t->last = p;
    t->last = &p->next;
    t->waits++;
    t->wait_tokens += p->request.count;
}

static void take_first(sti_texts *t, sti_text_pending **link)
{
    sti_text_pending *p = *link;
    *link = p->next;
    if (!p->next)
        t->last = link;
    t->waits--;
    t->wait_tokens -= p->request.count;
    p->next = NULL;
}

void sti_texts_move_waiting(sti_texts *from, sti_texts *to)
{
    while (from->first) {
        sti_text_pending *p = from->first;
        take_first(from, &from->first);
        sti_texts_add(to, p);
    }
}

/* ---- what is expected ---- */

/* Steps until a slot of the batch, and pages for the prompt, are free: texts that are
 * in leave when they have drawn all that they may. */
static double steps_before(const sti_texts *t, const sti_text_request *r)
{
    const int in = t->state.texts;
    const int64_t pages = (t->wait_tokens + r->count + 63) / 64 + t->waits;
    int leave = in + t->waits + 1 - t->use->desc.texts;
    if (pages > t->state.free_pages && leave < 1)
        leave = 1;
    if (leave < 1 || in == 0)
        return 0;
    const int64_t last = t->left[in - 1];
    return leave <= in ? (double)t->left[leave - 1]
                       : (double)last * (1 + (double)(leave - in) / in);
}

double sti_texts_foretell(const sti_texts *t, const sti_text_request *r, double now)
{
    const sti_scheduler *scheduler = t->server->scheduler;
    const int64_t unread = t->state.unread + t->wait_tokens + r->count;
    int drawing = t->state.drawing + t->waits;
    drawing = drawing < STI_DECODER_ROWS / 2 ? drawing : STI_DECODER_ROWS / 2;
    const int64_t most = STI_DECODER_ROWS - drawing;
    const double steps = ceil((double)unread / (double)most);
    const int64_t rows = unread < most ? drawing + unread : STI_DECODER_ROWS;
    const double each = sti_scheduler_least(scheduler, t->model, (int)rows);
    const sti_query query = {.model = t->model,
                             .batch = (int)rows,
                             .arrival_s = now,
                             .deadline_s = HUGE_VAL,
                             .steady = true};
    double first = sti_scheduler_foretell(scheduler, &query, now);
    if (t->offered) /* one step comes before */
        first = fmax(first, t->query.expected_s + each);
    return first + (steps - 1) * each +
           steps_before(t, r) *
               sti_scheduler_least(scheduler, t->model, drawing > 0 ? drawing : 1);
}

/* ---- the step as a query ---- */

bool sti_texts_draws_none(const sti_texts *t)
{
    return !t->offered && t->state.texts == 0;
}

bool sti_texts_idle(const sti_texts *t)
{
    return sti_texts_draws_none(t) && !t->first;
}

/* May those that wait join? Not while the model is not loaded, or is to leave; texts of
 * weights that were replaced take none. */
static bool takes(sti_texts *t)
{
    return t->server->texts[t->model] != t || sti_models_is_in(t->server, t->model);
}

/* It is due as the first of the texts that wait for their first tokens, else as a token
 * is that has been asked for now. */
static double due(const sti_texts *t, double now)
{
    double least = now + t->server->tables.model[t->model].sla_s;
    for (int i = 0; i < STI_TEXTS_MOST; i++)
        if (t->text[i] && t->text[i]->count == 0)
            least = fmin(least, t->text[i]->pending.query.deadline_s);
    for (const sti_text_pending *p = t->first; p; p = p->next)
        least = fmin(least, p->pending.query.deadline_s);
    return least;
}

void sti_texts_offer(sti_texts *t)
{
    sti_server *s = t->server;
    const double now = sti_server_now();
    int partition;
    int64_t rows = t->state.drawing + t->state.unread;
    if (t->offered)
        return;
    if (t->first && takes(t))
        rows += t->wait_tokens;
    if (rows == 0)
        return;
    rows = rows < STI_DECODER_ROWS ? rows : STI_DECODER_ROWS;
    t->query = (sti_query){.model = t->model,
                           .batch = (int)rows,
                           .arrival_s = now,
                           .deadline_s = due(t, now),
                           .steady = true,
                           .user = t};
    t->offered = sti_scheduler_offer(s->scheduler, &t->query, now, &partition) ==
                 STINT_OK; /* else again a little later, see sti_texts_tidy */
    if (!t->offered)
        return;
    s->seen[t->model][rows - 1]++;
    sti_workers_wake(s, partition);
}

/* ---- the end of a text ---- */

/* Texts whose connections are to be told, without the lock. */
typedef struct told {
    sti_text_pending *first;
} told;

static void tell(told *list, sti_text_pending *p)
{
    p->next = list->first;
    list->first = p;
}

void sti_texts_answer(sti_text_pending *texts)
{
    for (sti_text_pending *p = texts, *next; p; p = next) {
        sti_http_request *r = p->pending.http;
        next = p->next; /* the text may be gone once it is answered */
        sti_http_answer(r);
    }
}

static void answer_told(told *list)
{
    sti_texts_answer(list->first);
    list->first = NULL;
}

/* A connection that waits, for its head or for more, goes on. */
static void go_on(told *list, sti_text_pending *p)
{
    if (p->begun && !p->asleep)
        return;
    p->begun = true;
    p->asleep = false;
    tell(list, p);
}

void sti_text_free(sti_text_pending *p)
{
    sti_server *s = p->pending.server;
    if (p->pending.counted)
        s->in_flight_bytes -= p->pending.bytes;
    sti_text_request_fini(&p->request);
    sti_text_fini(&p->drawn);
    sti_free(p);
}

static void end_text(told *list, sti_text_pending *p, int status)
{
    p->ended = true;
    p->ended_s = sti_server_now();
    if (p->count == 0)
        p->pending.done_s = p->ended_s;
    if (p->pending.begun_s <= 0)
        p->pending.begun_s = p->ended_s;
    sti_pending_end(&p->pending, status);
    if (p->pending.http)
        go_on(list, p);
    else
        sti_text_free(p);
}

/* ---- before a step ---- */

static bool has_left(const sti_text_pending *p)
{
    return !p->pending.http || sti_http_left(p->pending.http);
}

static void drop_left(sti_texts *t, told *list)
{
    for (int i = 0; i < STI_TEXTS_MOST; i++) {
        sti_text_pending *p = t->text[i];
        if (!p || !has_left(p))
            continue;
        sti_text_batch_leave(t->use->batch, i);
        t->text[i] = NULL;
        end_text(list, p, 499);
    }
}

/* Those that wait are looked through: whoever has left, or cannot have a first token in
 * time any more.
 */
static void drop_late(sti_texts *t, told *list)
{
    const sti_server *s = t->server;
    const double soonest =
        sti_server_now() + sti_scheduler_least(s->scheduler, t->model, 1);
    for (sti_text_pending **link = &t->first; *link;) {
        sti_text_pending *p = *link;
        const bool left = has_left(p);
        if (left || (!s->desc.serve_late && soonest > p->pending.query.deadline_s)) {
            take_first(t, link);
            end_text(list, p, left ? 499 : 504);
        } else {
            link = &p->next;
        }
    }
}

static void join(sti_texts *t, told *list)
{
    while (t->first && takes(t)) {
        sti_text_pending *p = t->first;
        const sti_text_desc desc = {.tokens = p->request.tokens,
                                    .count = p->request.count,
                                    .draws = p->request.draws,
                                    .sampler = p->request.sampler,
                                    .user = p};
        const stint_status st = sti_text_batch_join(t->use->batch, &desc, &p->text);
        if (st == STINT_E_BUDGET)
            return;
        take_first(t, &t->first);
        if (st != STINT_OK) {
            end_text(list, p, st == STINT_E_MEMORY ? 503 : 500);
            continue;
        }
        p->pending.begun_s = sti_server_now();
        memcpy(p->version, t->use->version, sizeof p->version - 1);
        t->text[p->text] = p;
    }
}

void sti_texts_look(sti_texts *t)
{
    t->state = (sti_text_batch_state){.free_pages = t->use->desc.pages};
    if (t->use->batch)
        sti_text_batch_describe(t->use->batch, &t->state);
    for (int i = 0; i < t->state.texts; i++)
        t->left[i] = sti_text_batch_left(t->use->batch, i);
}

void sti_texts_came(sti_texts *t, bool in, sti_text_pending **told_out)
{
    told list = {NULL};
    sti_texts_look(t);
    while (!in && t->first) {
        sti_text_pending *p = t->first;
        take_first(t, &t->first);
        end_text(&list, p, 503);
    }
    if (in)
        sti_texts_offer(t);
    *told_out = list.first;
}

/* ---- after a step ---- */

/* A token's bytes as far as characters are whole; a text of JSON has no NUL. */
static void add_bytes(sti_text_pending *p, const char *bytes, size_t count, bool ends)
{
    sti_text piece = {0};
    sti_utf8_stream_add(&p->torn, bytes, count, &piece);
    if (ends)
        sti_utf8_stream_end(&p->torn, &piece);
    for (size_t i = 0; i < piece.length; i++) {
        if (piece.data[i])
            sti_text_add_bytes(&p->drawn, piece.data + i, 1);
        else
            sti_text_add(&p->drawn, "\xef\xbf\xbd");
    }
    p->drawn.failed = p->drawn.failed || piece.failed;
    sti_text_fini(&piece);
}

/* What of the text stays. True: it ends there. */
static bool look_for_stop(sti_text_pending *p)
{
    bool stopped;
    if (p->drawn.length == p->safe)
        return false;
    p->safe += sti_text_request_safe(&p->request, p->drawn.data + p->safe,
                                     p->drawn.length - p->safe, &stopped);
    if (stopped)
        p->finish = "stop";
    return stopped;
}

static void add_token(const sti_texts *t, sti_text_pending *p, const sti_text_drawn *d)
{
    size_t bytes = 1;
    const stint_text_model_facts *facts = &t->use->facts;
    const char *words = stint_tokenizer_token(facts->tokenizer, d->token, &bytes);
    if (d->token == facts->end_token) {
        p->finish = "stop";
        bytes = 0;
    }
    add_bytes(p, words ? words : "\xff", words ? bytes : 1, d->last || p->finish);
    const bool stopped = look_for_stop(p);
    if (!p->finish && d->last)
        p->finish = "length";
    if (p->finish && !stopped)
        p->safe = p->drawn.length;
}

static void take_token(sti_texts *t, const sti_text_drawn *d, told *list)
{
    sti_text_pending *p = d->user;
    if (p->count++ == 0)
        p->pending.done_s = sti_server_now();
    t->server->tokens[t->model]++;
    if (d->status == STINT_OK)
        add_token(t, p, d);
    const bool failed = d->status != STINT_OK || p->drawn.failed;
    if (!failed && !p->finish) {
        if (p->request.stream && p->safe > p->sent && p->pending.http)
            go_on(list, p);
        return;
    }
    if (!d->last)
        sti_text_batch_leave(t->use->batch, d->text);
    t->text[d->text] = NULL;
    end_text(list, p, failed ? 500 : 200);
}

/* ---- a step ---- */

void sti_texts_run(sti_worker *w, sti_serve_batch *batch)
{
    sti_server *s = w->server;
    sti_texts *t = batch->first->user;
    told list = {NULL};
    (void)pthread_mutex_lock(&s->lock);
    drop_left(t, &list);
    drop_late(t, &list);
    join(t, &list);
    sti_texts_look(t);
    const int rows = sti_text_batch_rows(t->use->batch);
    (void)pthread_mutex_unlock(&s->lock);
    answer_told(&list);
    const double begun = sti_server_now();
    const int drawn =
        rows == 0
            ? 0
            : sti_text_batch_step(t->use->batch, s->kind[w->size].threads, t->drawn);
    (void)pthread_mutex_lock(&s->lock);
    const double now = sti_server_now();
    for (int i = 0; i < drawn; i++)
        take_token(t, &t->drawn[i], &list);
    sti_texts_look(t);
    w->batches += rows > 0;
    w->images += rows;
    w->busy_s += now - begun;
    if (rows > 0) {
        batch->images = rows;
        sti_scheduler_done(s->scheduler, w->number, batch, now);
    } else {
        sti_scheduler_undone(s->scheduler, w->number, batch);
    }
    w->running = false;
    t->offered = false;
    sti_texts_offer(t);
    (void)pthread_mutex_unlock(&s->lock);
    answer_told(&list);
}

/* ---- now and then, and the end ---- */

void sti_texts_tidy(sti_server *s)
{
    for (int m = 0; m < s->tables.models; m++) {
        sti_texts *gone = NULL;
        told list = {NULL};
        (void)pthread_mutex_lock(&s->lock);
        if (s->texts[m] && !s->models.place[m].in)
            drop_late(s->texts[m], &list);
        if (s->texts[m])
            sti_texts_offer(s->texts[m]);
        if (s->leaving[m])
            sti_texts_offer(s->leaving[m]);
        if (s->leaving[m] && sti_texts_idle(s->leaving[m])) {
            gone = s->leaving[m];
            s->leaving[m] = NULL;
        }
        (void)pthread_mutex_unlock(&s->lock);
        answer_told(&list);
        if (gone)
            sti_served_text_destroy(gone->use);
        sti_texts_destroy(gone);
    }
}

static void give_up(sti_texts *t, told *list)
{
    for (int i = 0; i < STI_TEXTS_MOST; i++)
        if (t->text[i]) {
            end_text(list, t->text[i], 503);
            t->text[i] = NULL;
        }
    while (t->first) {
        sti_text_pending *p = t->first;
        take_first(t, &t->first);
        end_text(list, p, 503);
    }
}

void sti_texts_give_up(sti_server *s)
{
    told list = {NULL};
    (void)pthread_mutex_lock(&s->lock);
    for (int m = 0; m < s->tables.models; m++) {
        if (s->texts[m])
            give_up(s->texts[m], &list);
        if (s->leaving[m])
            give_up(s->leaving[m], &list);
    }
    (void)pthread_mutex_unlock(&s->lock);
    answer_told(&list);
}
