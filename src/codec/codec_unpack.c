/* Unpacking: the head and its tables, then chunks in groups that one thread decodes
 * side by side, w in place of x first and x' from it as soon as no neighbour needs w.
 */
#include <string.h>

#include "base/fail.h"
#include "codec/codec_work.h"
#include "kernel/lane/bf16_kernels.h"

static stint_status damaged(const char *what)
{
    return sti_fail(STINT_E_INPUT, "packed block: damaged, %s", what);
}

static sti_codec_entry entry_of(const sti_codec_unpack_job *job, int64_t chunk)
{
    sti_codec_entry e;
    memcpy(&e,
           job->packed + job->head.front_bytes -
               (size_t)(job->layout.chunks - chunk) * sizeof e,
           sizeof e);
    return e;
}

static bool entry_is_sound(const sti_codec_unpack_job *job, const sti_codec_entry *e,
                           int64_t n)
{
    const uint64_t raw = (uint64_t)n * sizeof(float);
    if (e->outliers == STI_CODEC_RAW)
        return e->bytes == raw;
    return job->head.contexts > 0 && e->bytes <= raw && e->outliers <= (uint64_t)n &&
           e->bytes >=
               STI_CODEC_STATES_BYTES + (uint64_t)e->outliers * STI_CODEC_OUTLIER_BYTES;
}

/* Where each group's chunks begin; all of them must end where the padding does begin.
 */
static stint_status find_chunks(sti_codec_unpack_job *job)
{
    uint64_t at = job->head.front_bytes;
    for (int64_t i = 0; i < job->layout.chunks; i++) {
        const sti_codec_entry e = entry_of(job, i);
        if (!entry_is_sound(job, &e, sti_codec_chunk_n(&job->layout, i)))
            return damaged("a chunk of no possible size");
        if (i % STI_CODEC_GROUP == 0)
            job->offset[i / STI_CODEC_GROUP] = (int64_t)at;
        at += e.bytes;
    }
    return at == job->head.bytes - STI_CODEC_PAD_BYTES
               ? STINT_OK
               : damaged("chunks that do not add up");
}

static void build_table(void *arg, int64_t piece, int worker)
{
    (void)worker;
    const sti_codec_unpack_job *job = arg;
    sti_codec_table_build(job->model, (int)piece, job->table + piece * STI_CODEC_SCALE);
}

static stint_status read_model(const sti_team *team, sti_codec_unpack_job *job)
{
    const sti_codec_head *h = &job->head;
    const uint8_t *at = job->packed + sizeof *h;
    static const uint8_t none[1] = {0};
    const uint8_t *code = none;
    job->model->contexts = h->contexts;
    if (h->contexts == 0)
        return STINT_OK;
    if (job->layout.channels > 1) {
        code = at;
        at += job->layout.channels;
    }
    sti_codec_usual_expand(code, job->layout.channels, job->usual);
    if (!sti_codec_model_read(at, h->model_bytes, job->model))
        return damaged("distributions that are none");
    job->form = (sti_codec_form){.predictor = (stint_codec_predictor)h->predictor,
                                 .direct_positive = h->flags & STI_CODEC_POSITIVE,
                                 .left = job->layout.left,
                                 .up = job->layout.up,
                                 .channels = job->layout.channels,
                                 .usual = job->usual,
                                 .map = job->model->map,
                                 .kind = job->sink.kind};
    job->quant = (sti_codec_quant){.step = h->step,
                                   .dither = h->flags & STI_CODEC_DITHER,
                                   .dither_unit = h->step * 0x1p-8f,
                                   .seed = h->seed,
                                   .id = h->id,
                                   .shard = h->shard};
    sti_team_run(team, h->contexts, build_table, job);
    return STINT_OK;
}

/* ---- groups ---- */

/* Values of a stream decoded before what they allow is restored and handed over, while
 * it is in the nearer caches. */
enum { RUN = 4096, RUN_UNIT = 256 /* of the dither */ };

/* A coded chunk. */
typedef struct part {
    const uint8_t *outliers;
    uint32_t outlier_count, taken; /* outliers; those in place */
    int64_t restored;              /* values */
} part;

typedef struct group {
    const sti_codec_unpack_job *job;
    float *x; /* where value `begin` of the array goes */
    int64_t begin;
    sti_codec_stream stream[STI_CODEC_GROUP];
    part part[STI_CODEC_GROUP];
    int parts;
} group;

static void hand_over(const group *g, int64_t begin, int64_t n)
{
    const sti_codec_sink *sink = &g->job->sink;
    float *at = g->x + (begin - g->begin);
    if (sink->take)
        sink->take(sink->arg, begin, n, at);
    if (sink->x16)
        sti_bf16_kernels_now()->from_f32(n, at, sink->x16 + begin);
}

/* Those of values [.., to); they are in order. */
static bool put_outliers(const sti_codec_stream *s, part *p, int64_t to)
{
    for (; p->taken < p->outlier_count; p->taken++) {
        const uint8_t *o = p->outliers + (size_t)p->taken * STI_CODEC_OUTLIER_BYTES;
        uint16_t position;
        memcpy(&position, o, 2);
        if (position >= to)
            return true;
        if (position < p->restored)
            return false;
        memcpy((char *)s->w + 4 * (size_t)position, o + 2, 4);
    }
    return true;
}

