#include "serve/load.h"

#include "base/fail.h"

#ifdef STINT_HAVE_CURL
#include <curl/curl.h>
#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/library.h"
#include "base/memory.h"
#include "base/rng.h"
#include "base/stop.h"
#include "base/text.h"
#include "serve/load_data.h"

/* Requests that may be under way; beyond them sending waits, and the wait counts. */
enum { LANES_MOST = 4096, IMAGE_MAX_BYTES = 1 << 26, END_BYTES = 512 };

/* The calls that we make. */
typedef struct curl_calls {
    CURLM *(*multi_init)(void);
    CURLMcode (*multi_cleanup)(CURLM *);
    CURLMcode (*multi_add)(CURLM *, CURL *);
    CURLMcode (*multi_remove)(CURLM *, CURL *);
    CURLMcode (*multi_perform)(CURLM *, int *);
    CURLMcode (*multi_poll)(CURLM *, struct curl_waitfd *, unsigned, int, int *);
    CURLMsg *(*multi_read)(CURLM *, int *);
    CURL *(*init)(void);
    void (*cleanup)(CURL *);
    CURLcode (*set)(CURL *, CURLoption, ...);
    CURLcode (*perform)(CURL *);
    CURLcode (*info)(CURL *, CURLINFO, ...);
    const char *(*text)(CURLcode);
    struct curl_slist *(*add_header)(struct curl_slist *, const char *);
    void (*free_headers)(struct curl_slist *);
} curl_calls;

/* A handle that is used again and again, so that its connection is. */
typedef struct lane {
    CURL *handle;
    double sent_s; /* when it was due */
    struct curl_slist *headers;
    const sti_text *head; /* the body: a head, and bytes of noise behind it */
    sti_text own;         /* the body where it is of data */
    int64_t first_ns;     /* when the answer began to come; 0: not yet */
    char end[END_BYTES];  /* the last bytes of it */
    size_t end_bytes;
    const uint8_t *noise;
    size_t noise_bytes, at; /* at: of the body, what is sent already */
    struct lane *next;      /* of those that are free */
} lane;

typedef struct client {
    const sti_load_desc *desc;
    curl_calls curl;
    CURLM *multi;
    sti_serve_result *out;
    lane *lanes, *free;
    int lane_count, busy;
    char url[1024], model[STI_SERVE_NAME];
    double sla_s;
    bool texts;
    sti_load_data data;
    int64_t values; /* of an image */
    uint8_t *body;  /* noise, for the images of all requests */
    sti_text *head; /* [batch_most]: JSON before so many images */
    int batch_most;
    double *latency_s; /* [room] of those served */
    int64_t room;
    char failure[160]; /* the first answer that was none */
} client;

static stint_status load_curl(curl_calls *c)
{
    const sti_library_call calls[] = {
        {"curl_multi_init", &c->multi_init},
        {"curl_multi_cleanup", &c->multi_cleanup},
        {"curl_multi_add_handle", &c->multi_add},
        {"curl_multi_remove_handle", &c->multi_remove},
        {"curl_multi_perform", &c->multi_perform},
        {"curl_multi_poll", &c->multi_poll},
        {"curl_multi_info_read", &c->multi_read},
        {"curl_easy_init", &c->init},
        {"curl_easy_cleanup", &c->cleanup},
        {"curl_easy_setopt", &c->set},
        {"curl_easy_perform", &c->perform},
        {"curl_easy_getinfo", &c->info},
        {"curl_easy_strerror", &c->text},
        {"curl_slist_append", &c->add_header},
        {"curl_slist_free_all", &c->free_headers},
    };
    return sti_library_load(
        "libcurl.so.4",
        "libcurl sends the queries and is not installed (on Debian: "
        "apt install libcurl4)",
        calls, sizeof calls / sizeof *calls);
}

/* ---- the model ---- */

static size_t keep_text(char *bytes, size_t each, size_t count, void *user)
{
    sti_text *text = user;
    if (text->length + each * count > (1 << 20))
        return 0;
    sti_text_add_bytes(text, bytes, each * count);
    return each * count;
}

