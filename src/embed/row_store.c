#define _GNU_SOURCE
#include "embed/row_store.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fail.h"
#include "base/file.h"
#include "base/memory.h"
#include "embed/row_store_priv.h"

/* ---- sizes ---- */

static int64_t hot_of(const sti_row_store_desc *d)
{
    if (d->cached >= d->layout.rows)
        return d->layout.rows;
    return (int64_t)(d->hot * (double)d->cached);
}

static int64_t slots_of(const sti_row_store_desc *d)
{
    return d->cached >= d->layout.rows ? 0 : d->cached - hot_of(d);
}

/* A window must hold the batches under way. */
static int64_t entries_of(const sti_row_store_desc *d)
{
    const int64_t least = (d->depth + 2) * d->most;
    return slots_of(d) == 0 ? 1 : d->entries > least ? d->entries : least;
}

sti_cache_desc sti_row_store_cache(const sti_row_store_desc *d, const sti_row_course *c)
{
    return (sti_cache_desc){.policy = d->policy,
                            .rows = d->layout.rows,
                            .hot = hot_of(d),
                            .slots = slots_of(d),
                            .lookahead =
                                d->lookahead > d->depth ? d->lookahead : d->depth + 1,
                            .entries = entries_of(d),
                            .most = d->most,
                            .first = c ? c->first : 0,
                            .batches = c ? c->batches : 0,
                            .look = c ? c->look : NULL,
                            .user = c ? c->look_user : NULL};
}

size_t sti_row_store_fixed_bytes(const sti_row_store_desc *d)
{
    const size_t ring = (size_t)sti_row_batch_bytes(d->most) + 12 * (size_t)d->most;
    const int64_t pages = d->layout.pages;
    const size_t stage = (size_t)(pages < STI_ROW_STAGE ? pages : STI_ROW_STAGE);
    return (size_t)(d->depth + 1) * ring + 8 * (size_t)d->most +
           (stage + 2) * d->layout.page_bytes + sti_row_journal_bytes(pages) +
           d->io_bytes;
}

size_t sti_row_store_bytes(const sti_row_store_desc *d)
{
    const sti_cache_desc cache = sti_row_store_cache(d, NULL);
    return sti_row_store_fixed_bytes(d) + sti_cache_flow_bytes(&cache) +
           (size_t)(cache.hot + cache.slots) * (size_t)(d->layout.record_bytes) +
           (size_t)cache.slots * sizeof(sti_cache_place) + (size_t)cache.hot / 8;
}

int64_t sti_row_store_fit(const sti_row_store_desc *desc, size_t bytes)
{
    sti_row_store_desc d = *desc;
    int64_t low = 0, high = d.layout.rows;
    d.cached = high;
    if (sti_row_store_bytes(&d) <= bytes)
        return high;
    while (low < high) {
        d.cached = low + (high - low + 1) / 2;
        if (d.cached < d.layout.rows && sti_row_store_bytes(&d) <= bytes)
            low = d.cached;
        else
            high = d.cached - 1;
    }
    return low;
}

/* ---- opening ---- */

static stint_status lock_folder(sti_row_store *s)
{
    char path[1200];
    snprintf(path, sizeof path, "%.1000s/lock", s->folder);
    s->lock_fd = s->desc.read_only ? open(path, O_RDONLY | O_CLOEXEC)
                                   : open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0666);
    if (s->lock_fd < 0 && s->desc.read_only)
        return STINT_OK; /* a copy without it; what is wrong with the rows is told then
                          */
    if (s->lock_fd < 0)
        return sti_fail_errno("%s: cannot be opened", path);
    if (flock(s->lock_fd, (s->desc.read_only ? LOCK_SH : LOCK_EX) | LOCK_NB) != 0)
        return errno == EWOULDBLOCK
                   ? sti_fail(
                         STINT_E_USAGE,
                         "%s: another process has this table open; wait for it, or "
                         "train into another folder",
                         s->folder)
                   : sti_fail_errno("%s: cannot be locked", path);
    return STINT_OK;
}

