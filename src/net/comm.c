#include "net/comm.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fail.h"
#include "base/memory.h"
#include "net/comm_priv.h"

/* ---- what makers share ---- */

stint_status sti_comm_init(sti_comm *comm, const comm_maker *maker, int rank, int size,
                           pthread_mutex_t *lock)
{
    pthread_condattr_t attr;
    comm->maker = maker;
    comm->kind = maker->kind;
    comm->rank = rank;
    comm->size = size;
    comm->lock = lock;
    comm->timeout_ns = STI_COMM_TIMEOUT_NS;
    comm->collective = "the start";
    pthread_condattr_init(&attr);
    pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    pthread_cond_init(&comm->changed, &attr);
    pthread_condattr_destroy(&attr);
    comm->hosts = sti_alloc_array(size, sizeof *comm->hosts, "net.hosts");
    comm->block_bytes = (size_t)size * sizeof *comm->hosts;
    return comm->hosts ? STINT_OK : STINT_E_MEMORY;
}

void sti_comm_fini(sti_comm *comm)
{
    if (!comm->maker)
        return;
    pthread_cond_destroy(&comm->changed);
    sti_free(comm->hosts);
}

void sti_comm_local_host(char host_out[COMM_HOST_BYTES])
{
    if (gethostname(host_out, COMM_HOST_BYTES) != 0)
        snprintf(host_out, COMM_HOST_BYTES, "unknown");
    host_out[COMM_HOST_BYTES - 1] = '\0';
}

void sti_comm_finish(sti_comm *comm, sti_comm_request *request)
{
    sti_comm_counts *c = &comm->counts;
    request->state = STI_COMM_DONE;
    request->next = NULL;
    if (request->sending) {
        c->messages_sent++;
        c->bytes_sent += (int64_t)request->bytes;
    } else {
        c->messages_received++;
        c->bytes_received += (int64_t)request->bytes;
    }
    pthread_cond_broadcast(&comm->changed);
}

void sti_comm_set_failure(sti_comm *comm, bool local, stint_status status,
                          const char *text)
{
    if (comm->failure != STINT_OK)
        return;
    comm->failure = status;
    comm->local_failure = local;
    snprintf(comm->failure_text, sizeof comm->failure_text, "%s", text);
    pthread_cond_broadcast(&comm->changed);
    if (local)
        comm->maker->tell_failure(comm);
}

static void describe_context(const sti_comm *comm, char *text, size_t bytes)
{
    if (comm->step > 0)
        snprintf(text, bytes, "%s of step %" PRId64, comm->collective, comm->step);
    else
        snprintf(text, bytes, "%s", comm->collective);
}

void sti_comm_fail_peer(sti_comm *comm, int peer, const char *what)
{
    char text[COMM_TEXT_BYTES], context[128];
    describe_context(comm, context, sizeof context);
    snprintf(text, sizeof text, "rank %d (%s) %s in %s", peer, comm->hosts[peer], what,
             context);
    sti_comm_set_failure(comm, true, STINT_E_PEER, text);
}

void sti_comm_message_too_long(sti_comm *comm, const sti_comm_request *request,
                               size_t came_bytes)
{
    char what[160];
    snprintf(what, sizeof what,
             "sent %zu bytes where at most %zu were expected (tag %" PRIu32 ")",
             came_bytes, request->bytes, request->tag);
    sti_comm_fail_peer(comm, request->peer, what);
}

void sti_comm_queue_add(comm_queue *queue, sti_comm_request *request)
{
    request->next = NULL;
    if (queue->last)
        queue->last->next = request;
    else
        queue->first = request;
    queue->last = request;
}

sti_comm_request *sti_comm_queue_take(comm_queue *queue, int peer, uint32_t tag)
{
    sti_comm_request *before = NULL, *r = queue->first;
    while (r && (r->peer != peer || r->tag != tag)) {
        before = r;
        r = r->next;
    }
    if (!r)
        return NULL;
    if (before)
        before->next = r->next;
    else
        queue->first = r->next;
    if (queue->last == r)
        queue->last = before;
    r->next = NULL;
    return r;
}

/* ---- who ---- */

int sti_comm_rank(const sti_comm *comm)
{
    return comm->rank;
}

int sti_comm_size(const sti_comm *comm)
{
    return comm->size;
}

const char *sti_comm_host(const sti_comm *comm, int rank)
{
    return comm->hosts[rank];
}

const char *sti_comm_kind(const sti_comm *comm)
{
    return comm->kind;
}

size_t sti_comm_shared_bytes(const sti_comm *comm)
{
    return comm->shared_bytes;
}

size_t sti_comm_start_peak_bytes(const sti_comm *comm)
{
    return comm->start_peak_bytes;
}

