/* A request for a text, in the two forms that are taken: `generate` of the Open
 * Inference Protocol, and the completions of OpenAI's interface; and its answers, whole
 * or as server-sent events. */
#ifndef STI_SERVE_TEXT_REQUEST_H
#define STI_SERVE_TEXT_REQUEST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/text.h"
#include "infer/sampler.h"
#include "serve/serve_tables.h"
#include "stint/text.h"

enum { STI_TEXT_STOPS = 4, STI_TEXT_STOP_BYTES = 64, STI_TEXT_DRAWS_MOST = 1 << 20 };

typedef struct sti_text_request {
    bool completion;            /* OpenAI's form */
    bool stream;                /* events */
    char model[STI_SERVE_NAME]; /* of a completion */
    char id[128];               /* of generate; "": none */
    char *prompt;               /* sti_alloc'ed, until it is encoded */
    size_t prompt_bytes;
    int32_t *tokens; /* [count]: the prompt; sti_alloc'ed */
    int64_t count;
    int64_t draws; /* tokens wanted */
    sti_sampler_desc sampler;
    double timeout_s;                                   /* 0: not said */
    char stop[STI_TEXT_STOPS][STI_TEXT_STOP_BYTES + 1]; /* texts that end it */
    int stops;
} sti_text_request;

/* body [bytes]. stream: its path asks for events. *http_status_out: of a failure, whose
 * words are recorded. */
stint_status sti_text_request_parse(const char *body, size_t bytes, bool completion,
                                    bool stream, sti_text_request *request_out,
                                    int *http_status_out);
/* The prompt as tokens, at most `context`; a token has at most `longest` bytes. */
stint_status sti_text_request_encode(sti_text_request *request,
                                     const stint_tokenizer *tokenizer, int64_t context,
                                     size_t longest, int *http_status_out);
void sti_text_request_fini(sti_text_request *request); /* a zeroed one is fine */

/* Bytes that the text [length] of a request may have so far without being taken back:
 * up to where a stop begins, or may begin. *stopped_out: a stop is there, and the text
 * ends at what is returned. */
size_t sti_text_request_safe(const sti_text_request *request, const char *text,
                             size_t length, bool *stopped_out);

/* What an answer tells beside its text. */
typedef struct sti_text_reply {
    const char *model, *version;
    int64_t number, created; /* of the request; seconds since 1970 */
    const char *finish;      /* "stop", "length"; NULL: it goes on */
    int64_t drawn;
} sti_text_reply;

/* The whole answer. text: NUL-terminated UTF-8. */
void sti_text_answer(const sti_text_request *request, const sti_text_reply *reply,
                     const char *text, sti_text *out);
/* One event with a piece of the text; the last one (reply->finish) ends the stream. */
void sti_text_event(const sti_text_request *request, const sti_text_reply *reply,
                    const char *piece, sti_text *out);
/* The event of a text that is broken off. */
void sti_text_event_error(const char *words, sti_text *out);

#endif