static stint_status open_pages(sti_row_store *s, int64_t pages)
{
    char path[1200];
    snprintf(path, sizeof path, "%.1000s/rows.bin", s->folder);
    return sti_paged_file_open(
        &(sti_paged_file_desc){.path = path,
                               .page_bytes = s->desc.layout.page_bytes,
                               .pages = pages,
                               .writes = !s->desc.read_only,
                               .create = !s->desc.resume && !s->desc.read_only,
                               .mapped = s->desc.io == STI_ASYNC_MMAP},
        &s->file);
}

static stint_status begin_file(sti_row_store *s)
{
    char path[1200];
    snprintf(path, sizeof path, "%.1000s/rows.bin", s->folder);
    if (unlink(path) != 0 && errno != ENOENT)
        return sti_fail_errno("%s: cannot be removed", path);
    stint_status st = sti_row_journal_remove_all(s->folder);
    if (st == STINT_OK)
        st = open_pages(s, s->desc.layout.pages);
    return st == STINT_OK ? sti_row_pages_head(s, true) : st;
}

/* What the table is comes before how long it is: another table is not one cut short. */
static stint_status open_file(sti_row_store *s)
{
    if (!s->desc.resume && !s->desc.read_only)
        return begin_file(s);
    stint_status st = open_pages(s, 1);
    if (st == STINT_OK)
        st = sti_row_pages_head(s, false);
    sti_paged_file_close(&s->file);
    return st == STINT_OK ? open_pages(s, s->desc.layout.pages) : st;
}

static stint_status make_ring(sti_row_store *s)
{
    const int64_t most = s->desc.most;
    stint_status st = STINT_OK;
    for (int i = 0; i <= s->desc.depth && st == STINT_OK; i++) {
        sti_row_ring *r = &s->ring[i];
        st = sti_row_batch_init(&r->batch, most);
        r->slot = sti_alloc_array(most + 1, sizeof *r->slot, "embed.ring");
        r->row = sti_alloc_array(most + 1, sizeof *r->row, "embed.ring");
        if (!r->slot || !r->row)
            st = STINT_E_MEMORY;
    }
    return st;
}

static stint_status make_memory(sti_row_store *s)
{
    const sti_row_layout *l = &s->desc.layout;
    s->hot = hot_of(&s->desc);
    s->slots = slots_of(&s->desc);
    s->places_most = s->slots > STI_ROW_STAGE ? s->slots : STI_ROW_STAGE;
    s->records = sti_alloc_array(s->hot + s->slots + 1, (size_t)l->record_bytes,
                                 "embed.records");
    s->hot_dirty = sti_alloc((size_t)s->hot / 8 + 1, "embed.dirty");
    s->rank = sti_alloc_array(s->desc.most + 1, sizeof *s->rank, "embed.ids");
    s->vector = sti_alloc_array(s->desc.most + 1, sizeof *s->vector, "embed.ids");
    s->places = sti_alloc_array(s->places_most, sizeof *s->places, "embed.places");
    s->stage_room =
        sti_alloc(STI_ROW_STAGE * l->page_bytes + STI_PAGE_ALIGN, "embed.stage");
    s->stage = (char *)STI_ALIGN_UP((uintptr_t)s->stage_room, STI_PAGE_ALIGN);
    if (!s->records || !s->hot_dirty || !s->rank || !s->vector || !s->places ||
        !s->stage_room)
        return STINT_E_MEMORY;
    return make_ring(s);
}

stint_status sti_row_store_open(const sti_row_store_desc *desc,
                                sti_row_store **store_out)
{
    sti_row_store *s = sti_alloc(sizeof *s, "embed.store");
    stint_status st = STINT_OK;
    if (!s)
        return STINT_E_MEMORY;
    s->desc = *desc;
    s->lock_fd = s->file.fd = s->journal.fd = -1;
    s->worker.job = -1;
    pthread_mutex_init(&s->worker.lock, NULL);
    pthread_cond_init(&s->worker.changed, NULL);
    s->folder = sti_strdup(desc->folder);
    s->identity = sti_strdup(desc->identity);
    if (!s->folder || !s->identity)
        st = STINT_E_MEMORY;
    if (st == STINT_OK && !desc->read_only)
        st = sti_dir_create(s->folder);
    if (st == STINT_OK)
        st = lock_folder(s);
    if (st == STINT_OK)
        st = make_memory(s);
    if (st == STINT_OK)
        st = sti_async_create(desc->io, STI_ASYNC_DEPTH, &s->io);
    if (st == STINT_OK)
        st = open_file(s);
    if (st == STINT_OK)
        st = sti_row_journal_init(&s->journal, s->folder, desc->layout.page_bytes,
                                  desc->layout.pages);
    if (st != STINT_OK) {
        sti_row_store_close(s);
        return st;
    }
    *store_out = s;
    return STINT_OK;
}

