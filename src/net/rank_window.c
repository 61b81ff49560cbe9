#define _GNU_SOURCE /* memfd_create, seals */
#include "net/rank_window.h"

#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fail.h"
#include "base/memory.h"

#define SEALS (F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL)

enum { TOKEN = 16 };

/* How others find a rank's part: by the descriptor of its process, which must lead to
 * memory that begins with the token. */
typedef struct card {
    int pid, fd; /* fd -1: nothing is shared */
    unsigned char token[TOKEN];
} card;

typedef struct making {
    sti_window *w;
    int rank, size, fd;
    card *cards; /* [size] */
} making;

static stint_status reserve(making *m)
{
    sti_window *w = m->w;
    const size_t bytes = (size_t)m->size * w->stride_bytes;
    void *at = mmap(NULL, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE,
                    -1, 0);
    if (at == MAP_FAILED)
        return sti_fail(STINT_E_MEMORY, "%zu bytes of addresses for a window", bytes);
    w->base = at;
    return STINT_OK;
}

/* A part laid over the reserved addresses. fd -1: own memory. */
static bool lay(const making *m, int rank, int fd, int protection)
{
    void *at = sti_window_part(m->w, rank);
    const int flags = fd < 0 ? MAP_PRIVATE | MAP_ANONYMOUS : MAP_SHARED;
    return mmap(at, m->w->stride_bytes, protection, flags | MAP_FIXED, fd, 0) == at;
}

static stint_status no_memory(const making *m)
{
    return sti_fail(STINT_E_MEMORY, "no %zu bytes for a part of a window",
                    m->w->stride_bytes);
}

/* Memory that others can map, if the system gives any. */
static stint_status make_own(making *m, bool share)
{
    card *own = &m->cards[m->rank];
    const off_t bytes = (off_t)m->w->stride_bytes;
    *own = (card){.pid = (int)getpid(), .fd = -1};
    if (share)
        m->fd = memfd_create("stint", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    const bool usable =
        m->fd >= 0 && ftruncate(m->fd, bytes) == 0 &&
        fcntl(m->fd, F_ADD_SEALS, SEALS) == 0 &&
        getrandom(own->token, sizeof own->token, 0) == (ssize_t)sizeof own->token;
    if (!lay(m, m->rank, usable ? m->fd : -1, PROT_READ | PROT_WRITE))
        return no_memory(m);
    if (usable) {
        own->fd = m->fd;
        memcpy(sti_window_part(m->w, m->rank), own->token, sizeof own->token);
    }
    return STINT_OK;
}

/* The part of a rank of this host, read-only: its descriptor is opened anew for reading
 * alone, so that not even mprotect could make it writable. */
static bool map_other(const making *m, int rank)
{
    const card *other = &m->cards[rank];
    struct stat about;
    char path[64];
    (void)snprintf(path, sizeof path, "/proc/%d/fd/%d", other->pid, other->fd);
    const int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return false;
    const int seals = fcntl(fd, F_GET_SEALS);
    const bool mapped =
        seals >= 0 && (seals & SEALS) == SEALS && fstat(fd, &about) == 0 &&
        about.st_size == (off_t)m->w->stride_bytes && lay(m, rank, fd, PROT_READ);
    close(fd);
    return mapped &&
           memcmp(sti_window_part(m->w, rank), other->token, sizeof other->token) == 0;
}

static bool may_share(const making *m, int rank)
{
    const sti_comm *comm = m->w->comm;
    return m->cards[m->rank].fd >= 0 && m->cards[rank].fd >= 0 &&
           strcmp(sti_comm_host(comm, rank), sti_comm_host(comm, m->rank)) == 0;
}

static void map_others(const making *m)
{
    for (int r = 0; r < m->size; r++) {
        m->w->shared[r] = r == m->rank || (may_share(m, r) && map_other(m, r));
        if (!m->w->shared[r] && may_share(m, r))
            sti_log(STINT_LOG_WARNING,
                    "rank %d cannot read the memory of rank %d of the same host; "
                    "messages go in its place",
                    m->rank, r);
    }
}

/* A pair shares only where both could; else each has a mirror. */
static stint_status agree_on_pairs(const making *m)
{
    sti_window *w = m->w;
    const size_t size = (size_t)m->size;
    bool *all = sti_alloc_array(m->size * m->size, sizeof *all, "net.window");
    if (!all)
        return STINT_E_MEMORY;
    stint_status st = sti_comm_gather_all(w->comm, w->shared, size * sizeof *all, all);
    for (int r = 0; st == STINT_OK && r < m->size; r++) {
        w->shared[r] = w->shared[r] && all[r * m->size + m->rank];
        if (!w->shared[r] && !lay(m, r, -1, PROT_READ | PROT_WRITE))
            st = no_memory(m);
    }
    sti_free(all);
    return st;
}

static stint_status join_parts(making *m, bool share)
{
    sti_window *w = m->w;
    stint_status st = reserve(m);
    if (st == STINT_OK)
        st = make_own(m, share);
    STI_TRY(sti_comm_agree(w->comm, st));
    const card own = m->cards[m->rank];
    STI_TRY(sti_comm_gather_all(w->comm, &own, sizeof own, m->cards));
    map_others(m);
    STI_TRY(sti_comm_agree(w->comm, agree_on_pairs(m)));
    memset(sti_window_part(w, m->rank), 0, TOKEN);
    st = sti_comm_barrier(w->comm);
out:
    return st;
}

stint_status sti_window_create(sti_comm *comm, size_t part_bytes, bool share,
                               sti_window *window_out)
{
    making m = {.w = window_out,
                .rank = sti_comm_rank(comm),
                .size = sti_comm_size(comm),
                .fd = -1};
    int64_t most = (int64_t)part_bytes;
    stint_status st;
    *window_out = (sti_window){.comm = comm};
    STI_TRY(sti_comm_max(comm, &most, 1));
    window_out->stride_bytes =
        ((size_t)most + STI_WINDOW_ALIGN - 1) / STI_WINDOW_ALIGN * STI_WINDOW_ALIGN;
    if (window_out->stride_bytes == 0)
        window_out->stride_bytes = STI_WINDOW_ALIGN;
    window_out->shared = sti_alloc_array(m.size, sizeof(bool), "net.window");
    m.cards = sti_alloc_array(m.size, sizeof *m.cards, "net.window");
    st = window_out->shared && m.cards ? STINT_OK : STINT_E_MEMORY;
    STI_TRY(sti_comm_agree(comm, st));
    st = join_parts(&m, share);
out:
    if (m.fd >= 0)
        close(m.fd);
    sti_free(m.cards);
    if (st != STINT_OK)
        sti_window_destroy(window_out);
    return st;
}

void sti_window_destroy(sti_window *window)
{
    if (window->base)
        munmap(window->base,
               (size_t)sti_comm_size(window->comm) * window->stride_bytes);
    sti_free(window->shared);
    *window = (sti_window){0};
}

enum { SPINS = 1000, WATCH = 1000 };

stint_status sti_window_wait(const sti_window *window, int rank,
                             const atomic_llong *counter, long long wanted)
{
    int64_t since = 0;
    for (int64_t spin = 0; atomic_load_explicit(counter, memory_order_acquire) < wanted;
         spin++) {
        if (spin < SPINS)
            continue;
        sched_yield();
        if (spin % WATCH != 0)
            continue;
        since = since > 0 ? since : sti_clock_ns();
        const stint_status st = sti_comm_watch(window->comm, rank, since);
        if (st != STINT_OK)
            return st;
    }
    return STINT_OK;
}
