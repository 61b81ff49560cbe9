/* Large bodies are read, and large answers written, on threads of their own, so that
 * the thread of all connections has its time for the small ones. */
#include "base/fail.h"
#include "base/memory.h"
#include "serve/server.h"

/* Bytes of a body that take longer than handing it over does; of an encoded image,
 * whose pixels are many times more. */
enum { BODY_BYTES = 16 << 10, IMAGE_BYTES = 4 << 10 };
enum { READERS_MOST = 4, CPUS_OF_READER = 4 };

struct sti_readers {
    sti_server *server;
    pthread_t thread[READERS_MOST];
    int threads;
    pthread_mutex_t lock;
    pthread_cond_t wake;
    sti_http_request *first, **last; /* in the order of their coming */
    bool ends;
};

int sti_readers_count(const sti_server *s)
{
    const int count = s->cpus / CPUS_OF_READER;
    return count < 1 ? 1 : count > READERS_MOST ? READERS_MOST : count;
}

/* The next one; NULL: it is over. */
static sti_http_request *next_request(sti_readers *r)
{
    (void)pthread_mutex_lock(&r->lock);
    while (!r->first && !r->ends)
        (void)pthread_cond_wait(&r->wake, &r->lock);
    sti_http_request *request = r->first;
    if (request) {
        r->first = request->next;
        if (!r->first)
            r->last = &r->first;
    }
    (void)pthread_mutex_unlock(&r->lock);
    return request;
}

static void *reader_thread(void *arg)
{
    sti_readers *r = arg;
    sti_http_request *request;
    while ((request = next_request(r))) {
        sti_pending *p = request->user;
        p->job(r->server, request);
    }
    return NULL;
}

stint_status sti_readers_start(sti_server *s)
{
    sti_readers *r = sti_alloc(sizeof *r, "readers");
    if (!r)
        return STINT_E_MEMORY;
    r->server = s;
    r->last = &r->first;
    (void)pthread_mutex_init(&r->lock, NULL);
    (void)pthread_cond_init(&r->wake, NULL);
    s->readers = r;
    for (int i = 0; i < sti_readers_count(s); i++, r->threads++)
        if (pthread_create(&r->thread[i], NULL, reader_thread, r) != 0)
            return sti_fail(STINT_E_MEMORY, "no thread to read requests with");
    return STINT_OK;
}

void sti_readers_stop(sti_server *s)
{
    sti_readers *r = s->readers;
    if (!r)
        return;
    (void)pthread_mutex_lock(&r->lock);
    r->ends = true;
    (void)pthread_cond_broadcast(&r->wake);
    (void)pthread_mutex_unlock(&r->lock);
    for (int i = 0; i < r->threads; i++)
        (void)pthread_join(r->thread[i], NULL);
    (void)pthread_mutex_destroy(&r->lock);
    (void)pthread_cond_destroy(&r->wake);
    sti_free(r);
    s->readers = NULL;
}

void sti_readers_add(sti_server *s, sti_pending *p, sti_reader_job *job)
{
    sti_readers *r = s->readers;
    p->job = job;
    (void)pthread_mutex_lock(&r->lock);
    p->http->next = NULL;
    *r->last = p->http;
    r->last = &p->http->next;
    (void)pthread_cond_signal(&r->wake);
    (void)pthread_mutex_unlock(&r->lock);
}

bool sti_readers_want(const sti_http_request *request, bool image)
{
    return request->body_bytes > (image ? IMAGE_BYTES : BODY_BYTES);
}

/* ---- a body ---- */

/* While it is read the request counts as one to be answered, whatever comes. */
static void read_one(sti_server *s, sti_http_request *request)
{
    sti_pending *p = request->user;
    (void)pthread_rwlock_rdlock(&s->files);
    const bool submitted = p->read(s, request); /* then the request may be gone */
    (void)pthread_rwlock_unlock(&s->files);
    if (!submitted) {
        p->told = true;
        sti_http_answer(request);
    }
    (void)pthread_mutex_lock(&s->lock);
    s->reading--;
    (void)pthread_mutex_unlock(&s->lock);
}

/* All with the lock, so that nothing is added once the server ends. */
bool sti_readers_take(sti_server *s, sti_pending *p, sti_reader_read *read)
{
    (void)pthread_mutex_lock(&s->lock);
    const bool takes = !s->draining;
    if (takes) {
        s->reading++;
        p->taken = true;
        p->read = read;
        sti_http_wait(p->http);
        sti_readers_add(s, p, read_one);
    }
    (void)pthread_mutex_unlock(&s->lock);
    return takes;
}
