#include "serve/http.h"

#include "base/fail.h"

#ifdef STINT_HAVE_MICROHTTPD
#include <errno.h>
#include <microhttpd.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>

#include "base/clock.h"
#include "base/library.h"
#include "base/memory.h"
#include "base/number.h"
#include "serve/http_listen.h"

enum {
    STREAM_BLOCK = 4096, /* bytes of a stream that are asked for at once */
    OVER_IDLE_S = 2,
    FEWER = 16,      /* connections than there were, for memory to be given back */
    TIDY_S = 1,      /* at most so often */
    OTHER_FILES = 64 /* that a server has open */
};

/* The calls that we make. */
typedef struct mhd_calls {
    struct MHD_Daemon *(*start)(unsigned, uint16_t, MHD_AcceptPolicyCallback, void *,
                                MHD_AccessHandlerCallback, void *, ...);
    void (*stop)(struct MHD_Daemon *);
    MHD_socket (*quiesce)(struct MHD_Daemon *);
    struct MHD_Response *(*response)(size_t, void *, enum MHD_ResponseMemoryMode);
    struct MHD_Response *(*stream)(uint64_t, size_t, MHD_ContentReaderCallback, void *,
                                   MHD_ContentReaderFreeCallback);
    enum MHD_Result (*header)(struct MHD_Response *, const char *, const char *);
    enum MHD_Result (*queue)(struct MHD_Connection *, unsigned, struct MHD_Response *);
    void (*destroy)(struct MHD_Response *);
    void (*suspend)(struct MHD_Connection *);
    void (*resume)(struct MHD_Connection *);
    const char *(*lookup)(struct MHD_Connection *, enum MHD_ValueKind, const char *);
    const union MHD_ConnectionInfo *(*info)(struct MHD_Connection *,
                                            enum MHD_ConnectionInfoType, ...);
    enum MHD_Result (*set)(struct MHD_Connection *, enum MHD_CONNECTION_OPTION, ...);
} mhd_calls;

struct sti_http {
    mhd_calls mhd;
    sti_http_desc desc;
    sti_http_listener listener;
    struct MHD_Daemon *daemon;
    atomic_bool quiet; /* no new connections: the listening socket is ours again */
    atomic_size_t bodies_bytes; /* that are held now */
    atomic_llong open;          /* handed over and not over */
    atomic_int connections;     /* counted by the connections' thread */
    atomic_int most;            /* of them, since memory was given back */
    int64_t tidied_ns;          /* when that was */
};

/* What a request is to this file. */
typedef struct exchange {
    sti_http_request request;
    sti_http *http;
    struct MHD_Connection *connection;
    size_t capacity;
    bool handed, waits;
    bool over; /* its connection is one too many */
} exchange;

static stint_status load_mhd(mhd_calls *m)
{
    const sti_library_call calls[] = {{"MHD_start_daemon", &m->start},
                                      {"MHD_stop_daemon", &m->stop},
                                      {"MHD_quiesce_daemon", &m->quiesce},
                                      {"MHD_create_response_from_buffer", &m->response},
                                      {"MHD_create_response_from_callback", &m->stream},
                                      {"MHD_add_response_header", &m->header},
                                      {"MHD_queue_response", &m->queue},
                                      {"MHD_destroy_response", &m->destroy},
                                      {"MHD_suspend_connection", &m->suspend},
                                      {"MHD_resume_connection", &m->resume},
                                      {"MHD_lookup_connection_value", &m->lookup},
                                      {"MHD_get_connection_info", &m->info},
                                      {"MHD_set_connection_option", &m->set}};
    return sti_library_load(
        "libmicrohttpd.so.12",
        "libmicrohttpd serves HTTP and is not installed (on Debian: "
        "apt install libmicrohttpd12)",
        calls, sizeof calls / sizeof *calls);
}

/* ---- answers ---- */

static ssize_t read_stream(void *user, uint64_t at, char *out, size_t room)
{
    exchange *e = user;
    (void)at;
    const int64_t count =
        e->http->desc.more(e->http->desc.user, &e->request, out, room);
    return count < 0 ? MHD_CONTENT_READER_END_OF_STREAM : (ssize_t)count;
}

