/* Texts on their way: those that wait, those that are drawn together, and the step of
 * all of them as one query to the scheduler, so that texts and images share partitions.
 *
 * A text's deadline is that of its first token. */
#ifndef STI_SERVE_SERVER_TEXTS_H
#define STI_SERVE_SERVER_TEXTS_H

#include "base/utf8.h"
#include "serve/server.h"
#include "serve/text_request.h"

/* A text from its request to its last token. Guarded by the server's lock once it was
 * submitted. pending.http: NULL when its connection is gone; pending.done_s: when its
 * first token was there. */
typedef struct sti_text_pending {
    sti_pending pending; /* first: what requests of both kinds have */
    bool asked_stream;   /* by its path */
    sti_text_request request;
    char version[13]; /* of the weights that draw it */
    int64_t created;  /* seconds since 1970 */
    int text;         /* its number in the batch */
    double ended_s;
    sti_utf8_stream torn; /* a character that is not whole */
    sti_text drawn;       /* the text so far */
    size_t safe, sent;    /* of it: what stays, what was made an event of */
    size_t given;         /* bytes of the events in the answer that were sent */
    int64_t count;        /* tokens drawn */
    const char *finish;   /* "stop" or "length", when it has ended well */
    bool begun;           /* its head was sent, or will be: the status stands */
    bool asleep;          /* its connection waits for more */
    bool ended, closed;   /* nothing more is drawn; the last event is made */
    struct sti_text_pending *next; /* of those that wait, or that are told */
} sti_text_pending;

/* The texts of one model with the same weights. */
struct sti_texts {
    sti_server *server;
    int model;
    sti_served_text *use;
    sti_query query; /* a step */
    bool offered;    /* the query is the scheduler's, or runs */
    sti_text_pending *text[STI_TEXTS_MOST];
    sti_text_pending *first, **last; /* that wait, in the order of their coming */
    int waits;
    int64_t wait_tokens; /* of their prompts */
    /* The batch as it was between two steps, and the draws left to each text, rising.
     */
    sti_text_batch_state state;
    int64_t left[STI_TEXTS_MOST];
    sti_text_drawn drawn[STI_TEXTS_MOST]; /* of the step that runs */
};

/* use: loaded; owned by the server's model, or by the texts once they are leaving. */
stint_status sti_texts_create(sti_server *server, int model, sti_served_text *use,
                              sti_texts **texts_out);
void sti_texts_destroy(sti_texts *texts); /* NULL is fine; the model stays */

/* ---- with the lock ---- */

/* When the first token of a text would be there that came now. */
double sti_texts_foretell(const sti_texts *texts, const sti_text_request *request,
                          double now);
void sti_texts_add(sti_texts *texts, sti_text_pending *pending);
/* Put the next step before the scheduler, if there is anything to do. */
void sti_texts_offer(sti_texts *texts);
/* Is there nothing to do, and no step before the scheduler? */
bool sti_texts_idle(const sti_texts *texts);
/* Is no text drawn, though some may wait? */
bool sti_texts_draws_none(const sti_texts *texts);
/* The model was loaded, or could not be: those that wait begin, or end, and are to be
 * answered without the lock, linked by next. */
void sti_texts_came(sti_texts *texts, bool in, sti_text_pending **told_out);
/* The batch as it is now; without one, as it would begin. */
void sti_texts_look(sti_texts *texts);
/* Those that wait go over to others of the same model. */
void sti_texts_move_waiting(sti_texts *from, sti_texts *to);

/* ---- without it ---- */

/* Texts that have ended, or go on, are told so. */
void sti_texts_answer(sti_text_pending *texts);
/* A step that a worker took. */
void sti_texts_run(sti_worker *worker, sti_serve_batch *batch);
/* Now and then: steps that could not be offered, and weights that nobody uses. */
void sti_texts_tidy(sti_server *server);
/* With the lock. */
void sti_text_free(sti_text_pending *pending);
/* All end with 503, when no worker runs any more. */
void sti_texts_give_up(sti_server *server);

/* ---- requests (server_text_requests.c) ---- */

/* generate of a model, or a completion (model -1: it is named in the body). */
void sti_server_generate(sti_server *server, int model, bool stream,
                         sti_http_request *request);
void sti_text_finish(sti_text_pending *pending, sti_http_request *request);
void sti_text_forget(sti_text_pending *pending);
/* The next bytes of a stream, as sti_http_desc.more. */
int64_t sti_server_more(void *user, sti_http_request *request, char *out, size_t room);
/* What the model takes and gives. */
void sti_text_metadata(const sti_served *model, double sla_s, sti_text *out);

#endif
