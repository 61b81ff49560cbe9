/* Many reads and writes of a file under way at once: what a disk is fast at.
 *
 * Three ways: io_uring (where the library was there when Stint was built and the system
 * lets it be used), threads that each wait for one, and copies from and to a mapping of
 * the file, the baseline: whichever it is, the bytes are the same. One thread at a time
 * uses an sti_async. */
#ifndef STI_BASE_ASYNC_IO_H
#define STI_BASE_ASYNC_IO_H

#include "base/page_file.h"

typedef enum sti_async_way {
    STI_ASYNC_AUTO, /* io_uring, else threads */
    STI_ASYNC_URING,
    STI_ASYNC_THREADS,
    STI_ASYNC_MMAP
} sti_async_way;

typedef struct sti_async_op {
    bool write;
    int64_t offset;
    size_t bytes;
    void *buffer; /* aligned as the file wants it */
    size_t done;  /* the call's */
    int error;    /* likewise: of errno, or 0 */
} sti_async_op;

typedef struct sti_async sti_async;

enum { STI_ASYNC_DEPTH = 64, STI_ASYNC_THREADS_MOST = 64 };

/* depth: ops under way at most, 1 to STI_ASYNC_DEPTH; threads wait for as many, but for
 * at most STI_ASYNC_THREADS_MOST. URING that cannot be had falls back to threads, and
 * the log says why. STINT_E_MEMORY. */
stint_status sti_async_create(sti_async_way way, int depth, sti_async **io_out);
void sti_async_destroy(sti_async *io); /* NULL is fine */
/* Memory that such an sti_async keeps resident: a ring, or stacks of threads. Tries the
 * way, so that AUTO is what it will come to. */
size_t sti_async_bytes(sti_async_way way, int depth);
/* The way that it came to: "uring", "threads" or "mmap". */
const char *sti_async_name(const sti_async *io);

/* Do all of them, in any order; what they write must not overlap what they read. All
 * are done or failed when it returns. STINT_E_IO: the first failed one's place, and
 * why. */
stint_status sti_async_run(sti_async *io, const sti_paged_file *file, sti_async_op *ops,
                           int64_t count);

/* ---- private to async_*.c ---- */

typedef struct sti_uring sti_uring;
/* NULL: it cannot be had; *why_out is a literal. */
sti_uring *sti_uring_create(int depth, const char **why_out);
void sti_uring_destroy(sti_uring *ring);
void sti_uring_run(sti_uring *ring, int fd, int depth, sti_async_op *ops,
                   int64_t count);

#endif