/* When an answer begins, and its last bytes, are kept. */
static size_t watch_text(char *bytes, size_t each, size_t count, void *user)
{
    lane *l = user;
    const size_t all = each * count, take = all < END_BYTES ? all : END_BYTES;
    const size_t keep =
        l->end_bytes + take > END_BYTES ? END_BYTES - take : l->end_bytes;
    if (l->first_ns == 0)
        l->first_ns = sti_clock_ns();
    memmove(l->end, l->end + l->end_bytes - keep, keep);
    memcpy(l->end + keep, bytes + all - take, take);
    l->end_bytes = keep + take;
    return all;
}

static stint_status get(client *c, const char *path, json_t **json_out)
{
    char url[1200];
    sti_text text = {0};
    stint_status st = STINT_OK;
    CURL *handle = c->curl.init();
    if (!handle)
        return sti_fail(STINT_E_MEMORY, "no memory for a request");
    snprintf(url, sizeof url, "%s%s", c->desc->url, path);
    (void)c->curl.set(handle, CURLOPT_URL, url);
    (void)c->curl.set(handle, CURLOPT_NOSIGNAL, 1L);
    (void)c->curl.set(handle, CURLOPT_FAILONERROR, 1L);
    (void)c->curl.set(handle, CURLOPT_TIMEOUT, 20L);
    (void)c->curl.set(handle, CURLOPT_WRITEFUNCTION, keep_text);
    (void)c->curl.set(handle, CURLOPT_WRITEDATA, &text);
    const CURLcode code = c->curl.perform(handle);
    if (code != CURLE_OK)
        st = sti_fail(STINT_E_PEER, "%.200s: %s", url, c->curl.text(code));
    else if (!(*json_out = json_loadb(text.data, text.length, 0, NULL)))
        st = sti_fail(STINT_E_PEER, "%.200s: no JSON", url);
    c->curl.cleanup(handle);
    sti_text_fini(&text);
    return st;
}

static stint_status choose_model(client *c)
{
    json_t *list = NULL;
    if (c->desc->model) {
        snprintf(c->model, sizeof c->model, "%s", c->desc->model);
        return STINT_OK;
    }
    stint_status st = get(c, "/v2/models", &list);
    if (st != STINT_OK)
        return st;
    const json_t *models = json_object_get(list, "models");
    const char *name = json_string_value(json_array_get(models, 0));
    if (json_array_size(models) != 1 || !name)
        st = sti_fail(STINT_E_USAGE, "--model: the server has %zu models; name one",
                      json_array_size(models));
    else
        snprintf(c->model, sizeof c->model, "%s", name);
    json_decref(list);
    return st;
}

/* Shape, SLA and largest batch, as the server says. */
static void read_meta(client *c, const json_t *meta, int64_t shape_out[3])
{
    const json_t *input = json_array_get(json_object_get(meta, "inputs"), 0);
    const char *name = json_string_value(json_object_get(input, "name"));
    const json_t *shape = json_object_get(input, "shape");
    const json_t *parameters = json_object_get(meta, "parameters");
    c->sla_s = json_number_value(json_object_get(parameters, "sla_s"));
    c->batch_most = (int)json_integer_value(json_object_get(parameters, "batch_max"));
    c->values = 1;
    c->texts = name && strcmp(name, "text_input") == 0;
    if (c->texts)
        c->batch_most = STI_SERVE_BATCH; /* tokens */
    for (int i = 0; i < 3 && !c->texts; i++) {
        shape_out[i] = json_integer_value(json_array_get(shape, (size_t)i + 1));
        c->values = shape_out[i] < 1 || c->values > IMAGE_MAX_BYTES
                        ? IMAGE_MAX_BYTES + 1
                        : c->values * shape_out[i];
    }
}

static stint_status ask_model(client *c, int64_t shape_out[3])
{
    char path[128];
    json_t *meta = NULL;
    stint_status st = choose_model(c);
    if (st != STINT_OK)
        return st;
    snprintf(path, sizeof path, "/v2/models/%s", c->model);
    if ((st = get(c, path, &meta)) != STINT_OK)
        return st;
    read_meta(c, meta, shape_out);
    json_decref(meta);
    if (c->values > IMAGE_MAX_BYTES || c->batch_most < 1 ||
        c->batch_most > STI_SERVE_BATCH || !(c->sla_s > 0))
        return sti_fail(STINT_E_PEER, "%s: no metadata of a stint server", c->model);
    return STINT_OK;
}

