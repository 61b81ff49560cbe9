/* io_uring by liburing, where it was there when Stint was built. */
#define _GNU_SOURCE
#include <errno.h>
#include <string.h>

#include "base/async_io.h"
#include "base/memory.h"

#ifdef STINT_HAVE_URING
#include <liburing.h>

struct sti_uring {
    struct io_uring ring;
};

sti_uring *sti_uring_create(int depth, const char **why_out)
{
    sti_uring *r = sti_alloc(sizeof *r, "uring");
    *why_out = "no memory";
    if (!r)
        return NULL;
    const int failed = io_uring_queue_init((unsigned)depth, &r->ring, 0);
    if (failed == 0)
        return r;
    *why_out = failed == -EPERM    ? "the system forbids it"
               : failed == -ENOSYS ? "the kernel has none"
               : failed == -ENOMEM ? "the limit of locked memory is too low"
                                   : "it cannot be set up";
    sti_free(r);
    return NULL;
}

void sti_uring_destroy(sti_uring *ring)
{
    if (!ring)
        return;
    io_uring_queue_exit(&ring->ring);
    sti_free(ring);
}

static void submit(sti_uring *r, int fd, sti_async_op *op)
{
    struct io_uring_sqe *e = io_uring_get_sqe(&r->ring);
    char *at = (char *)op->buffer + op->done;
    const unsigned left = (unsigned)(op->bytes - op->done);
    const uint64_t offset = (uint64_t)op->offset + op->done;
    if (op->write)
        io_uring_prep_write(e, fd, at, left, offset);
    else
        io_uring_prep_read(e, fd, at, left, offset);
    io_uring_sqe_set_data(e, op);
}

/* True: the op is over; false: it goes on from where it came to. */
static bool take(sti_async_op *op, int result)
{
    if (result == -EINTR || result == -EAGAIN)
        return false;
    if (result <= 0)
        op->error = result == 0 ? ENODATA : -result;
    else
        op->done += (size_t)result;
    return op->error != 0 || op->done == op->bytes;
}

void sti_uring_run(sti_uring *r, int fd, int depth, sti_async_op *ops, int64_t count)
{
    int64_t next = 0;
    int flying = 0;
    while (next < count || flying > 0) {
        struct io_uring_cqe *c;
        while (flying < depth && next < count) {
            submit(r, fd, &ops[next++]);
            flying++;
        }
        const int st = io_uring_submit_and_wait(&r->ring, 1);
        if (st < 0 && st != -EINTR && st != -EAGAIN && st != -EBUSY) {
            for (int64_t i = 0; i < count; i++)
                if (ops[i].done < ops[i].bytes && ops[i].error == 0)
                    ops[i].error = -st;
            return;
        }
        while (io_uring_peek_cqe(&r->ring, &c) == 0) {
            sti_async_op *op = io_uring_cqe_get_data(c);
            const bool over = take(op, c->res);
            io_uring_cqe_seen(&r->ring, c);
            if (over)
                flying--;
            else
                submit(r, fd, op);
        }
    }
}

#else

sti_uring *sti_uring_create(int depth, const char **why_out)
{
    (void)depth;
    *why_out = "Stint was built without liburing";
    return NULL;
}

void sti_uring_destroy(sti_uring *ring)
{
    (void)ring;
}

void sti_uring_run(sti_uring *ring, int fd, int depth, sti_async_op *ops, int64_t count)
{
    (void)ring;
    (void)fd;
    (void)depth;
    for (int64_t i = 0; i < count; i++)
        ops[i].error = ENOSYS;
}

#endif