size_t sti_comm_block_bytes(const sti_comm *comm)
{
    return comm->block_bytes;
}

void sti_comm_set_context(sti_comm *comm, const char *collective, int64_t step)
{
    pthread_mutex_lock(comm->lock);
    comm->collective = collective;
    comm->step = step;
    pthread_mutex_unlock(comm->lock);
}

void sti_comm_set_timeout(sti_comm *comm, int64_t timeout_ns)
{
    pthread_mutex_lock(comm->lock);
    comm->timeout_ns = timeout_ns;
    pthread_mutex_unlock(comm->lock);
}

sti_comm_counts sti_comm_count(const sti_comm *comm)
{
    pthread_mutex_lock(comm->lock);
    sti_comm_counts counts = comm->counts;
    pthread_mutex_unlock(comm->lock);
    return counts;
}

void sti_comm_destroy(sti_comm *comm)
{
    if (comm)
        comm->maker->destroy(comm);
}

/* ---- messages ---- */

static void post(sti_comm *comm, sti_comm_request *request)
{
    assert(request->peer >= 0 && request->peer < comm->size);
    assert(request->peer != comm->rank);
    pthread_mutex_lock(comm->lock);
    if (comm->failure == STINT_OK)
        comm->maker->post(comm, request);
    pthread_mutex_unlock(comm->lock);
}

void sti_comm_send(sti_comm *comm, int to, uint32_t tag, const void *bytes,
                   size_t n_bytes, sti_comm_request *request)
{
    assert(request->state == STI_COMM_IDLE);
    union {
        const void *const_bytes;
        void *bytes;
    } u = {bytes};
    *request = (sti_comm_request){.state = STI_COMM_POSTED,
                                  .sending = true,
                                  .peer = to,
                                  .tag = tag,
                                  .bytes = n_bytes,
                                  .buffer = u.bytes};
    post(comm, request);
}

void sti_comm_receive(sti_comm *comm, int from, uint32_t tag, void *buffer,
                      size_t n_bytes, sti_comm_request *request)
{
    assert(request->state == STI_COMM_IDLE);
    *request = (sti_comm_request){.state = STI_COMM_POSTED,
                                  .peer = from,
                                  .tag = tag,
                                  .bytes = n_bytes,
                                  .buffer = buffer};
    post(comm, request);
}

void sti_comm_expect(sti_comm *comm, int from, uint32_t tag, void *buffer,
                     size_t n_bytes, sti_comm_request *request)
{
    assert(request->state == STI_COMM_IDLE);
    *request = (sti_comm_request){.state = STI_COMM_POSTED,
                                  .patient = true,
                                  .peer = from,
                                  .tag = tag,
                                  .bytes = n_bytes,
                                  .buffer = buffer};
    post(comm, request);
}

/* The words of the failure become this thread's last error. */
static stint_status hand_failure(sti_comm *comm)
{
    char text[COMM_TEXT_BYTES];
    if (!comm->dropped)
        comm->maker->drop(comm);
    comm->dropped = true;
    snprintf(text, sizeof text, "%s", comm->failure_text);
    return sti_fail(comm->failure, "%s", text);
}

/* Or until something changed. */
static void sleep_until(sti_comm *comm, int64_t until_ns)
{
    struct timespec t = {.tv_sec = (time_t)(until_ns / 1000000000),
                         .tv_nsec = (long)(until_ns % 1000000000)};
    pthread_cond_timedwait(&comm->changed, comm->lock, &t);
}

/* When a peer that stays silent will have been so for too long; fails when it has. */
static int64_t silent_end(sti_comm *comm, int peer, int64_t since_ns)
{
    const int64_t now = sti_clock_ns();
    const int64_t heard = comm->maker->heard_ns(comm, peer);
    const int64_t last = heard > since_ns ? heard : since_ns;
    if (now - last >= comm->timeout_ns) {
        char what[64];
        snprintf(what, sizeof what, "has been silent for %.1f s",
                 (double)(now - last) * 1e-9);
        sti_comm_fail_peer(comm, peer, what);
    }
    return last + comm->timeout_ns;
}

/* Fails when a peer of a posted request has been silent too long; else sleeps until
 * something changed or it is time to look again. */
static void wait_a_while(sti_comm *comm, const sti_comm_request *requests, int count,
                         int64_t since_ns)
{
    int64_t until = INT64_MAX;
    for (int i = 0; i < count; i++) {
        if (requests[i].state != STI_COMM_POSTED)
            continue;
        const int64_t end = silent_end(comm, requests[i].peer, since_ns);
        if (comm->failure != STINT_OK)
            return;
        until = end < until ? end : until;
    }
    sleep_until(comm, until);
}

