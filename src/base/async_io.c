#define _GNU_SOURCE
#include "base/async_io.h"

#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <string.h>
#include <unistd.h>

#include "base/fail.h"
#include "base/memory.h"

enum { THREAD_STACK = 64 << 10 };

struct sti_async {
    sti_async_way way;
    int depth, threads; /* started */
    sti_uring *ring;
    pthread_t thread[STI_ASYNC_THREADS_MOST];
    pthread_mutex_t lock;
    pthread_cond_t work, done;
    bool ends;
    int64_t turn; /* of calls; a worker knows the last that it had a part in */
    int busy;
    /* What the workers of one call work on. */
    const sti_paged_file *file;
    sti_async_op *ops;
    int64_t count;
    _Atomic int64_t next;
};

/* ---- threads ---- */

static void do_op(const sti_paged_file *file, sti_async_op *op)
{
    while (op->done < op->bytes && op->error == 0) {
        char *at = (char *)op->buffer + op->done;
        const off_t offset = (off_t)(op->offset + (int64_t)op->done);
        const size_t left = op->bytes - op->done;
        const ssize_t n = op->write ? pwrite(file->fd, at, left, offset)
                                    : pread(file->fd, at, left, offset);
        if (n > 0)
            op->done += (size_t)n;
        else if (n == 0 || errno != EINTR)
            op->error = n == 0 ? ENODATA : errno;
    }
}

static void do_some(sti_async *io)
{
    for (;;) {
        const int64_t i = atomic_fetch_add(&io->next, 1);
        if (i >= io->count)
            return;
        do_op(io->file, &io->ops[i]);
    }
}

static void *work(void *arg)
{
    sti_async *io = arg;
    int64_t turn = 0;
    pthread_mutex_lock(&io->lock);
    for (;;) {
        while (!io->ends && io->turn == turn)
            pthread_cond_wait(&io->work, &io->lock);
        if (io->ends)
            break;
        turn = io->turn;
        pthread_mutex_unlock(&io->lock);
        do_some(io);
        pthread_mutex_lock(&io->lock);
        if (--io->busy == 0)
            pthread_cond_signal(&io->done);
    }
    pthread_mutex_unlock(&io->lock);
    return NULL;
}

/* Signals are for the threads that compute. */
static void start_threads(sti_async *io)
{
    sigset_t all, before;
    pthread_attr_t attr;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    pthread_attr_init(&attr);
    pthread_attr_setstacksize(&attr, THREAD_STACK);
    while (io->threads < io->depth - 1 &&
           pthread_create(&io->thread[io->threads], &attr, work, io) == 0)
        io->threads++;
    pthread_attr_destroy(&attr);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
}

static void run_threads(sti_async *io)
{
    atomic_store(&io->next, 0);
    if (io->count > 1 && io->threads > 0) {
        pthread_mutex_lock(&io->lock);
        io->busy = io->threads;
        io->turn++;
        pthread_cond_broadcast(&io->work);
        pthread_mutex_unlock(&io->lock);
    }
    do_some(io);
    pthread_mutex_lock(&io->lock);
    while (io->busy > 0)
        pthread_cond_wait(&io->done, &io->lock);
    pthread_mutex_unlock(&io->lock);
}

/* ---- the mapping ---- */

static void copy_op(const sti_paged_file *file, sti_async_op *op)
{
    char *at = file->map + op->offset;
    memcpy(op->write ? at : op->buffer, op->write ? op->buffer : at, op->bytes);
    op->done = op->bytes;
}

/* ---- all ---- */

stint_status sti_async_create(sti_async_way way, int depth, sti_async **io_out)
{
    const char *why = "";
    sti_async *io = sti_alloc(sizeof *io, "async");
    if (!io)
        return STINT_E_MEMORY;
    io->way = way;
    io->depth = depth < 1 ? 1 : depth > STI_ASYNC_DEPTH ? STI_ASYNC_DEPTH : depth;
    pthread_mutex_init(&io->lock, NULL);
    pthread_cond_init(&io->work, NULL);
    pthread_cond_init(&io->done, NULL);
    if (way == STI_ASYNC_AUTO || way == STI_ASYNC_URING) {
        io->ring = sti_uring_create(io->depth, &why);
        io->way = io->ring ? STI_ASYNC_URING : STI_ASYNC_THREADS;
        if (!io->ring)
            sti_log(way == STI_ASYNC_URING ? STINT_LOG_WARNING : STINT_LOG_INFO,
                    "io_uring cannot be used (%s); threads read and write", why);
    }
    if (io->way == STI_ASYNC_THREADS)
        start_threads(io);
    *io_out = io;
    return STINT_OK;
}

void sti_async_destroy(sti_async *io)
{
    if (!io)
        return;
    pthread_mutex_lock(&io->lock);
    io->ends = true;
    pthread_cond_broadcast(&io->work);
    pthread_mutex_unlock(&io->lock);
    for (int i = 0; i < io->threads; i++)
        pthread_join(io->thread[i], NULL);
    sti_uring_destroy(io->ring);
    pthread_cond_destroy(&io->work);
    pthread_cond_destroy(&io->done);
    pthread_mutex_destroy(&io->lock);
    sti_free(io);
}

const char *sti_async_name(const sti_async *io)
{
    static const char *const names[] = {"auto", "uring", "threads", "mmap"};
    return names[io->way];
}

size_t sti_async_bytes(sti_async_way way, int depth)
{
    enum { RING = 64 << 10, THREAD = 32 << 10 };
    const char *why;
    if (way == STI_ASYNC_MMAP)
        return 0;
    if (way != STI_ASYNC_THREADS) {
        sti_uring *ring = sti_uring_create(depth, &why);
        sti_uring_destroy(ring);
        if (ring)
            return RING;
    }
    return (size_t)depth * THREAD;
}

static stint_status op_failed(const sti_paged_file *file, const sti_async_op *op)
{
    if (!op->write && op->error == ENODATA)
        return sti_fail(STINT_E_IO, "%s: ends before byte %" PRId64, file->path,
                        op->offset + (int64_t)op->bytes);
    errno = op->error == ENODATA ? ENOSPC : op->error;
    return sti_fail_errno("%s: byte %" PRId64 " cannot be %s", file->path, op->offset,
                          op->write ? "written" : "read");
}

stint_status sti_async_run(sti_async *io, const sti_paged_file *file, sti_async_op *ops,
                           int64_t count)
{
    for (int64_t i = 0; i < count; i++) {
        ops[i].done = 0;
        ops[i].error = 0;
    }
    io->file = file;
    io->ops = ops;
    io->count = count;
    if (file->map)
        for (int64_t i = 0; i < count; i++)
            copy_op(file, &ops[i]);
    else if (io->way == STI_ASYNC_URING)
        sti_uring_run(io->ring, file->fd, io->depth, ops, count);
    else
        run_threads(io);
    for (int64_t i = 0; i < count; i++)
        if (ops[i].error != 0)
            return op_failed(file, &ops[i]);
    return STINT_OK;
}