/* The JSON of each batch, so that a request is two copies of bytes. */
static stint_status make_bodies(client *c, const int64_t shape[3])
{
    uint32_t word[4];
    const int64_t bytes = c->values * c->batch_most;
    c->head = sti_alloc_array(c->batch_most, sizeof *c->head, "requests");
    c->body = sti_alloc_array(bytes + 1024, 1, "requests");
    if (!c->head || !c->body)
        return STINT_E_MEMORY;
    for (int64_t i = 0; i < bytes; i++) {
        if (i % 4 == 0)
            sti_random4(1, STI_STREAM_SERVE, (uint64_t)i, 3, word);
        c->body[i] = (uint8_t)(word[i % 4] >> 24);
    }
    for (int b = 1; b <= c->batch_most; b++)
        sti_text_printf(
            &c->head[b - 1],
            "{\"inputs\":[{\"name\":\"image\",\"datatype\":\"UINT8\",\"shape\":[%d,%"
            "lld,"
            "%lld,%lld],\"parameters\":{\"binary_data_size\":%lld}}],\"parameters\":{"
            "\"binary_data_output\":true}}",
            b, (long long)shape[0], (long long)shape[1], (long long)shape[2],
            (long long)(b * c->values));
    return STINT_OK;
}

/* ---- requests ---- */

/* The body comes from where all requests have it, so that thousands that are under way
 * take no memory. */
static size_t read_body(char *out, size_t each, size_t count, void *user)
{
    lane *l = user;
    const size_t head = l->head->length, all = head + l->noise_bytes;
    size_t room = each * count, done = 0;
    while (room > 0 && l->at < all) {
        const size_t end = l->at < head ? head : all;
        const size_t bytes = end - l->at < room ? end - l->at : room;
        memcpy(out + done,
               l->at < head ? l->head->data + l->at
                            : (const char *)l->noise + (l->at - head),
               bytes);
        l->at += bytes;
        done += bytes;
        room -= bytes;
    }
    return done;
}

/* A connection that was kept alive may have been closed: the body is sent again. */
static int seek_body(void *user, curl_off_t offset, int origin)
{
    lane *l = user;
    if (origin != SEEK_SET || offset < 0)
        return CURL_SEEKFUNC_FAIL;
    l->at = (size_t)offset;
    return CURL_SEEKFUNC_OK;
}

static lane *take_lane(client *c)
{
    lane *l = c->free;
    if (l) {
        c->free = l->next;
        return l;
    }
    if (c->lane_count == LANES_MOST)
        return NULL;
    l = &c->lanes[c->lane_count];
    l->handle = c->curl.init();
    if (!l->handle)
        return NULL;
    c->lane_count++;
    (void)c->curl.set(l->handle, CURLOPT_URL, c->url);
    (void)c->curl.set(l->handle, CURLOPT_NOSIGNAL, 1L);
    (void)c->curl.set(l->handle, CURLOPT_TIMEOUT, 60L);
    (void)c->curl.set(l->handle, CURLOPT_TCP_NODELAY, 1L);
    (void)c->curl.set(l->handle, CURLOPT_WRITEFUNCTION, watch_text);
    (void)c->curl.set(l->handle, CURLOPT_WRITEDATA, l);
    (void)c->curl.set(l->handle, CURLOPT_PRIVATE, l);
    if (c->desc->raw)
        return l;
    (void)c->curl.set(l->handle, CURLOPT_POST, 1L);
    (void)c->curl.set(l->handle, CURLOPT_READFUNCTION, read_body);
    (void)c->curl.set(l->handle, CURLOPT_READDATA, l);
    (void)c->curl.set(l->handle, CURLOPT_SEEKFUNCTION, seek_body);
    (void)c->curl.set(l->handle, CURLOPT_SEEKDATA, l);
    return l;
}