/* -2: none is done, but some are posted; -1: all are idle. */
static int find_done(const sti_comm_request *requests, int count)
{
    bool posted = false;
    for (int i = 0; i < count; i++) {
        if (requests[i].state == STI_COMM_DONE)
            return i;
        posted = posted || requests[i].state == STI_COMM_POSTED;
    }
    return posted ? -2 : -1;
}

stint_status sti_comm_wait_any(sti_comm *comm, sti_comm_request *requests, int count,
                               int *which_out)
{
    int64_t since = sti_clock_ns();
    stint_status st = STINT_OK;
    int which;
    pthread_mutex_lock(comm->lock);
    while ((which = find_done(requests, count)) == -2 && comm->failure == STINT_OK)
        wait_a_while(comm, requests, count, since);
    if (comm->failure != STINT_OK && which != -1)
        st = hand_failure(comm);
    else if (which >= 0)
        requests[which].state = STI_COMM_IDLE;
    pthread_mutex_unlock(comm->lock);
    *which_out = which < 0 ? -1 : which;
    return st;
}

stint_status sti_comm_sweep(sti_comm *comm, sti_comm_request *requests, int64_t count,
                            bool *came)
{
    pthread_mutex_lock(comm->lock);
    for (int64_t i = 0; i < count; i++)
        if (requests[i].state == STI_COMM_DONE) {
            requests[i].state = STI_COMM_IDLE;
            came[i] = true;
        }
    const stint_status st = comm->failure == STINT_OK ? STINT_OK : hand_failure(comm);
    pthread_mutex_unlock(comm->lock);
    return st;
}

stint_status sti_comm_wait_news(sti_comm *comm, const sti_comm_request *requests,
                                int count, bool (*news)(void *user), void *user)
{
    int64_t since = sti_clock_ns();
    stint_status st = STINT_OK;
    pthread_mutex_lock(comm->lock);
    while (comm->failure == STINT_OK && find_done(requests, count) < 0 && !news(user))
        wait_a_while(comm, requests, count, since);
    if (comm->failure != STINT_OK)
        st = hand_failure(comm);
    pthread_mutex_unlock(comm->lock);
    return st;
}

void sti_comm_wake(sti_comm *comm)
{
    pthread_mutex_lock(comm->lock);
    pthread_cond_broadcast(&comm->changed);
    pthread_mutex_unlock(comm->lock);
}

stint_status sti_comm_watch(sti_comm *comm, int peer, int64_t since_ns)
{
    stint_status st = STINT_OK;
    pthread_mutex_lock(comm->lock);
    if (comm->failure == STINT_OK)
        silent_end(comm, peer, since_ns);
    if (comm->failure == STINT_OK && comm->maker->is_gone(comm, peer))
        sti_comm_fail_peer(comm, peer, "has left");
    if (comm->failure != STINT_OK)
        st = hand_failure(comm);
    pthread_mutex_unlock(comm->lock);
    return st;
}

stint_status sti_comm_wait_all(sti_comm *comm, sti_comm_request *requests, int count)
{
    stint_status st;
    int which;
    do
        st = sti_comm_wait_any(comm, requests, count, &which);
    while (st == STINT_OK && which >= 0);
    return st;
}

/* ---- failures ---- */

stint_status sti_comm_give_up(sti_comm *comm, stint_status status)
{
    char text[COMM_TEXT_BYTES];
    snprintf(text, sizeof text, "rank %d (%s): %s", comm->rank, comm->hosts[comm->rank],
             stint_last_error());
    pthread_mutex_lock(comm->lock);
    sti_comm_set_failure(comm, true, status, text);
    pthread_mutex_unlock(comm->lock);
    return status;
}

void sti_comm_outstay(sti_comm *comm, int rank)
{
    const int64_t since = sti_clock_ns();
    pthread_mutex_lock(comm->lock);
    while (!comm->maker->is_gone(comm, rank)) {
        const int64_t heard = comm->maker->heard_ns(comm, rank);
        const int64_t until = (heard > since ? heard : since) + comm->timeout_ns;
        if (sti_clock_ns() >= until)
            break;
        sleep_until(comm, until);
    }
    pthread_mutex_unlock(comm->lock);
}

stint_status sti_comm_failure(sti_comm *comm, char *text_out, size_t text_bytes,
                              bool *local_out)
{
    pthread_mutex_lock(comm->lock);
    stint_status st = comm->failure;
    if (text_out)
        snprintf(text_out, text_bytes, "%s", comm->failure_text);
    if (local_out)
        *local_out = comm->local_failure;
    pthread_mutex_unlock(comm->lock);
    return st;
}
