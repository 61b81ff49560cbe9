/* A server before it serves: options, models, memory, tables, the plan. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/fail.h"
#include "base/file.h"
#include "base/memory.h"
#include "base/pages.h"
#include "base/shown.h"
#include "base/team.h"
#include "base/units.h"
#include "serve/server.h"
#include "serve/traffic.h"

/* Requests in flight have this much where no budget says less. */
#define IN_FLIGHT_BYTES ((size_t)64 << 20)
#define IN_FLIGHT_LEAST ((size_t)1 << 20)
/* An encoded image may take as much as a body, and so much at least. */
#define DECODE_LEAST ((size_t)16 << 20)
/* Pages for keys and values beyond one context have this much where no budget says. */
#define PAGES_BYTES ((size_t)1 << 30)
/* The system keeps no shares that are much smaller. */
enum { SHARES_MOST = 100 };
/* A connection has the pool of libmicrohttpd, and its own. */
#define CONNECTION_BYTES ((size_t)34 << 10)

/* ---- options ---- */

static void fill_standards(sti_server *s)
{
    stint_serve_desc *d = &s->desc;
    d->listen = d->listen ? d->listen : "127.0.0.1:8000";
    d->cut = d->cut ? d->cut : "auto";
    d->batch_max = d->batch_max ? d->batch_max : 32;
    d->max_body_bytes = d->max_body_bytes ? d->max_body_bytes : (size_t)64 << 20;
    d->max_connections = d->max_connections ? d->max_connections : 1024;
    d->drain_s = d->drain_s > 0 ? d->drain_s : 30;
    s->options = (sti_serve_options){.cut = d->cut,
                                     .policy = d->policy,
                                     .admit = d->admit_all,
                                     .late = d->serve_late,
                                     .batch_max = d->batch_max,
                                     .batch_delay_s = d->batch_delay_s};
}

/* CPUs that this process may run on, in order. */
static stint_status choose_cpus(sti_server *s)
{
    uint8_t allowed[STI_CPUS_MOST / 8];
    int cpus = 0;
    stint_status st = sti_threads_choose(s->desc.threads, &s->cpus, NULL);
    if (st != STINT_OK)
        return st;
    sti_cpus_allowed(allowed);
    for (int c = 0; c < STI_CPUS_MOST && cpus < s->cpus; c++)
        if (allowed[c / 8] >> c % 8 & 1)
            s->cpu[cpus++] = c;
    if (cpus < s->cpus)
        return sti_fail(STINT_E_USAGE,
                        "%d threads: this process may run on %d CPUs, and each thread "
                        "of a partition has one of its own; -j %d",
                        s->cpus, cpus, cpus);
    return STINT_OK;
}

/* Shares of a CPU: 1, 2, 3, 4, 8, .. units, and as many as go on one. */
static void add_shares(sti_serve_tables *t, int room)
{
    for (int k = 1; k < room; k = k == 2 ? 3 : k == 3 ? 4 : 2 * k)
        t->size[t->sizes++] = k;
    t->size[t->sizes++] = room;
}

/* Partitions of 1, 2, 4, .. CPUs and of all, and of shares of one. */
static void lay_sizes(sti_server *s)
{
    sti_serve_tables *t = &s->tables;
    t->units = s->units;
    t->cpus = s->units > s->cpus ? s->cpus : 0;
    if (t->cpus)
        add_shares(t, s->units / s->cpus);
    for (int c = t->cpus && s->units % s->cpus == 0 ? 2 : 1; c < s->cpus; c *= 2)
        t->size[t->sizes++] = (c * s->units + s->cpus - 1) / s->cpus;
    if (t->size[t->sizes > 0 ? t->sizes - 1 : 0] < s->units)
        t->size[t->sizes++] = s->units;
    for (int k = 0; k < t->sizes; k++) {
        const int cpus = t->cpus ? sti_serve_size_cpus(t, t->size[k]) : t->size[k];
        s->kind[k] = (sti_partition_kind){
            .threads = cpus > 0 ? cpus : 1,
            .share = cpus > 0 ? 0 : (double)t->size[k] * s->cpus / s->units};
    }
}

