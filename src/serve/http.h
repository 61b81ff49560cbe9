/* HTTP/1.1 by libmicrohttpd, loaded when it is first needed: one thread that waits for
 * all connections. A request is handed over when its body is complete, and is answered
 * at once or later, from any thread. */
#ifndef STI_SERVE_HTTP_H
#define STI_SERVE_HTTP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/text.h"
#include "stint/status.h"

typedef struct sti_http sti_http;

/* Connections beyond the bound that are kept for as long as it takes to refuse them. */
enum { STI_HTTP_OVER = 64 };

typedef struct sti_http_request {
    const char *method, *path; /* valid until it is handed over */
    char *body;                /* NUL-terminated; sti_alloc'ed, or NULL */
    size_t body_bytes;
    int64_t arrival_ns; /* when its first line was read */
    int refused;        /* 413, 503: there is no body, and only a refusal is wanted */
    const char *reason; /* literal: why it is refused with 503 */
    /* The answer, to be filled before it is given. */
    int status;
    const char *type; /* literal, of the content; NULL: application/json */
    sti_text answer;
    char timing[96];     /* Server-Timing, or "" */
    int retry_after_s;   /* 0: not said */
    int refresh_s;       /* a browser is to ask again after so long; 0: not */
    size_t header_bytes; /* of a JSON head before binary data; 0: there is none */
    bool error_object;   /* the handler's: errors as OpenAI's interface has them */
    bool streams;        /* the body comes from `more`, piece by piece */
    void *user;          /* the handler's */
    void *http;          /* the room's own */
    struct sti_http_request *next; /* of whoever has it while it waits */
} sti_http_request;

typedef struct sti_http_desc {
    const char *listen; /* "127.0.0.1:8000", port 0: a free one; "unix:PATH" */
    size_t max_body_bytes;
    size_t bodies_most_bytes; /* of all requests that are being read, together */
    /* Requests on connections beyond these are refused with 503; STINT_E_USAGE where
     * the process may not open so many files. */
    int max_connections;
    int idle_s; /* without a byte, after which a connection is closed */
    /* A complete request. It sets the answer, or calls sti_http_wait and returns; later
     * whoever has done the work calls sti_http_answer. */
    void (*handle)(void *user, sti_http_request *request);
    /* On the connections' thread, after sti_http_answer: last touches to the answer. */
    void (*finish)(void *user, sti_http_request *request);
    /* On the connections' thread, of a request that streams: up to `room` bytes into
     * out. Returns how many; 0: none yet, and it has called sti_http_sleep; -1: the
     * end. */
    int64_t (*more)(void *user, sti_http_request *request, char *out, size_t room);
    /* The request is over, answered or not. */
    void (*forget)(void *user, sti_http_request *request);
    void *user;
} sti_http_desc;

/* STINT_E_UNSUPPORTED: no libmicrohttpd; STINT_E_IO: the address is in use, or no
 * address. */
stint_status sti_http_start(const sti_http_desc *desc, sti_http **http_out);
/* "127.0.0.1:43211" as it came to be. */
const char *sti_http_address(const sti_http *http);
/* Take no new connections, which are refused; those that are open go on. */
void sti_http_quiesce(sti_http *http);
/* Requests that were handed over and whose answers are not sent yet. From any thread.
 */
int64_t sti_http_open(const sti_http *http);
/* To be called now and then, by one thread: gives memory back to the system that
 * connections have left which are closed now, a second apart at least. */
void sti_http_tidy(sti_http *http);
/* No request may wait any more. NULL is fine. */
void sti_http_stop(sti_http *http);

/* In `handle`: the answer comes later. */
void sti_http_wait(sti_http_request *request);
/* From any thread, once, for a request that waits. */
void sti_http_answer(sti_http_request *request);
/* In `more`: nothing has come yet. Who adds to it calls sti_http_answer, once. */
void sti_http_sleep(sti_http_request *request);
/* Has the client closed its end? From any thread, of a request that waits. */
bool sti_http_left(const sti_http_request *request);

/* The body is not needed any more; of whoever has the request. */
void sti_http_drop_body(sti_http_request *request);
/* A header of the request, or NULL; in `handle`. */
const char *sti_http_header(const sti_http_request *request, const char *name);

#endif
