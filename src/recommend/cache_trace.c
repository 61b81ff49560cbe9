#include "recommend/cache_trace.h"

#include <stdlib.h>
#include <string.h>

#include "base/fail.h"
#include "base/file.h"
#include "base/number.h"
#include "data/clicks_ids.h"
#include "embed/row_batch.h"

enum { RECORD = 24 };
#define FILE_MOST ((size_t)1 << 32)

/* ---- reading ---- */

static stint_status take_id(sti_cache_trace *t, sti_click_ids *ids, const char *id,
                            size_t length)
{
    bool fresh;
    const int64_t k = sti_click_ids_find(ids, 0, id, length, &fresh);
    if (k < 0)
        return STINT_E_MEMORY;
    if (fresh)
        ids->entry[k].first = (uint64_t)t->requests;
    ids->entry[k].count++;
    t->rank[t->requests++] = (uint32_t)k;
    return STINT_OK;
}

static stint_status take_records(sti_cache_trace *t, sti_click_ids *ids, const char *at,
                                 size_t bytes, const char *path)
{
    stint_status st = STINT_OK;
    if (bytes % RECORD != 0)
        return sti_fail(STINT_E_INPUT, "%s: %zu bytes are no records of %d", path,
                        bytes, RECORD);
    for (size_t i = 0; i < bytes && st == STINT_OK; i += RECORD)
        st = take_id(t, ids, at + i + 4, 8);
    return st;
}

static stint_status take_lines(sti_cache_trace *t, sti_click_ids *ids, const char *at,
                               const char *end)
{
    stint_status st = STINT_OK;
    while (at < end && st == STINT_OK) {
        const char *newline = memchr(at, '\n', (size_t)(end - at));
        const char *stop = newline ? newline : end;
        const size_t length = (size_t)(stop - at);
        if (length > UINT16_MAX)
            return sti_fail(STINT_E_INPUT,
                            "line %lld of the trace is too long for an id",
                            (long long)t->requests + 1);
        if (length > 0)
            st = take_id(t, ids, at, length);
        at = stop + 1;
    }
    return st;
}

static int by_frequency(const void *a, const void *b)
{
    const sti_click_entry *x = a, *y = b;
    if (x->count != y->count)
        return x->count > y->count ? -1 : 1;
    return x->first < y->first ? -1 : 1;
}

static stint_status make_ranks(sti_cache_trace *t, sti_click_ids *ids)
{
    uint32_t *rank = sti_alloc_array(ids->count + 1, sizeof *rank, "trace");
    if (!rank)
        return STINT_E_MEMORY;
    for (int64_t i = 0; i < ids->count; i++)
        ids->entry[i].rank = (uint32_t)i;
    qsort(ids->entry, (size_t)ids->count, sizeof *ids->entry, by_frequency);
    for (int64_t i = 0; i < ids->count; i++)
        rank[ids->entry[i].rank] = (uint32_t)i;
    for (int64_t i = 0; i < t->requests; i++)
        t->rank[i] = rank[t->rank[i]];
    t->distinct = ids->count;
    sti_free(rank);
    return STINT_OK;
}

stint_status sti_cache_trace_read(const char *path, sti_cache_trace *trace_out)
{
    const bool binary = strcmp(sti_path_extension(path), ".bin") == 0;
    sti_cache_trace t = {.rank = NULL};
    sti_click_ids ids = {.entry = NULL};
    void *bytes = NULL;
    size_t n = 0;
    stint_status st;
    STI_TRY(sti_file_read(path, FILE_MOST, &bytes, &n));
    int64_t most = (int64_t)(n / RECORD);
    for (size_t i = 0; i < n && !binary; i++)
        most = i == 0 ? 1 : most + (((const char *)bytes)[i] == '\n');
    t.rank = sti_alloc_array(most + 2, sizeof *t.rank, "trace");
    if (!t.rank) {
        st = STINT_E_MEMORY;
        goto out;
    }
    STI_TRY(binary ? take_records(&t, &ids, bytes, n, path)
                   : take_lines(&t, &ids, bytes, (const char *)bytes + n));
    if (t.requests == 0) {
        st = sti_fail(STINT_E_INPUT, "%s: holds no request", path);
        goto out;
    }
    STI_TRY(make_ranks(&t, &ids));
    *trace_out = t;
    t.rank = NULL;
out:
    sti_free(bytes);
    sti_free(t.rank);
    sti_click_ids_fini(&ids);
    return st;
}