/* The exchange outlives it. */
static struct MHD_Response *make_response(exchange *e)
{
    static char nothing[1];
    const mhd_calls *m = &e->http->mhd;
    const sti_text *answer = &e->request.answer;
    if (e->request.streams)
        return m->stream(MHD_SIZE_UNKNOWN, STREAM_BLOCK, read_stream, e, NULL);
    return m->response(answer->length, answer->data ? answer->data : nothing,
                       MHD_RESPMEM_PERSISTENT);
}

static enum MHD_Result send_answer(exchange *e)
{
    const mhd_calls *m = &e->http->mhd;
    sti_http_request *r = &e->request;
    char number[32];
    struct MHD_Response *response = make_response(e);
    if (!response)
        return MHD_NO;
    (void)m->header(response, "Content-Type", r->type ? r->type : "application/json");
    if (*r->timing)
        (void)m->header(response, "Server-Timing", r->timing);
    if (r->retry_after_s > 0) {
        snprintf(number, sizeof number, "%d", r->retry_after_s);
        (void)m->header(response, "Retry-After", number);
    }
    if (r->refresh_s > 0) {
        snprintf(number, sizeof number, "%d", r->refresh_s);
        (void)m->header(response, "Refresh", number);
    }
    if (r->header_bytes > 0) {
        snprintf(number, sizeof number, "%zu", r->header_bytes);
        (void)m->header(response, "Inference-Header-Content-Length", number);
    }
    if (e->http->quiet || e->over) /* whoever asks again is to find another server */
        (void)m->header(response, "Connection", "close");
    const enum MHD_Result sent = m->queue(e->connection, (unsigned)r->status, response);
    m->destroy(response);
    return sent;
}

void sti_http_wait(sti_http_request *request)
{
    exchange *e = request->http;
    e->waits = true;
    e->http->mhd.suspend(e->connection);
}

void sti_http_answer(sti_http_request *request)
{
    exchange *e = request->http;
    e->http->mhd.resume(e->connection);
}

void sti_http_sleep(sti_http_request *request)
{
    exchange *e = request->http;
    e->http->mhd.suspend(e->connection);
}

bool sti_http_left(const sti_http_request *request)
{
    const exchange *e = request->http;
    const union MHD_ConnectionInfo *info =
        e->http->mhd.info(e->connection, MHD_CONNECTION_INFO_CONNECTION_FD);
    char byte;
    if (!info)
        return false;
    const ssize_t count = recv(info->connect_fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT);
    return count == 0 || (count < 0 && errno == ECONNRESET);
}

const char *sti_http_header(const sti_http_request *request, const char *name)
{
    const exchange *e = request->http;
    return e->http->mhd.lookup(e->connection, MHD_HEADER_KIND, name);
}

/* ---- requests ---- */

/* A body that is refused is read to its end all the same, for an answer before that
 * would be lost with the connection. */
static void refuse(exchange *e, int status, const char *reason)
{
    e->request.refused = status;
    e->request.reason = reason;
    sti_http_drop_body(&e->request);
}

static exchange *begin(sti_http *http, struct MHD_Connection *connection)
{
    const union MHD_ConnectionInfo *info =
        http->mhd.info(connection, MHD_CONNECTION_INFO_SOCKET_CONTEXT);
    exchange *e = sti_alloc(sizeof *e, "request");
    if (!e)
        return NULL;
    e->http = http;
    e->connection = connection;
    e->request.http = e;
    e->request.arrival_ns = sti_clock_ns();
    e->over = info && info->socket_context;
    if (e->over)
        refuse(e, 503, "too many connections are open (--max-connections); try later");
    return e;
}

void sti_http_drop_body(sti_http_request *request)
{
    exchange *e = request->http;
    atomic_fetch_sub(&e->http->bodies_bytes, request->body_bytes);
    sti_free(request->body);
    request->body = NULL;
    request->body_bytes = e->capacity = 0;
}

/* As long as the body says that it is, if it says so: pages that do not come cost
 * nothing, and none are copied. */
static size_t announced(const exchange *e)
{
    const char *text = sti_http_header(&e->request, "Content-Length");
    int64_t n = 0;
    return text && sti_digits_read(text, text + strlen(text), INT64_MAX / 4, &n)
               ? (size_t)n
               : 0;
}