static void set_body(client *c, lane *l, int batch)
{
    char line[80];
    size_t head_bytes;
    if (c->data.count > 0) {
        sti_load_data_body(&c->data, c->out->sent, batch, &l->own, &head_bytes);
        l->head = &l->own;
        l->noise_bytes = 0;
    } else {
        l->head = &c->head[batch - 1];
        head_bytes = l->head->length;
        l->noise = c->body;
        l->noise_bytes = (size_t)(batch * c->values);
    }
    l->at = 0;
    c->curl.free_headers(l->headers);
    l->headers = c->curl.add_header(NULL, "Expect:");
    l->headers = c->curl.add_header(
        l->headers, c->texts ? "Content-Type: application/json"
                             : "Content-Type: application/octet-stream");
    snprintf(line, sizeof line, "Inference-Header-Content-Length: %zu", head_bytes);
    if (!c->texts)
        l->headers = c->curl.add_header(l->headers, line);
    (void)c->curl.set(l->handle, CURLOPT_HTTPHEADER, l->headers);
    (void)c->curl.set(l->handle, CURLOPT_POSTFIELDSIZE,
                      (long)(l->head->length + l->noise_bytes));
}

static bool send_one(client *c, double due_s, int batch)
{
    lane *l = take_lane(c);
    if (!l)
        return false;
    l->sent_s = due_s;
    l->first_ns = 0;
    l->end_bytes = 0;
    if (!c->desc->raw)
        set_body(c, l, batch);
    (void)c->curl.multi_add(c->multi, l->handle);
    c->busy++;
    c->out->sent++;
    return true;
}

static stint_status keep(client *c, double due_s, double latency_s)
{
    if (c->desc->times && !sti_answer_times_add(c->desc->times, due_s, latency_s))
        return STINT_E_MEMORY;
    if (c->out->served == c->room) {
        const int64_t room = c->room ? 2 * c->room : 4096;
        double *more =
            sti_realloc(c->latency_s, (size_t)room * sizeof *more, "latencies");
        if (!more)
            return STINT_E_MEMORY;
        c->latency_s = more;
        c->room = room;
    }
    c->latency_s[c->out->served++] = latency_s;
    c->out->in_time += c->desc->raw || latency_s <= c->sla_s;
    return STINT_OK;
}

/* A stream that was broken off began with 200, too. */
static bool is_whole(const client *c, const lane *l)
{
    char end[END_BYTES + 1];
    memcpy(end, l->end, l->end_bytes);
    end[l->end_bytes] = '\0';
    return !c->texts || strstr(end, "\"done\":true") != NULL;
}

static stint_status take_answer(client *c, const CURLMsg *message, int64_t begin_ns)
{
    double now = sti_seconds_since(begin_ns);
    char *user = NULL;
    long status = 0;
    const CURLcode code = message->data.result;
    CURL *handle = message->easy_handle;
    (void)c->curl.info(handle, CURLINFO_PRIVATE, &user);
    (void)c->curl.info(handle, CURLINFO_RESPONSE_CODE, &status);
    lane *l = (void *)user;
    (void)c->curl.multi_remove(c->multi, handle);
    l->next = c->free;
    c->free = l;
    c->busy--;
    if (c->texts && l->first_ns)
        now = (double)(l->first_ns - begin_ns) * 1e-9;
    if (code == CURLE_OK && status == 200 && is_whole(c, l))
        return keep(c, l->sent_s, now - l->sent_s);
    c->out->rejected += code == CURLE_OK && (status == 429 || status == 503);
    c->out->late += code == CURLE_OK && status == 504;
    if (code == CURLE_OK && (status == 429 || status == 503 || status == 504))
        return STINT_OK;
    c->out->failed++;
    if (!*c->failure && code != CURLE_OK)
        snprintf(c->failure, sizeof c->failure, "%s", c->curl.text(code));
    else if (!*c->failure)
        snprintf(c->failure, sizeof c->failure, "status %ld", status);
    return STINT_OK;
}

static stint_status take_answers(client *c, int64_t begin_ns)
{
    stint_status st = STINT_OK;
    int left, running;
    (void)c->curl.multi_perform(c->multi, &running);
    for (CURLMsg *m; st == STINT_OK && (m = c->curl.multi_read(c->multi, &left));)
        if (m->msg == CURLMSG_DONE)
            st = take_answer(c, m, begin_ns);
    return st;
}

/* ---- the run ---- */