void sti_cache_trace_fini(sti_cache_trace *trace)
{
    sti_free(trace->rank);
    *trace = (sti_cache_trace){.rank = NULL};
}

/* ---- running ---- */

/* A trace in batches. */
typedef struct course {
    const sti_cache_trace *trace;
    int64_t batch;
    uint32_t *rank, *slot, *scratch; /* [batch] */
} course;

static stint_status look(void *user, int64_t batch, uint32_t *rank_out,
                         int64_t *count_out)
{
    const course *c = user;
    const int64_t first = batch * c->batch, left = c->trace->requests - first;
    const int64_t n = left < c->batch ? left : c->batch;
    memcpy(rank_out, c->trace->rank + first, (size_t)n * sizeof *rank_out);
    *count_out = sti_row_batch_unique(rank_out, n, c->scratch);
    return STINT_OK;
}

/* Before the first request: static holds the most frequent ids, future those that come
 * first, as far as there are slots. */
static void warm(const sti_cache_trace *t, sti_cache_policy policy,
                 sti_cache_index *index)
{
    uint32_t victim;
    if (policy == STI_CACHE_STATIC)
        (void)sti_cache_index_warm(index);
    for (int64_t i = 0;
         policy == STI_CACHE_FUTURE && i < t->requests && index->filled < index->slots;
         i++)
        if (sti_cache_index_find(index, t->rank[i]) == STI_CACHE_NONE)
            sti_cache_index_release(index,
                                    sti_cache_index_take(index, t->rank[i], &victim),
                                    STI_CACHE_NEVER);
}

static stint_status run_batches(course *c, const sti_cache_desc *desc,
                                sti_cache_flow *flow)
{
    stint_status st = sti_cache_flow_init(flow, desc);
    if (st == STINT_OK)
        warm(c->trace, desc->policy, &flow->index);
    for (int64_t b = 0; b < desc->batches && st == STINT_OK; b++) {
        int64_t count = 0;
        st = look(c, b, c->rank, &count);
        if (st == STINT_OK)
            st = sti_cache_flow_prepare(flow, b, c->rank, count, c->slot);
        if (st == STINT_OK)
            sti_cache_flow_release(flow, b, c->slot, count, true);
    }
    return st;
}

stint_status sti_cache_trace_run(const sti_cache_trace *t, int64_t slots,
                                 sti_cache_policy policy, int64_t lookahead,
                                 int64_t batch, sti_cache_ratio *ratio_out)
{
    const int64_t batches = (t->requests + batch - 1) / batch;
    const int64_t ahead = lookahead > 0 && lookahead < batches ? lookahead : batches;
    sti_cache_flow flow = {.look = NULL};
    course c = {.trace = t,
                .batch = batch,
                .rank = sti_alloc_array(batch + 1, sizeof *c.rank, "trace"),
                .slot = sti_alloc_array(batch + 1, sizeof *c.slot, "trace"),
                .scratch = sti_alloc_array(batch + 1, sizeof *c.scratch, "trace")};
    const sti_cache_desc desc = {.policy = policy,
                                 .rows = t->distinct,
                                 .slots = slots,
                                 .lookahead = ahead,
                                 .entries = (ahead + 2) * batch,
                                 .most = batch,
                                 .batches = batches,
                                 .look = look,
                                 .user = &c};
    stint_status st =
        c.rank && c.slot && c.scratch ? run_batches(&c, &desc, &flow) : STINT_E_MEMORY;
    *ratio_out = (sti_cache_ratio){batches, flow.touched, flow.missed_all};
    sti_cache_flow_fini(&flow);
    sti_free(c.rank);
    sti_free(c.slot);
    sti_free(c.scratch);
    return st;
}
