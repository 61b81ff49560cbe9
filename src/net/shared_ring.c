#define _GNU_SOURCE /* memfd_create, seals */
#include "net/shared_ring.h"

#include <fcntl.h>
#include <stdalign.h>
#include <stdatomic.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fail.h"

/* A pair's rings should stay in a core's cache, and those of all pairs in a budget. */
#define LARGEST_RING  ((size_t)256 << 10)
#define SMALLEST_RING ((size_t)16 << 10)
#define ALL_RINGS     ((size_t)8 << 20) /* of a process, each way */

#define SEALS (F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL)

struct sti_ring {
    alignas(64) _Atomic uint64_t written; /* bytes so far */
    alignas(64) _Atomic uint64_t read;
    alignas(64) _Atomic uint32_t reader_waits;
    _Atomic uint32_t writer_waits;
    alignas(64) unsigned char bytes[];
};

static size_t mapping_bytes(size_t ring_bytes)
{
    return 2 * (sizeof(sti_ring) + ring_bytes);
}

static stint_status map(int fd, size_t ring_bytes, int mine, sti_shared *out)
{
    const size_t bytes = mapping_bytes(ring_bytes);
    /* Touched now: what a budget counts is there from the start. */
    void *memory =
        mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, fd, 0);
    if (memory == MAP_FAILED)
        return sti_fail_errno("%zu bytes of shared memory cannot be mapped", bytes);
    void *second = (char *)memory + bytes / 2;
    sti_ring *rings[2] = {memory, second};
    *out = (sti_shared){.memory = memory,
                        .bytes = bytes,
                        .ring_bytes = ring_bytes,
                        .out = rings[mine],
                        .in = rings[1 - mine]};
    return STINT_OK;
}

static size_t ring_bytes_of(int ranks)
{
    size_t bytes = LARGEST_RING;
    while (bytes > SMALLEST_RING && bytes * (size_t)ranks > ALL_RINGS)
        bytes /= 2;
    return bytes;
}

size_t sti_shared_bytes(int ranks)
{
    return mapping_bytes(ring_bytes_of(ranks));
}