static bool next_query(const client *c, int64_t number, double before, double *at,
                       int *batch)
{
    const sti_load_desc *d = c->desc;
    if ((d->queries && number >= d->queries) ||
        !sti_traffic_next(d->traffic, number, before, at, batch))
        return false;
    if (!c->desc->raw && *batch > c->batch_most)
        *batch = c->batch_most;
    return d->queries || d->traffic->count || *at <= d->duration_s;
}

static stint_status run(client *c)
{
    stint_status st = STINT_OK;
    int batch = 1, ready;
    double at = 0;
    const int64_t begin = sti_clock_ns();
    bool more = next_query(c, 0, 0, &at, &batch);
    for (int64_t number = 0; st == STINT_OK && (more || c->busy > 0);) {
        while (more && at <= sti_seconds_since(begin) && send_one(c, at, batch))
            more = next_query(c, ++number, at, &at, &batch);
        if ((st = take_answers(c, begin)) != STINT_OK)
            break;
        const double wait = more ? at - sti_seconds_since(begin) : 1;
        /* poll counts in milliseconds; what is due sooner is waited for by looking. */
        if (wait > 0.002)
            (void)c->curl.multi_poll(c->multi, NULL, 0,
                                     (int)(1e3 * fmin(wait - 0.001, 0.1)), &ready);
        st = sti_stop_asked();
    }
    c->out->seconds = sti_seconds_since(begin);
    return st;
}

static stint_status prepare(client *c)
{
    int64_t shape[3];
    stint_status st;
    STI_TRY(load_curl(&c->curl));
    c->lanes = sti_alloc_array(LANES_MOST, sizeof *c->lanes, "requests");
    c->multi = c->curl.multi_init();
    if (!c->lanes || !c->multi)
        return sti_fail(STINT_E_MEMORY, "no memory for requests");
    if (c->desc->raw) {
        snprintf(c->url, sizeof c->url, "%s%s", c->desc->url, c->desc->raw);
        return STINT_OK;
    }
    STI_TRY(ask_model(c, shape));
    c->out->sla_s = c->sla_s;
    if (c->desc->data)
        STI_TRY(sti_load_data_read(c->desc->data, c->texts, &c->data));
    else if (c->texts)
        STI_TRY(sti_fail(STINT_E_USAGE,
                         "--data: %s goes on with texts; a file with a "
                         "prompt a line was wanted",
                         c->model));
    else
        STI_TRY(make_bodies(c, shape));
    snprintf(c->url, sizeof c->url, "%s/v2/models/%s/%s", c->desc->url, c->model,
             c->texts ? "generate_stream" : "infer");
out:
    return st;
}

static void client_fini(client *c)
{
    for (int i = 0; i < c->lane_count; i++) {
        (void)c->curl.multi_remove(c->multi, c->lanes[i].handle);
        c->curl.cleanup(c->lanes[i].handle);
        c->curl.free_headers(c->lanes[i].headers);
        sti_text_fini(&c->lanes[i].own);
    }
    for (int b = 0; c->head && b < c->batch_most; b++)
        sti_text_fini(&c->head[b]);
    if (c->multi)
        (void)c->curl.multi_cleanup(c->multi);
    sti_free(c->head);
    sti_free(c->body);
    sti_free(c->lanes);
    sti_free(c->latency_s);
    sti_load_data_fini(&c->data);
}

stint_status sti_serve_load(const sti_load_desc *desc, sti_serve_result *result_out)
{
    sti_serve_result *out = result_out;
    *out = (sti_serve_result){.wait_mean_s = (double)NAN};
    client c = {.desc = desc, .out = out};
    stint_status st = prepare(&c);
    if (st == STINT_OK)
        st = run(&c);
    if (st == STINT_OK) {
        sti_serve_quantiles(c.latency_s, out->served, out);
        out->violations =
            out->sent ? (double)(out->sent - out->in_time) / (double)out->sent : 0;
        if (out->failed > 0)
            sti_log(STINT_LOG_WARNING, "the first failure: %s", c.failure);
    }
    client_fini(&c);
    return st;
}

#else

stint_status sti_serve_load(const sti_load_desc *desc, sti_serve_result *result_out)
{
    (void)desc;
    (void)result_out;
    return sti_fail(STINT_E_UNSUPPORTED, "this build sends no queries; install "
                                         "libcurl4-openssl-dev and build again");
}

#endif