static bool make_room(exchange *e, size_t bytes)
{
    const size_t most = e->http->desc.max_body_bytes;
    size_t room = 2 * bytes + 4096;
    if (bytes <= e->capacity)
        return true;
    if (e->capacity == 0 && announced(e) + 1 > room)
        room = announced(e) + 1;
    const size_t capacity = room < most ? room : most + 1;
    char *more = sti_realloc(e->request.body, capacity, "body of a request");
    if (!more)
        return false;
    e->request.body = more;
    e->capacity = capacity;
    return true;
}

/* A part of the body. */
static void take_body(exchange *e, const char *bytes, size_t count)
{
    sti_http_request *r = &e->request;
    sti_http *http = e->http;
    if (r->refused)
        return;
    if (count > http->desc.max_body_bytes - r->body_bytes) {
        refuse(e, 413, NULL);
        return;
    }
    if (count > http->desc.bodies_most_bytes - atomic_load(&http->bodies_bytes) ||
        !make_room(e, r->body_bytes + count + 1)) {
        refuse(e, 503, "too many bodies are read at once; try later");
        return;
    }
    atomic_fetch_add(&http->bodies_bytes, count);
    memcpy(r->body + r->body_bytes, bytes, count);
    r->body_bytes += count;
    r->body[r->body_bytes] = '\0';
}

static enum MHD_Result access_handler(void *user, struct MHD_Connection *connection,
                                      const char *url, const char *method,
                                      const char *version, const char *bytes,
                                      size_t *count, void **state)
{
    sti_http *http = user;
    exchange *e = *state;
    (void)version;
    if (!e) {
        *state = e = begin(http, connection);
        return e ? MHD_YES : MHD_NO;
    }
    if (*count > 0) {
        take_body(e, bytes, *count);
        *count = 0;
        return MHD_YES;
    }
    if (!e->handed) {
        e->handed = true;
        atomic_fetch_add(&http->open, 1);
        e->request.method = method;
        e->request.path = url;
        http->desc.handle(http->desc.user, &e->request);
        if (e->waits)
            return MHD_YES;
    } else {
        http->desc.finish(http->desc.user, &e->request);
    }
    return send_answer(e);
}

static void completed(void *user, struct MHD_Connection *connection, void **state,
                      enum MHD_RequestTerminationCode code)
{
    sti_http *http = user;
    exchange *e = *state;
    (void)connection;
    (void)code;
    if (!e)
        return;
    http->desc.forget(http->desc.user, &e->request);
    sti_http_drop_body(&e->request);
    sti_text_fini(&e->request.answer);
    if (e->handed)
        atomic_fetch_sub(&http->open, 1);
    sti_free(e);
    *state = NULL;
}

/* One too many keeps its place, marked, for as long as it takes to tell it so. Beyond
 * those connections wait until the system has them accepted. */
static void connection_changed(void *user, struct MHD_Connection *connection,
                               void **context, enum MHD_ConnectionNotificationCode what)
{
    sti_http *http = user;
    if (what == MHD_CONNECTION_NOTIFY_CLOSED) {
        atomic_fetch_sub(&http->connections, 1);
        return;
    }
    const int now = atomic_fetch_add(&http->connections, 1) + 1;
    if (now > atomic_load(&http->most))
        atomic_store(&http->most, now);
    if (now <= http->desc.max_connections)
        return;
    *context = http;
    (void)http->mhd.set(connection, MHD_CONNECTION_OPTION_TIMEOUT,
                        (unsigned)OVER_IDLE_S);
}

/* ---- life ---- */

/* The bound on open files that a process begins with is often below what it may have.
 */
static stint_status allow_files(int connections)
{
    struct rlimit limit;
    const rlim_t wanted = (rlim_t)(connections + STI_HTTP_OVER + OTHER_FILES);
    if (getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur >= wanted)
        return STINT_OK;
    if (limit.rlim_max != RLIM_INFINITY && limit.rlim_max < wanted)
        return sti_fail(
            STINT_E_USAGE,
            "--max-connections %d: this process may open %llu files "
            "(ulimit -Hn); at most %llu connections",
            connections, (unsigned long long)limit.rlim_max,
            limit.rlim_max > STI_HTTP_OVER + OTHER_FILES
                ? (unsigned long long)(limit.rlim_max - STI_HTTP_OVER - OTHER_FILES)
                : 0ULL);
    limit.rlim_cur = wanted;
    if (setrlimit(RLIMIT_NOFILE, &limit) != 0)
        return sti_fail_errno("%llu open files", (unsigned long long)wanted);
    return STINT_OK;
}