static stint_status choose_units(sti_server *s)
{
    const stint_status st = choose_cpus(s);
    const int most = s->cpus <= STI_SERVE_UNITS / SHARES_MOST ? s->cpus * SHARES_MOST
                                                              : STI_SERVE_UNITS;
    if (st != STINT_OK)
        return st;
    s->units = s->desc.units ? s->desc.units : s->cpus;
    if (s->units < s->cpus || s->units > most)
        return sti_fail(STINT_E_USAGE,
                        "--units %d: %d to %d were wanted of %d CPUs; -j takes fewer "
                        "of these",
                        s->units, s->cpus, most, s->cpus);
    lay_sizes(s);
    s->tables.late =
        s->desc.quantile > 0 ? STI_SERVE_LATE_OF * (1 - s->desc.quantile) : 0;
    return STINT_OK;
}

/* ---- models ---- */

static bool has_control(const char *text, size_t length)
{
    for (size_t i = 0; i < length; i++)
        if ((unsigned char)text[i] < 0x20 || text[i] == 0x7f)
            return true;
    return false;
}

/* "NAME=PATH", or the folder's or the file's name. A path may have a "=" behind a "/".
 */
static stint_status split_model(const char *text, char *name, const char **path_out)
{
    const char *equal = strchr(text, '='), *slash = strchr(text, '/');
    char whole[4096];
    *path_out = text;
    if (equal && (!slash || equal < slash)) {
        *path_out = equal + 1;
        snprintf(whole, sizeof whole, "%.*s", (int)(equal - text), text);
    } else {
        snprintf(whole, sizeof whole, "%s", text);
    }
    size_t length = strlen(whole);
    while (length > 1 && whole[length - 1] == '/')
        whole[--length] = '\0';
    char *last = strrchr(whole, '/');
    if (last && strcmp(last, "/model.safetensors") == 0) {
        *last = '\0';
        last = strrchr(whole, '/');
    }
    const char *from = last ? last + 1 : whole;
    length = strlen(from);
    const char *dot = strstr(from, ".safetensors");
    if (dot && dot[12] == '\0')
        length = (size_t)(dot - from);
    if (length < 1 || length >= STI_SERVE_NAME || strcspn(from, "/?#%\"\\ ") < length ||
        has_control(from, length))
        return sti_fail(
            STINT_E_USAGE,
            "%s: a name of at most 63 letters without / ? # %% and blanks was "
            "wanted; give one as NAME=MODEL",
            sti_shown(text));
    snprintf(name, STI_SERVE_NAME, "%.*s", (int)length, from);
    return STINT_OK;
}

static stint_status open_model(sti_server *s, const char *text)
{
    sti_serve_tables *t = &s->tables;
    char name[STI_SERVE_NAME];
    const char *path;
    stint_status st = split_model(text, name, &path);
    if (st != STINT_OK)
        return st;
    if (sti_serve_find_model(t, name) >= 0)
        return sti_fail(STINT_E_USAGE,
                        "two models of the name %s; give them names as "
                        "NAME=MODEL",
                        name);
    const int m = t->models++;
    snprintf(t->model[m].name, STI_SERVE_NAME, "%s", name);
    STI_TRY(sti_served_open(path, name, s->desc.batch_max, s->kind, t->sizes,
                            s->desc.memory_bytes == 0, &s->model[m]));
    st = sti_serve_model_init(&t->model[m], t->sizes,
                              sti_served_batch_most(&s->model[m]));
    s->text_models += s->model[m].text != NULL;
out:
    return st;
}

static stint_status open_models(sti_server *s)
{
    stint_status st = STINT_OK;
    if (s->desc.model_count < 1 || s->desc.model_count > STI_SERVE_MODELS)
        return sti_fail(STINT_E_USAGE, "1 to %d models were wanted", STI_SERVE_MODELS);
    for (int i = 0; i < s->desc.model_count && st == STINT_OK; i++)
        st = open_model(s, s->desc.models[i]);
    for (int m = 0; m < s->tables.models; m++)
        s->tables.model[m].weight = 1.0 / s->tables.models;
    return st;
}

/* ---- deadlines ---- */

static stint_status read_sla_part(sti_server *s, char *part)
{
    char *equal = strchr(part, '=');
    double seconds;
    int m = -1;
    if (equal) {
        *equal = '\0';
        m = sti_serve_find_model(&s->tables, part);
        if (m < 0)
            return sti_fail(STINT_E_USAGE, "--sla: there is no model of the name %s",
                            sti_shown(part));
    }
    const stint_status st = sti_parse_time(equal ? equal + 1 : part, &seconds);
    if (st != STINT_OK)
        return sti_fail_context(st, "--sla");
    if (!(seconds > 0))
        return sti_fail(STINT_E_USAGE, "--sla: a time above 0 was wanted");
    for (int i = 0; i < s->tables.models; i++)
        if (m < 0 || m == i)
            s->tables.model[i].sla_s = seconds;
    return STINT_OK;
}