stint_status sti_shared_create(int ranks, sti_shared *shared_out, int *fd_out)
{
    const size_t ring_bytes = ring_bytes_of(ranks);
    *shared_out = (sti_shared){0};
    *fd_out = -1;
    int fd = memfd_create("stint", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    if (fd < 0)
        return sti_fail_errno("no shared memory");
    /* Allocated, not only sized: a host that is out of memory says so here. */
    stint_status st = STINT_OK;
    if (ftruncate(fd, (off_t)mapping_bytes(ring_bytes)) != 0 ||
        fallocate(fd, 0, 0, (off_t)mapping_bytes(ring_bytes)) != 0 ||
        fcntl(fd, F_ADD_SEALS, SEALS) != 0)
        st = sti_fail_errno("no %zu bytes of shared memory", mapping_bytes(ring_bytes));
    if (st == STINT_OK)
        st = map(fd, ring_bytes, 0, shared_out);
    if (st == STINT_OK)
        *fd_out = fd;
    else
        close(fd);
    return st;
}

stint_status sti_shared_open(int fd, sti_shared *shared_out)
{
    struct stat about;
    size_t ring_bytes = LARGEST_RING;
    *shared_out = (sti_shared){0};
    const int seals = fcntl(fd, F_GET_SEALS);
    if (seals < 0 || (seals & SEALS) != SEALS || fstat(fd, &about) != 0)
        return sti_fail(STINT_E_PEER, "what a peer shares is no sealed memory");
    while (ring_bytes >= SMALLEST_RING &&
           about.st_size != (off_t)mapping_bytes(ring_bytes))
        ring_bytes /= 2;
    if (ring_bytes < SMALLEST_RING)
        return sti_fail(STINT_E_PEER,
                        "a peer shares %lld bytes of memory, no size of ours",
                        (long long)about.st_size);
    return map(fd, ring_bytes, 1, shared_out);
}

void sti_shared_close(sti_shared *shared)
{
    if (shared->memory)
        munmap(shared->memory, shared->bytes);
    *shared = (sti_shared){0};
}

/* One side announces that it waits, then looks once more; the other changes what there
 * is, then looks whether anyone waits. All four are sequentially consistent, so at
 * least one of the two sees the other. */
static bool anyone_waits(_Atomic uint32_t *waits)
{
    return atomic_load(waits) != 0 && atomic_exchange(waits, 0) != 0;
}

/* Bytes in the ring; STI_SHARED_BROKEN when its two ends do not go together. */
static size_t filled(const sti_shared *s, const sti_ring *ring)
{
    const uint64_t written = atomic_load(&ring->written);
    const uint64_t read = atomic_load(&ring->read);
    return written - read <= s->ring_bytes ? (size_t)(written - read)
                                           : STI_SHARED_BROKEN;
}

static size_t least(size_t a, size_t b)
{
    return a < b ? a : b;
}

/* n bytes from place `at` of the ring on, which may go round its end. */
static void copy_out(const sti_shared *s, uint64_t at, void *to, size_t n)
{
    const size_t from = (size_t)(at & (s->ring_bytes - 1));
    const size_t first = least(n, s->ring_bytes - from);
    memcpy(to, s->in->bytes + from, first);
    memcpy((char *)to + first, s->in->bytes, n - first);
}

static void copy_in(sti_shared *s, uint64_t at, const void *bytes, size_t n)
{
    const size_t to = (size_t)(at & (s->ring_bytes - 1));
    const size_t first = least(n, s->ring_bytes - to);
    memcpy(s->out->bytes + to, bytes, first);
    memcpy(s->out->bytes, (const char *)bytes + first, n - first);
}

/* Bytes that can be moved now, at most `most`. Where there are none, the ring says that
 * somebody waits, and is looked at once more. */
static size_t can_move(const sti_shared *s, sti_ring *ring, bool writing,
                       size_t max_bytes)
{
    for (int look = 0;; look++) {
        const size_t full = filled(s, ring);
        if (full == STI_SHARED_BROKEN)
            return full;
        const size_t n = least(writing ? s->ring_bytes - full : full, max_bytes);
        if (n > 0 || look > 0)
            return n;
        atomic_store(writing ? &ring->writer_waits : &ring->reader_waits, 1);
    }
}

size_t sti_shared_put(sti_shared *s, const void *bytes, size_t n_bytes, bool *ring)
{
    size_t done = 0, n;
    while (done < n_bytes && (n = can_move(s, s->out, true, n_bytes - done)) > 0) {
        if (n == STI_SHARED_BROKEN)
            return n;
        const uint64_t at =
            atomic_load_explicit(&s->out->written, memory_order_relaxed);
        copy_in(s, at, (const char *)bytes + done, n);
        atomic_store(&s->out->written, at + n);
        done += n;
        if (anyone_waits(&s->out->reader_waits))
            *ring = true;
    }
    return done;
}

size_t sti_shared_get(sti_shared *s, void *bytes, size_t n_bytes, bool *ring)
{
    size_t done = 0, n;
    while (done < n_bytes && (n = can_move(s, s->in, false, n_bytes - done)) > 0) {
        if (n == STI_SHARED_BROKEN)
            return n;
        const uint64_t at = atomic_load_explicit(&s->in->read, memory_order_relaxed);
        copy_out(s, at, (char *)bytes + done, n);
        atomic_store(&s->in->read, at + n);
        done += n;
        /* A writer is woken for half a ring, not for every byte. It waits only when the
         * ring is full, and an empty one is more than half free, so it is woken. */
        if (filled(s, s->in) <= s->ring_bytes / 2 && anyone_waits(&s->in->writer_waits))
            *ring = true;
    }
    return done;
}