stint_status sti_http_start(const sti_http_desc *desc, sti_http **http_out)
{
    stint_status st = STINT_E_MEMORY;
    sti_http *http = sti_alloc(sizeof *http, "http");
    if (!http)
        goto out;
    http->desc = *desc;
    http->listener.fd = -1;
    STI_TRY(load_mhd(&http->mhd));
    STI_TRY(allow_files(desc->max_connections));
    STI_TRY(sti_http_listen(desc->listen, &http->listener));
    http->daemon = http->mhd.start(
        MHD_USE_EPOLL_INTERNAL_THREAD | MHD_ALLOW_SUSPEND_RESUME, 0, NULL, NULL,
        access_handler, http, MHD_OPTION_LISTEN_SOCKET, http->listener.fd,
        MHD_OPTION_CONNECTION_LIMIT, (unsigned)(desc->max_connections + STI_HTTP_OVER),
        MHD_OPTION_CONNECTION_TIMEOUT, (unsigned)desc->idle_s,
        MHD_OPTION_NOTIFY_CONNECTION, connection_changed, http,
        MHD_OPTION_NOTIFY_COMPLETED, completed, http, MHD_OPTION_END);
    if (!http->daemon)
        STI_TRY(sti_fail(STINT_E_IO, "%s: the server did not start", desc->listen));
    *http_out = http;
    http = NULL;
out:
    sti_http_stop(http);
    return st;
}

const char *sti_http_address(const sti_http *http)
{
    return http->listener.address;
}

void sti_http_quiesce(sti_http *http)
{
    if (http->quiet)
        return;
    http->quiet = true;
    (void)http->mhd.quiesce(http->daemon);
    /* The socket stays open until the daemon's thread has ended; who connects now is
     * told at once. */
    (void)shutdown(http->listener.fd, SHUT_RDWR);
}

int64_t sti_http_open(const sti_http *http)
{
    return atomic_load(&http->open);
}

/* What a crowd of connections leaves lies free between what is in use, and the C
 * library keeps it. */
void sti_http_tidy(sti_http *http)
{
    const int now = atomic_load(&http->connections), most = atomic_load(&http->most);
    const int64_t clock_ns = sti_clock_ns();
    if (most - now < FEWER || 2 * now > most ||
        clock_ns - http->tidied_ns < TIDY_S * INT64_C(1000000000))
        return;
    http->tidied_ns = clock_ns;
    atomic_store(&http->most, now);
    sti_memory_trim();
}

void sti_http_stop(sti_http *http)
{
    if (!http)
        return;
    if (http->daemon)
        http->mhd.stop(http->daemon); /* closes the socket that it listens on */
    if (http->daemon && !http->quiet)
        http->listener.fd = -1;
    sti_http_unlisten(&http->listener);
    sti_free(http);
}

#else

stint_status sti_http_start(const sti_http_desc *desc, sti_http **http_out)
{
    (void)desc;
    (void)http_out;
    return sti_fail(STINT_E_UNSUPPORTED, "this build has no server; install "
                                         "libmicrohttpd-dev and build again");
}

const char *sti_http_address(const sti_http *http)
{
    (void)http;
    return "";
}

void sti_http_quiesce(sti_http *http)
{
    (void)http;
}

void sti_http_tidy(sti_http *http)
{
    (void)http;
}

int64_t sti_http_open(const sti_http *http)
{
    (void)http;
    return 0;
}

void sti_http_stop(sti_http *http)
{
    (void)http;
}

void sti_http_drop_body(sti_http_request *request)
{
    (void)request;
}

void sti_http_wait(sti_http_request *request)
{
    (void)request;
}

void sti_http_answer(sti_http_request *request)
{
    (void)request;
}

void sti_http_sleep(sti_http_request *request)
{
    (void)request;
}

bool sti_http_left(const sti_http_request *request)
{
    (void)request;
    return true;
}

const char *sti_http_header(const sti_http_request *request, const char *name)
{
    (void)request;
    (void)name;
    return NULL;
}

#endif
