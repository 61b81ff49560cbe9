#include "data/market_stream.h"

#include <string.h>
#include <unistd.h>

#include "base/memory.h"
#include "data/market_priv.h"

/* Lines of two characters are the shortest; an entry may be there twice. */
enum { WINDOW_BYTES = 1 << 20, BATCH = WINDOW_BYTES / 2 + 1 };

size_t sti_market_stream_bytes(void)
{
    return WINDOW_BYTES + (size_t)2 * BATCH * (2 * sizeof(int32_t) + sizeof(double));
}

typedef struct passing {
    const sti_market_head *head;
    int threads;
    int64_t done; /* entries of the file */
    sti_market_triplets t;
    sti_entries_fn *fn;
    void *user;
} passing;

/* Zeros of arrays go, mirrored entries come; returns how many there are then. */
static int64_t complete(const sti_market_head *head, sti_market_triplets *t,
                        int64_t count)
{
    const double sign = head->symmetry == STI_MARKET_SKEW ? -1 : 1;
    int64_t kept = 0;
    for (int64_t e = 0; e < count; e++) {
        if (head->array && t->value[e] == 0)
            continue;
        t->row[kept] = t->row[e];
        t->column[kept] = t->column[e];
        t->value[kept++] = t->value[e];
    }
    const int64_t stored = kept;
    for (int64_t e = 0; head->symmetry != STI_MARKET_GENERAL && e < stored; e++) {
        if (t->row[e] == t->column[e])
            continue;
        t->row[kept] = t->column[e];
        t->column[kept] = t->row[e];
        t->value[kept++] = sign * t->value[e];
    }
    return kept;
}

static stint_status pass_lines(void *user, const char *at, size_t n_bytes, int64_t line,
                               int64_t *lines_out)
{
    passing *p = user;
    int64_t done;
    p->t.before = p->done;
    stint_status st = sti_market_read_lines(p->head, p->threads, at, at + n_bytes,
                                            p->done, line, &p->t, &done, lines_out);
    if (st != STINT_OK)
        return st;
    const int64_t count = complete(p->head, &p->t, done - p->done);
    p->done = done;
    return p->fn(p->user, &(sti_entries){p->t.row, p->t.column, p->t.value, count});
}

static stint_status open_head(sti_market_source *s, sti_market_head *head)
{
    const char *at;
    stint_status st;
    const size_t most = STI_MARKET_HEAD_BYTES;
    STI_TRY(sti_market_open(s));
    s->window = sti_alloc(WINDOW_BYTES, "market.window");
    STI_TRY(s->window ? STINT_OK : STINT_E_MEMORY);
    const size_t window = s->total_bytes < most ? s->total_bytes : most;
    STI_TRY(sti_market_get_window(s, 0, window, &at));
    st = sti_market_read_head(at, window, s->total_bytes, s->desc->path, head);
out:
    return st;
}

static void close_source(sti_market_source *s)
{
    sti_free(s->window);
    if (s->fd >= 0)
        close(s->fd);
}

static stint_status pass(const sti_entry_source *source, sti_entries_fn *fn, void *user)
{
    const sti_market_stream *stream = source->arg;
    sti_market_source s = {.desc = &stream->desc, .fd = -1};
    sti_market_head head;
    passing p = {.head = &head,
                 .threads = stream->desc.threads > 0 ? stream->desc.threads : 1,
                 .fn = fn,
                 .user = user};
    stint_status st;
    STI_TRY(open_head(&s, &head));
    p.t.row = sti_alloc_array(2 * (int64_t)BATCH, sizeof *p.t.row, "market.batch");
    p.t.column =
        sti_alloc_array(2 * (int64_t)BATCH, sizeof *p.t.column, "market.batch");
    p.t.value = sti_alloc_array(2 * (int64_t)BATCH, sizeof *p.t.value, "market.batch");
    STI_TRY(p.t.row && p.t.column && p.t.value ? STINT_OK : STINT_E_MEMORY);
    STI_TRY(sti_market_each_window(&s, &head, WINDOW_BYTES, pass_lines, &p));
    st = sti_market_check_end(&s, &head, p.done);
out:
    sti_free(p.t.row);
    sti_free(p.t.column);
    sti_free(p.t.value);
    close_source(&s);
    return st;
}

static stint_status sort(const sti_entry_source *source, const int32_t *names,
                         sti_csr *rows)
{
    const sti_market_desc *d = &((const sti_market_stream *)source->arg)->desc;
    return sti_market_sort_rows(d->path, d->sum, d->threads > 0 ? d->threads : 1, names,
                                rows);
}

stint_status sti_market_stream_open(const sti_market_desc *desc,
                                    sti_market_stream *stream_out,
                                    sti_entry_source *source_out)
{
    sti_market_source s = {.desc = desc, .fd = -1};
    sti_market_head head;
    const stint_status st = open_head(&s, &head);
    close_source(&s);
    if (st != STINT_OK)
        return st;
    *stream_out = (sti_market_stream){.desc = *desc,
                                      .symmetry = head.symmetry,
                                      .field = head.field,
                                      .stored = head.entries};
    *source_out = (sti_entry_source){.rows = head.rows,
                                     .columns = head.columns,
                                     .pass = pass,
                                     .sort = sort,
                                     .arg = stream_out};
    return STINT_OK;
}