static void stop_worker(sti_row_store *s)
{
    if (!s->worker.started)
        return;
    pthread_mutex_lock(&s->worker.lock);
    s->worker.ends = true;
    pthread_cond_broadcast(&s->worker.changed);
    pthread_mutex_unlock(&s->worker.lock);
    pthread_join(s->worker.thread, NULL);
    s->worker.started = false;
}

void sti_row_store_close(sti_row_store *s)
{
    if (!s)
        return;
    stop_worker(s);
    for (int i = 0; i <= STI_ROW_DEPTH_MOST; i++) {
        sti_row_batch_fini(&s->ring[i].batch);
        sti_free(s->ring[i].slot);
        sti_free(s->ring[i].row);
    }
    sti_cache_flow_fini(&s->flow);
    sti_row_journal_fini(&s->journal);
    sti_async_destroy(s->io);
    sti_paged_file_close(&s->file);
    sti_free(s->records);
    sti_free(s->hot_dirty);
    sti_free(s->rank);
    sti_free(s->vector);
    sti_free(s->places);
    sti_free(s->stage_room);
    if (s->lock_fd >= 0)
        close(s->lock_fd);
    pthread_mutex_destroy(&s->worker.lock);
    pthread_cond_destroy(&s->worker.changed);
    sti_free(s->folder);
    sti_free(s->identity);
    sti_free(s);
}

stint_status sti_row_store_rewind(sti_row_store *s, int64_t generation, int64_t keep)
{
    stint_status st = STINT_OK;
    if (s->desc.resume)
        st = sti_row_journal_undo(&s->journal, generation, sti_row_pages_undo, s);
    if (st == STINT_OK)
        st = sti_paged_file_sync(&s->file);
    /* What lies beyond this generation is no longer true; the oldest go last, so that a
     * stop in between finds the same way back. */
    if (st == STINT_OK)
        st = sti_row_journal_remove_from(s->folder, generation + 1);
    if (st == STINT_OK)
        st = sti_row_journal_begin(&s->journal, generation, keep);
    return st;
}

/* ---- courses ---- */

/* Rows of memory from their pages, or made where the table is new. */
static stint_status fill_memory(sti_row_store *s)
{
    const int64_t count = s->hot + s->flow.index.filled;
    stint_status st = STINT_OK;
    for (int64_t first = 0; first < count && st == STINT_OK;) {
        int64_t n = count - first < STI_ROW_STAGE ? count - first : STI_ROW_STAGE;
        for (int64_t i = 0; i < n; i++)
            s->places[i] =
                (sti_cache_place){(uint32_t)(first + i), (uint32_t)(first + i)};
        if (s->desc.resume || s->desc.read_only)
            st = sti_row_pages_read(s, s->places, n);
        else
            for (int64_t i = 0; i < n; i++)
                sti_row_make(&s->desc.layout, (uint32_t)(first + i),
                             sti_row_record(s, (uint32_t)(first + i)));
        first += n;
    }
    return st;
}

static stint_status begin_memory(sti_row_store *s)
{
    const sti_cache_desc desc = sti_row_store_cache(&s->desc, &s->course);
    stint_status st = sti_cache_flow_init(&s->flow, &desc);
    s->flow_is = true;
    if (st != STINT_OK)
        return st;
    (void)sti_cache_index_warm(&s->flow.index);
    return fill_memory(s);
}

/* Another course through the same memory: no use of a row is known any more. */
static stint_status turn_course(sti_row_store *s)
{
    sti_cache_flow *f = &s->flow;
    const sti_cache_desc desc = sti_row_store_cache(&s->desc, &s->course);
    sti_cache_window_fini(&f->window);
    f->desc = desc;
    f->touched = f->missed_all = f->given = f->given_dirty = 0;
    if (f->index.policy == STI_CACHE_FUTURE)
        sti_cache_index_forget(&f->index);
    return sti_cache_window_init(
        &f->window, desc.policy == STI_CACHE_FUTURE ? desc.lookahead : 1,
        desc.policy == STI_CACHE_FUTURE ? desc.entries : 1, desc.first);
}