static stint_status read_sla(sti_server *s)
{
    char text[2048];
    stint_status st = STINT_OK;
    if (!s->desc.sla || strlen(s->desc.sla) >= sizeof text)
        return sti_fail(STINT_E_USAGE, "--sla: the time to an answer was wanted, 20ms "
                                       "for one");
    snprintf(text, sizeof text, "%s", s->desc.sla);
    for (char *part = text, *next; part && st == STINT_OK; part = next) {
        next = strchr(part, ',');
        if (next)
            *next++ = '\0';
        st = read_sla_part(s, part);
    }
    for (int m = 0; m < s->tables.models && st == STINT_OK; m++)
        if (!(s->tables.model[m].sla_s > 0))
            st = sti_fail(STINT_E_USAGE, "--sla: none is given for %s",
                          s->tables.model[m].name);
    return st;
}

/* ---- memory ---- */

/* What any cut may take: as many partitions as the smallest size allows. */
static size_t partition_bytes(const sti_server *s)
{
    size_t most = 0;
    for (int k = 0; k < s->tables.sizes; k++) {
        size_t bytes = 0;
        for (int m = 0; m < s->tables.models; m++) {
            const size_t own = sti_served_work_bytes(&s->model[m], k);
            bytes = own > bytes ? own : bytes;
        }
        bytes *= (size_t)(s->units / s->tables.size[k]);
        most = bytes > most ? bytes : most;
    }
    return most;
}

/* A prompt of as many of the longest tokens as the model sees, its tokens, and the JSON
 * that it is in, every byte of it escaped. */
static size_t prompt_bytes(const sti_served_text *text)
{
    const size_t bytes = (size_t)text->facts.context * text->longest;
    const int64_t tokens = stint_tokenizer_most(text->facts.tokenizer, bytes);
    return bytes * (2 + 2 * 6) + (size_t)tokens * sizeof(int32_t) + ((size_t)1 << 20);
}

/* A request as it is read: its numbers and its images, or its text. */
static size_t request_bytes(const sti_server *s)
{
    size_t most = 0;
    for (int m = 0; m < s->tables.models; m++) {
        const sti_served *served = &s->model[m];
        if (served->text) {
            const size_t prompt = prompt_bytes(served->text);
            most = prompt > most ? prompt : most;
            continue;
        }
        const size_t values =
            (size_t)(served->height * served->width * served->channels);
        const size_t bytes = (size_t)s->desc.batch_max * values * 2 * sizeof(float);
        most = bytes > most ? bytes : most;
    }
    return most;
}

/* The most that one request takes on its way. */
static size_t pending_bytes(const sti_server *s)
{
    size_t most = 0;
    for (int m = 0; m < s->tables.models; m++) {
        if (s->model[m].text)
            continue;
        const sti_infer_request largest = {.model = &s->model[m],
                                           .batch = s->desc.batch_max,
                                           .wanted = {true, true, true}};
        const size_t bytes = sti_infer_request_bytes(&largest);
        most = bytes > most ? bytes : most;
    }
    return most;
}

/* With less the largest request would never be taken. */
static size_t pending_least(const sti_server *s)
{
    const size_t own = pending_bytes(s);
    return own > IN_FLIGHT_LEAST ? own : IN_FLIGHT_LEAST;
}

/* What one request may ask for. */
static void set_limits(sti_server *s)
{
    const size_t body = s->desc.max_body_bytes;
    s->limits =
        (sti_infer_limits){.batch_most = s->desc.batch_max,
                           .decode_bytes = body > DECODE_LEAST ? body : DECODE_LEAST};
}

/* Weights, and what one run of a model takes, of the largest. */
static size_t reload_bytes(const sti_server *s)
{
    size_t most = 0;
    for (int m = 0; m < s->tables.models; m++) {
        const size_t bytes = sti_served_weight_bytes(&s->model[m]) +
                             sti_served_work_bytes(&s->model[m], 0);
        most = bytes > most ? bytes : most;
    }
    return most;
}

/* What each text model's pages may take beyond those of one context: of a budget a
 * third of what is left; the others are for a reload's pages, and for requests. */