/* w in place of which nothing is decoded any more becomes x'. */
static bool restore_to(group *g, int i, int64_t to)
{
    const sti_codec_stream *s = &g->stream[i];
    part *p = &g->part[i];
    const int64_t from = p->restored;
    if (to <= from)
        return true;
    g->job->kernels->restore(&g->job->quant, s->begin + from, to - from,
                             (char *)s->w + 4 * from);
    if (!put_outliers(s, p, to))
        return false;
    hand_over(g, s->begin + from, to - from);
    p->restored = to;
    return true;
}

/* `streams` chunks of n values from the group's chunk `first` on, side by side. */
static bool decode_parts(group *g, int first, int streams)
{
    const sti_codec_unpack_job *job = g->job;
    const int64_t reach = job->form.left + job->form.up, n = g->stream[first].n;
    for (int64_t from = 0, to; from < n; from = to) {
        to = from + RUN < n ? from + RUN : n;
        if (!job->kernels->decode(&job->form, job->table, streams, &g->stream[first],
                                  from, to))
            return false;
        const int64_t free = to < n ? to - reach : n;
        for (int i = first; i < first + streams; i++)
            if (!restore_to(g, i, free < n ? free / RUN_UNIT * RUN_UNIT : n))
                return false;
    }
    return true;
}

/* Is the stream at its end, all of its outliers in place? */
static bool is_done(const sti_codec_stream *s, const part *p)
{
    bool done = s->words == s->end && p->taken == p->outlier_count;
    for (int i = 0; i < STI_CODEC_LANES; i++)
        done = done && s->state[i] == STI_CODEC_STATE_MIN;
    return done;
}

static bool decode_group(group *g)
{
    bool good = true;
    if (g->parts == STI_CODEC_GROUP && g->stream[g->parts - 1].n == g->stream[0].n)
        good = decode_parts(g, 0, g->parts);
    else
        for (int i = 0; i < g->parts && good; i++)
            good = decode_parts(g, i, 1);
    for (int i = 0; i < g->parts && good; i++)
        good = is_done(&g->stream[i], &g->part[i]);
    return good;
}

static void add_part(group *g, const uint8_t *at, const sti_codec_entry *e,
                     int64_t begin, int64_t n)
{
    const uint8_t *list = at + e->bytes - (size_t)e->outliers * STI_CODEC_OUTLIER_BYTES;
    const sti_codec_sink *sink = &g->job->sink;
    float *x = g->x + (begin - g->begin);
    sti_codec_stream *s = &g->stream[g->parts];
    *s = (sti_codec_stream){.words = at + STI_CODEC_STATES_BYTES,
                            .end = list,
                            .mask = g->job->mask,
                            .begin = begin,
                            .n = n,
                            .w = x,
                            .also = sink->also ? sink->also + begin : x};
    memcpy(s->state, at, sizeof s->state);
    g->part[g->parts++] = (part){.outliers = list, .outlier_count = e->outliers};
}

static bool unpack_group(const sti_codec_unpack_job *job, int64_t index, int worker)
{
    const int64_t first = index * STI_CODEC_GROUP;
    const uint8_t *at = job->packed + job->offset[index];
    group g = {.job = job, .begin = first * job->layout.chunk};
    g.x = job->sink.x ? job->sink.x + g.begin : job->part + worker * job->part_n;
    for (int64_t i = first; i < first + STI_CODEC_GROUP && i < job->layout.chunks;
         i++) {
        const sti_codec_entry e = entry_of(job, i);
        const int64_t n = sti_codec_chunk_n(&job->layout, i);
        const int64_t begin = i * job->layout.chunk;
        if (job->kernels->checksum(at, e.bytes) != e.checksum)
            return false;
        if (e.outliers == STI_CODEC_RAW) {
            memcpy(g.x + (begin - g.begin), at, e.bytes);
            hand_over(&g, begin, n);
        } else {
            add_part(&g, at, &e, begin, n);
        }
        at += e.bytes;
    }
    return decode_group(&g);
}

static void unpack_piece(void *arg, int64_t piece, int worker)
{
    const sti_codec_unpack_job *job = arg;
    job->damaged[piece] = !unpack_group(job, piece, worker);
}

stint_status sti_codec_unpack_run(const sti_team *team, sti_codec_unpack_job *job)
{
    const int64_t groups = (job->layout.chunks + STI_CODEC_GROUP - 1) / STI_CODEC_GROUP;
    stint_status status = find_chunks(job);
    if (status == STINT_OK)
        status = read_model(team, job);
    if (status != STINT_OK)
        return status;
    sti_team_take(team, groups, unpack_piece, job);
    for (int64_t i = 0; i < groups; i++)
        if (job->damaged[i])
            return damaged("a chunk's checksum or stream does not fit");
    return STINT_OK;
}