static stint_status prepare(sti_row_store *s, int64_t batch)
{
    const int at = (int)(batch % (s->desc.depth + 1));
    sti_row_ring *r = &s->ring[at];
    int64_t ids = 0;
    stint_status st;
    STI_TRY(s->course.load(s->course.user, batch, at, s->rank, s->vector, &ids));
    sti_row_batch_build(&r->batch, s->rank, s->vector, ids);
    STI_TRY(sti_cache_flow_prepare(&s->flow, batch, r->batch.rank, r->batch.count,
                                   r->slot));
    for (int64_t i = 0; i < r->batch.count; i++)
        r->row[i] = (float *)(void *)sti_row_record(s, r->slot[i]);
    qsort(s->flow.evicted, (size_t)s->flow.evicted_count, sizeof *s->flow.evicted,
          sti_cache_place_order);
    STI_TRY(sti_row_pages_write(s, s->flow.evicted, s->flow.evicted_count));
    STI_TRY(sti_row_pages_read(s, s->flow.missed, s->flow.missed_count));
out:
    return st;
}

static void *work(void *arg)
{
    sti_row_store *s = arg;
    sti_row_worker *w = &s->worker;
    pthread_mutex_lock(&w->lock);
    for (;;) {
        while (!w->ends && w->job < 0)
            pthread_cond_wait(&w->changed, &w->lock);
        if (w->ends)
            break;
        const int64_t batch = w->job;
        pthread_mutex_unlock(&w->lock);
        const stint_status st = prepare(s, batch);
        pthread_mutex_lock(&w->lock);
        w->status = st;
        if (st != STINT_OK)
            snprintf(w->text, sizeof w->text, "%s", stint_last_error());
        w->job = -1;
        pthread_cond_broadcast(&w->changed);
    }
    pthread_mutex_unlock(&w->lock);
    return NULL;
}

static stint_status start_worker(sti_row_store *s)
{
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    const int failed = pthread_create(&s->worker.thread, NULL, work, s);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    s->worker.started = failed == 0;
    errno = failed;
    return failed == 0 ? STINT_OK
                       : sti_fail_errno("the table's thread cannot be started");
}

/* Wait for the batch on its way, if there is one; its failure is told here. */
static stint_status wait_worker(sti_row_store *s)
{
    sti_row_worker *w = &s->worker;
    const int64_t start = sti_clock_ns();
    pthread_mutex_lock(&w->lock);
    while (w->job >= 0)
        pthread_cond_wait(&w->changed, &w->lock);
    const stint_status st = w->status;
    pthread_mutex_unlock(&w->lock);
    s->counts.waited_s += sti_seconds_since(start);
    return st == STINT_OK ? st : sti_fail(st, "%s", w->text);
}

static void give_worker(sti_row_store *s, int64_t batch)
{
    pthread_mutex_lock(&s->worker.lock);
    s->worker.job = batch;
    pthread_cond_broadcast(&s->worker.changed);
    pthread_mutex_unlock(&s->worker.lock);
}

stint_status sti_row_store_begin(sti_row_store *s, const sti_row_course *course)
{
    stint_status st = STINT_OK;
    s->course = *course;
    if (!s->flow_is)
        STI_TRY(begin_memory(s));
    else
        STI_TRY(turn_course(s));
    for (int64_t b = course->first;
         b < course->first + s->desc.depth && b < course->batches; b++)
        STI_TRY(prepare(s, b));
    if (!s->worker.started)
        STI_TRY(start_worker(s));
out:
    return st;
}

stint_status sti_row_store_step(sti_row_store *s, int64_t batch,
                                const sti_row_batch **batch_out,
                                float *const **rows_out)
{
    const sti_row_ring *r = &s->ring[batch % (s->desc.depth + 1)];
    const int64_t next = batch + s->desc.depth;
    if (next < s->course.batches)
        give_worker(s, next);
    if (s->desc.depth == 0) {
        const stint_status st = wait_worker(s);
        if (st != STINT_OK)
            return st;
    }
    *batch_out = &r->batch;
    *rows_out = r->row;
    return STINT_OK;
}