static size_t pages_room(const sti_server *s, int texts)
{
    const size_t budget = s->desc.memory_bytes;
    size_t taken = s->account.total_bytes + s->desc.max_body_bytes + pending_least(s);
    if (!budget)
        return PAGES_BYTES;
    if (taken + reload_bytes(s) <= budget)
        taken += reload_bytes(s);
    return budget > taken ? (budget - taken) / 3 / (size_t)texts : 0;
}

/* Keys and values of all texts: pages for as many contexts as there may be texts, or as
 * the memory allows, and of one context at least. */
static stint_status plan_pages(sti_server *s)
{
    size_t bytes = 0;
    const int texts = s->text_models;
    const size_t room = texts ? pages_room(s, texts) : 0;
    stint_status st = STINT_OK;
    for (int m = 0; m < s->tables.models && st == STINT_OK; m++) {
        sti_served_text *text = s->model[m].text;
        if (!text)
            continue;
        const int64_t most = text->desc.texts * text->sizes.context_pages;
        const int64_t pages =
            text->sizes.context_pages + (int64_t)(room / text->sizes.page_bytes);
        const size_t before = text->sizes.total_bytes;
        st = sti_served_text_set_pages(text, pages < most ? pages : most);
        bytes += text->sizes.total_bytes - before;
    }
    if (texts && st == STINT_OK)
        sti_account_add(&s->account, "pages", "keys and values of more texts than one",
                        bytes);
    return st;
}

/* Weights that are loaded anew stand beside the old ones, and are run once. Where the
 * budget has no room for that, the server serves, but loads nothing. */
static void plan_reload(sti_server *s)
{
    sti_account *a = &s->account;
    const size_t most = reload_bytes(s);
    const size_t requests = s->desc.max_body_bytes + pending_least(s);
    s->reloads = !s->desc.memory_bytes ||
                 a->total_bytes + requests + most <= s->desc.memory_bytes;
    if (s->reloads)
        sti_account_add(a, "a reload", "new weights beside the old", most);
}

/* Weights of all models, or, where a budget has no room for them, of those that are
 * loaded at a time; then new weights beside the old still have theirs, if it is there.
 */
static void plan_weights(sti_server *s)
{
    sti_account *a = &s->account;
    const size_t budget = s->desc.memory_bytes;
    const size_t taken = a->total_bytes + s->desc.max_body_bytes + pending_least(s);
    const size_t left = budget > taken ? budget - taken : 0;
    const size_t rest = (size_t)s->tables.models * 2 * STI_PAGES_REST;
    const size_t reload = reload_bytes(s) + rest;
    size_t most = sti_models_plan(s, budget ? left : SIZE_MAX);
    if (s->models.on_demand)
        most = sti_models_plan(s, left >= 2 * reload ? left - reload
                                  : left > rest      ? left - rest
                                                     : 0);
    sti_account_add(a, "weights",
                    s->models.on_demand ? "of the models that are loaded at a time"
                                        : "of all models, once",
                    most);
    if (s->models.on_demand)
        sti_account_add(a, "left", "of models that are not loaded", rest);
}

/* What a budget leaves is for bodies that come in, one of the largest at least, and for
 * requests on their way. */
static void share_rest(sti_server *s)
{
    sti_account *a = &s->account;
    const size_t body = s->desc.max_body_bytes;
    const size_t least = pending_least(s);
    const size_t taken = a->total_bytes + body + least;
    const size_t left =
        s->desc.memory_bytes > taken ? (s->desc.memory_bytes - taken) / 2 : 0;
    const bool bound = s->desc.memory_bytes && left < IN_FLIGHT_BYTES;
    s->bodies_most = body + (bound ? left : IN_FLIGHT_BYTES);
    s->in_flight_most = least + (bound ? left : IN_FLIGHT_BYTES);
    sti_account_add(a, "bodies", "of requests that come in, together", s->bodies_most);
    sti_account_add(a, "on their way", "images and answers of requests",
                    s->in_flight_most);
}

static stint_status account(sti_server *s)
{
    static const char *const libraries[] = {
        "ld-", "libc.", "libm.", "libmicrohttpd.", "libgnutls.", NULL};
    const sti_account_process process = {.libraries = libraries,
                                         .apart_bytes = sti_alloc_now_bytes()};
    sti_account *a = &s->account;
    sti_account_add(a, "partitions", "what networks work in", partition_bytes(s));
    sti_account_add(a, "requests", "as they are read, the largest",
                    (size_t)(sti_readers_count(s) + 1) * request_bytes(s));
    set_limits(s);
    sti_account_add(a, "an image", "as it is decoded", s->limits.decode_bytes);
    sti_account_add(a, "connections", "what each reads into",
                    (size_t)(s->desc.max_connections + STI_HTTP_OVER) *
                        CONNECTION_BYTES);
    sti_account_add(a, "graphs", "networks of each batch and size",
                    sti_alloc_now_bytes());
    sti_account_add_process(a, &process, s->units + 1 + sti_readers_count(s));
    plan_weights(s);
    const stint_status st = plan_pages(s);
    if (st != STINT_OK)
        return st;
    plan_reload(s);
    share_rest(s);
    return sti_account_check(
        a, s->desc.memory_bytes,
        &(sti_account_advice){.fits = "--batch-max 8, --max-body 1M or "});
}

/* ---- tables ---- */

static stint_status expect_traffic(sti_server *s)
{
    sti_traffic traffic = {.rate_per_s = 0};
    char arrivals[4096];
    stint_status st;
    if (!s->desc.traffic) {
        for (int m = 0; m < s->tables.models; m++)
            for (int b = 0; b < s->tables.model[m].batch_most; b++)
                s->tables.model[m].share[b] = 1.0 / s->tables.model[m].batch_most;
        return STINT_OK;
    }
    snprintf(arrivals, sizeof arrivals, "trace:%s", s->desc.traffic);
    STI_TRY(sti_traffic_arrivals(arrivals, &traffic));
    for (int m = 0; m < s->tables.models; m++)
        sti_traffic_shares(&traffic, s->tables.model[m].batch_most,
                           s->tables.model[m].share);
out:
    sti_traffic_fini(&traffic);
    return st;
}

/* Times of another file in the place of measured ones: of the same sizes and models. */
static stint_status take_tables(sti_server *s)
{
    sti_serve_tables given;
    stint_status st = sti_serve_tables_read(s->desc.tables, &given);
    if (st != STINT_OK)
        return st;
    for (int i = 0; i < s->tables.models && st == STINT_OK; i++) {
        sti_serve_model *own = &s->tables.model[i];
        const int m = sti_serve_find_model(&given, own->name);
        if (given.units != s->units || given.cpus != s->tables.cpus ||
            given.sizes != s->tables.sizes || m < 0 ||
            given.model[m].batch_most < own->batch_most ||
            memcmp(given.size, s->tables.size, sizeof given.size) != 0) {
            st = sti_fail(STINT_E_INPUT,
                          "%s: %s on %d units with batches up to %d was wanted; "
                          "measure anew with --tables-out",
                          s->desc.tables, own->name, s->units, own->batch_most);
            break;
        }
        for (int k = 0; k < given.sizes; k++) {
            memcpy(own->p50 + k * own->batch_most, sti_serve_p50(&given.model[m], k),
                   (size_t)own->batch_most * sizeof(double));
            memcpy(own->p95 + k * own->batch_most, sti_serve_p95(&given.model[m], k),
                   (size_t)own->batch_most * sizeof(double));
        }
    }
    sti_serve_tables_fini(&given);
    return st;
}

static stint_status make_tables(sti_server *s)
{
    sti_text text = {0};
    stint_status st = STINT_OK;
    if (!s->desc.tables)
        sti_log(STINT_LOG_INFO, "measuring %d model%s on partitions of %d size%s",
                s->tables.models, sti_s(s->tables.models), s->tables.sizes,
                sti_s(s->tables.sizes));
    for (int m = 0; m < s->tables.models; m++) {
        STI_TRY(sti_models_load_now(s, m));
        if (!s->desc.tables)
            STI_TRY(sti_served_measure(&s->model[m], s->kind, s->cpu, s->tables.sizes,
                                       &s->tables.model[m]));
    }
    if (s->desc.tables)
        return take_tables(s);
    if (s->desc.tables_out) {
        sti_serve_tables_write(&s->tables, &text);
        st = text.failed ? STINT_E_MEMORY
                         : sti_file_write(s->desc.tables_out, text.data, text.length);
    }
out:
    sti_text_fini(&text);
    return st;
}

stint_status sti_server_prepare(sti_server *server, const stint_serve_desc *desc)
{
    stint_status st;
    *server = (sti_server){.desc = *desc};
    fill_standards(server);
    STI_TRY(choose_units(server));
    STI_TRY(open_models(server));
    STI_TRY(read_sla(server));
    STI_TRY(account(server));
    STI_TRY(expect_traffic(server));
    STI_TRY(make_tables(server));
    STI_TRY(sti_serve_plan_make(&server->options, &server->tables, &server->plan));
out:
    return st;
}