stint_status sti_row_store_done(sti_row_store *s, int64_t batch)
{
    const sti_row_ring *r = &s->ring[batch % (s->desc.depth + 1)];
    const stint_status st = wait_worker(s);
    if (st != STINT_OK)
        return st;
    for (int64_t i = 0; i < r->batch.count && s->course.trained; i++)
        if (r->slot[i] < s->hot)
            s->hot_dirty[r->slot[i] / 8] =
                (uint8_t)(s->hot_dirty[r->slot[i] / 8] | 1u << r->slot[i] % 8);
    sti_cache_flow_release(&s->flow, batch, r->slot, r->batch.count, s->course.trained);
    return STINT_OK;
}

/* ---- to disk ---- */

int sti_cache_place_order(const void *a, const void *b)
{
    const sti_cache_place *x = a, *y = b;
    return x->rank < y->rank ? -1 : x->rank > y->rank;
}

static stint_status flush_hot(sti_row_store *s)
{
    int64_t n = 0;
    stint_status st = STINT_OK;
    for (int64_t r = 0; r < s->hot && st == STINT_OK; r++) {
        if (s->hot_dirty[r / 8] == 0) {
            r |= 7;
            continue;
        }
        if (!(s->hot_dirty[r / 8] >> r % 8 & 1))
            continue;
        s->places[n++] = (sti_cache_place){(uint32_t)r, (uint32_t)r};
        if (n == STI_ROW_STAGE) {
            st = sti_row_pages_write(s, s->places, n);
            n = 0;
        }
    }
    if (st == STINT_OK)
        st = sti_row_pages_write(s, s->places, n);
    if (st == STINT_OK)
        memset(s->hot_dirty, 0, (size_t)s->hot / 8 + 1);
    return st;
}

static stint_status flush_slots(sti_row_store *s)
{
    sti_cache_index *c = &s->flow.index;
    int64_t n = 0;
    for (int64_t k = 0; k < c->filled; k++)
        if (c->dirty[k])
            s->places[n++] = (sti_cache_place){c->rank[k], (uint32_t)(s->hot + k)};
    qsort(s->places, (size_t)n, sizeof *s->places, sti_cache_place_order);
    const stint_status st = sti_row_pages_write(s, s->places, n);
    for (int64_t k = 0; k < c->filled && st == STINT_OK; k++)
        c->dirty[k] = 0;
    return st;
}

stint_status sti_row_store_flush(sti_row_store *s)
{
    stint_status st = wait_worker(s);
    if (st == STINT_OK && s->flow_is)
        st = flush_hot(s);
    if (st == STINT_OK && s->flow_is && s->slots > 0)
        st = flush_slots(s);
    return st == STINT_OK ? sti_paged_file_sync(&s->file) : st;
}

stint_status sti_row_store_commit(sti_row_store *s, int64_t generation, int64_t keep)
{
    return sti_row_journal_begin(&s->journal, generation, keep);
}

stint_status sti_row_store_each(sti_row_store *s, sti_row_fn *fn, void *user)
{
    const sti_row_layout *l = &s->desc.layout;
    stint_status st = wait_worker(s);
    for (int64_t page = 1; page < l->pages && st == STINT_OK;) {
        const int64_t n =
            l->pages - page < STI_ROW_STAGE ? l->pages - page : STI_ROW_STAGE;
        st = sti_row_pages_look(s, page, n);
        for (int64_t k = 0; k < n && st == STINT_OK; k++) {
            const int64_t first = (page + k - 1) * l->per_page;
            const int64_t left = l->rows - first;
            st = fn(user, first, left < l->per_page ? left : l->per_page,
                    s->stage + k * (int64_t)l->page_bytes, l->record_bytes);
        }
        page += n;
    }
    return st;
}

sti_row_counts sti_row_store_counts(const sti_row_store *s)
{
    sti_row_counts counts = s->counts;
    counts.rows_touched = s->flow.touched;
    counts.rows_missed = s->flow.missed_all;
    counts.rows_given = s->flow.given;
    counts.rows_given_dirty = s->flow.given_dirty;
    counts.journal_bytes = s->journal.bytes;
    return counts;
}

const char *sti_row_store_io(const sti_row_store *s)
{
    return sti_async_name(s->io);
}
