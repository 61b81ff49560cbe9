/* Packing: a sample decides on predictor and distributions, then chunks are coded, as
 * many at once as there are threads, and put behind each other. */
#include <math.h>
#include <sched.h>
#include <stdatomic.h>
#include <string.h>

#include "base/fail.h"
#include "codec/codec_work.h"
#include "kernel/lane/bf16_kernels.h"

enum {
    PROBE_N = 4096,       /* of a unit that predictors are compared on */
    FEW_VALUES = 1 << 19, /* fewer are sampled in fewer and longer units */
    SAMPLE_ALL = 1 << 15, /* no more are all counted */
    CELLS = STI_CODEC_BUCKETS * STI_CODEC_TOKENS
};

/* A run of values inside a chunk, by which the array is sampled. */
typedef struct unit {
    int64_t chunk;
    int64_t from, to; /* in the chunk; from a multiple of 256 */
    int64_t first;    /* where quantising must begin for neighbours to be there */
} unit;

static unit unit_of(const sti_codec_layout *l, int64_t i, int64_t units, int64_t n)
{
    const int64_t most = l->count > n ? l->count - n : 0;
    const int64_t at = units > 1 ? most / (units - 1) * i : most / 2;
    unit u = {.chunk = at / l->chunk};
    const int64_t size = sti_codec_chunk_n(l, u.chunk);
    u.from = at % l->chunk;
    if (u.from + n > size)
        u.from = size > n ? size - n : 0;
    u.from &= ~INT64_C(255);
    u.to = u.from + n < size ? u.from + n : size;
    u.first = u.from - l->left - l->up;
    u.first = u.first > 0 ? u.first & ~INT64_C(255) : 0;
    return u;
}

/* How many units predictors are compared on. */
static int probe_units(const sti_codec_layout *l)
{
    return l->count < FEW_VALUES ? 4 : 8;
}

/* Units that distributions are fitted to, and the values of one. */
static int64_t sample_units(const sti_codec_layout *l)
{
    return l->count < FEW_VALUES ? 4 : 16;
}

static int64_t sample_n(const sti_codec_layout *l)
{
    enum { LEAST = 8192, MOST = 16384 };
    const int64_t share = l->count / 256 & ~INT64_C(255);
    return share < LEAST ? LEAST : share > MOST ? MOST : share;
}

/* All of chunk i. */
static unit whole_unit(const sti_codec_layout *l, int64_t i)
{
    return (unit){.chunk = i, .to = sti_codec_chunk_n(l, i)};
}

/* Values [begin, begin + n), made at `room` where they do not lie in memory. */
static const float *values_at(const sti_codec_pack_job *p, int64_t begin, int64_t n,
                              void *room)
{
    if (p->source.x)
        return p->source.x + begin;
    if (p->source.x16)
        sti_bf16_kernels_now()->to_f32(n, p->source.x16 + begin, room);
    else
        p->source.make(p->source.arg, begin, n, room);
    return room;
}

/* w of n values from `begin`, by one thread. A piece of what comes next is fetched
 * while one is quantised: else memory would wait for the loops and these for memory. */
static void quantise_run(const sti_codec_pack_job *p, int64_t thread, int64_t begin,
                         int64_t n, int32_t *w, uint8_t *list, int64_t room,
                         sti_codec_found *found)
{
    const int64_t most = STI_CODEC_MADE;
    const float *from = p->source.x ? p->source.x : p->source.from;
    for (int64_t i = 0; i < n; i += most) {
        const int64_t here = n - i < most ? n - i : most;
        const float *x = values_at(p, begin + i, here, p->made[thread]);
        const bool more = from && n - i >= 2 * most;
        const sti_codec_span span = {.x = x,
                                     .next = more ? from + begin + i + most : x,
                                     .mask = p->mask,
                                     .begin = begin + i,
                                     .n = here,
                                     .place = i};
        p->kernels->quantise(&p->quant, &span, w + i, list, room, found);
    }
}

/* w of a unit; the result is the place of the chunk's value 0. */
static const int32_t *quantise_unit(const sti_codec_pack_job *p, const unit *u,
                                    int64_t thread)
{
    int32_t *w = p->w[thread];
    sti_codec_found found = {0};
    quantise_run(p, thread, u->chunk * p->layout.chunk + u->first, u->to - u->first,
                 w + u->first, NULL, 0, &found);
    return w;
}

/* ---- the choice of predictor ---- */

/* The bits of the largest finite |x|, or of `most`. */
static uint32_t larger(const float *x, int64_t n, uint32_t most)
{
    for (int64_t i = 0; i < n; i++) {
        uint32_t size;
        memcpy(&size, &x[i], sizeof size);
        size &= 0x7fffffffu;
        size = size < 0x7f800000u ? size : 0;
        most = size > most ? size : most;
    }
    return most;
}

static float largest(const sti_codec_pack_job *p)
{
    uint32_t bits = 0;
    float most;
    for (int i = 0, units = probe_units(&p->layout); i < units; i++) {
        const unit u = unit_of(&p->layout, i, units, PROBE_N);
        const int64_t n = u.to - u.from;
        const float *x =
            values_at(p, u.chunk * p->layout.chunk + u.from, n, p->stream[0]);
        bits = larger(x, n, bits);
    }
    memcpy(&most, &bits, sizeof most);
    return most;
}

static bool is_candidate(const sti_codec_pack_job *p, int i)
{
    return p->desc->predictor == STINT_CODEC_AUTO || (int)p->desc->predictor == i + 1;
}

/* A unit's share in the sums of measure_usual; values without all their neighbours have
 * none. */
static void add_activity(const sti_codec_pack_job *p, const int32_t *w, const unit *u)
{
    const sti_codec_layout *l = &p->layout;
    const int64_t channels = l->channels, reach = l->left + l->up;
    int64_t i = u->from > reach ? u->from : reach;
    while (i < u->to) {
        const int64_t c = (u->chunk * l->chunk + i) % channels;
        const int64_t n = channels - c < u->to - i ? channels - c : u->to - i;
        for (int k = 0; k < STI_CODEC_CANDIDATES; k++)
            if (is_candidate(p, k))
                p->kernels->add_residuals((stint_codec_predictor)(k + 1), l->left,
                                          l->up, w + i, n, p->sums + k * channels + c);
        for (int64_t j = 0; j < n; j++)
            p->sums[STI_CODEC_CANDIDATES * channels + c + j]++;
        i += n;
    }
}

static sti_codec_form form_of(const sti_codec_pack_job *p,
                              stint_codec_predictor predictor)
{
    return (sti_codec_form){
        .predictor = predictor,
        .direct_positive = predictor == STINT_CODEC_DIRECT && !p->negative,
        .left = p->layout.left,
        .up = p->layout.up,
        .channels = p->layout.channels,
        .usual = p->usual + (predictor - 1) * (p->layout.channels + STI_CODEC_LANES),
        .map = p->model->map,
        .kind = p->source.kind};
}

/* What is usual for each channel under each candidate; sums [candidates + 1][channels],
 * the last ones count values. */
static void measure_usual(sti_codec_pack_job *p)
{
    const sti_codec_layout *l = &p->layout;
    const int64_t channels = l->channels;
    const int64_t *number = p->sums + STI_CODEC_CANDIDATES * channels;
    memset(p->sums, 0, (size_t)channels * (STI_CODEC_CANDIDATES + 1) * sizeof *p->sums);
    for (int k = 0, units = probe_units(l); k < units; k++) {
        const unit u = unit_of(l, k, units, PROBE_N);
        const int32_t *w = quantise_unit(p, &u, 0);
        int32_t least = 0;
        for (int64_t j = u.from; j < u.to; j++)
            least = w[j] < least ? w[j] : least;
        p->negative |= least < 0;
        if (channels > 1)
            add_activity(p, w, &u);
    }
    for (int i = 0; i < STI_CODEC_CANDIDATES; i++) {
        uint8_t *code = p->usual_code + i * channels;
        for (int64_t c = 0; c < channels; c++) {
            const int64_t n = number[c], sum = p->sums[i * channels + c];
            code[c] = n ? sti_codec_usual_code((4 * sum + n / 2) / n) : 0;
        }
        sti_codec_usual_expand(code, channels,
                               p->usual + i * (channels + STI_CODEC_LANES));
    }
}

typedef struct compare_job {
    const sti_codec_pack_job *p;
    int64_t workers;
    double bits[STI_CODEC_CANDIDATES];
} compare_job;

/* Piece i weighs every so-many-th candidate, on half of the probe. */
static void compare_piece(void *arg, int64_t piece, int worker)
{
    (void)worker;
    compare_job *job = arg;
    const sti_codec_pack_job *p = job->p;
    for (int64_t i = piece; i < STI_CODEC_CANDIDATES; i += job->workers)
        memset(p->counts + i * CELLS, 0, CELLS * sizeof *p->counts);
    for (int k = 0, units = probe_units(&p->layout); k < units; k += 2) {
        const unit u = unit_of(&p->layout, k, units, PROBE_N);
        const int32_t *w = quantise_unit(p, &u, piece);
        for (int64_t i = piece; i < STI_CODEC_CANDIDATES; i += job->workers) {
            const sti_codec_form form = form_of(p, (stint_codec_predictor)(i + 1));
            p->kernels->count(&form, u.chunk * p->layout.chunk, w, p->mask, u.from,
                              u.to, p->counts + i * CELLS);
        }
    }
    for (int64_t i = piece; i < STI_CODEC_CANDIDATES; i += job->workers)
        job->bits[i] = sti_codec_model_cost(p->counts + i * CELLS);
}

/* The candidate under which the probe takes the fewest bits. */
static stint_codec_predictor compare_predictors(const sti_codec_pack_job *p)
{
    const int64_t lanes = p->team.threads, most = STI_CODEC_CANDIDATES;
    compare_job job = {.p = p, .workers = lanes < most ? lanes : most};
    double least = INFINITY;
    int best = 0;
    sti_team_run(&p->team, job.workers, compare_piece, &job);
    for (int i = 0; i < STI_CODEC_CANDIDATES; i++)
        if (job.bits[i] < least) {
            least = job.bits[i];
            best = i;
        }
    return (stint_codec_predictor)(best + 1);
}

static void choose_predictor(sti_codec_pack_job *p)
{
    stint_codec_predictor best = p->desc->predictor;
    measure_usual(p);
    if (best == STINT_CODEC_AUTO)
        best = compare_predictors(p);
    p->model->predictor = best;
    p->form = form_of(p, best);
    p->usual_code += (best - 1) * p->layout.channels;
    p->quant.positive = p->form.direct_positive;
}

/* ---- distributions ---- */

typedef struct count_job {
    const sti_codec_pack_job *p;
    int64_t units, workers;
    bool whole;
} count_job;

static void count_unit(const sti_codec_pack_job *p, const unit *u, int64_t table)
{
    const int32_t *w = quantise_unit(p, u, table);
    p->kernels->count(&p->form, u->chunk * p->layout.chunk, w, p->mask, u->from, u->to,
                      p->counts + table * CELLS);
}

/* Piece i counts every so-many-th unit into table i. */
static void count_piece(void *arg, int64_t piece, int worker)
{
    (void)worker;
    const count_job *job = arg;
    const sti_codec_layout *l = &job->p->layout;
    for (int64_t i = piece; i < job->units; i += job->workers) {
        const unit u =
            job->whole ? whole_unit(l, i) : unit_of(l, i, job->units, sample_n(l));
        count_unit(job->p, &u, piece);
    }
}

static void fit_model(sti_codec_pack_job *p)
{
    const bool whole = p->layout.count <= SAMPLE_ALL;
    const int lanes = p->team.threads;
    count_job job = {.p = p,
                     .whole = whole,
                     .units = whole ? p->layout.chunks : sample_units(&p->layout),
                     .workers = lanes};
    memset(p->counts, 0, (size_t)lanes * CELLS * sizeof *p->counts);
    sti_team_run(&p->team, lanes, count_piece, &job);
    int64_t sampled = 0;
    for (int t = 1; t < lanes; t++)
        for (int i = 0; i < CELLS; i++)
            p->counts[i] += p->counts[(int64_t)t * CELLS + i];
    for (int i = 0; i < CELLS; i++)
        sampled += p->counts[i];
    /* Masked values are in neither. */
    sti_codec_model_fit(
        p->counts, sampled,
        whole ? sampled : p->layout.count / sample_n(&p->layout) * sampled / job.units,
        p->fit, p->model);
    p->model->direct_positive = p->form.direct_positive;
    sti_codec_coder_build(p->model, p->entry);
}

/* ---- chunks ---- */

typedef struct chunk_outcome {
    const uint8_t *payload;
    sti_codec_entry entry;
    sti_codec_found found;
} chunk_outcome;

/* Workers take chunks in order, each the next one that nobody has, and put them behind
 * each other in order: who is early waits for the chunk before his, which somebody is
 * at work on. */
typedef struct chunk_job {
    sti_codec_pack_job *p;
    _Atomic int64_t next, done; /* chunks taken; put in place */
} chunk_job;

static void keep_raw(const sti_codec_pack_job *p, int64_t begin, int64_t n,
                     void *buffer, chunk_outcome *o)
{
    const float *x = values_at(p, begin, n, buffer);
    o->payload = (const uint8_t *)x;
    o->entry.bytes = (uint32_t)((size_t)n * sizeof *x);
    o->entry.outliers = STI_CODEC_RAW;
    o->entry.checksum = p->kernels->checksum(x, o->entry.bytes);
    o->found.outliers = 0;
    o->found.max_error = 0.0f;
}

/* Outliers of a chunk that are listed; with more of them it is raw. */
static int64_t outlier_room(const sti_codec_pack_job *p, int64_t chunk)
{
    return sti_codec_chunk_n(&p->layout, chunk) / 8;
}

/* w of a chunk, and its outliers in front of the buffer. */
static void quantise_chunk(const sti_codec_pack_job *p, int64_t chunk, int64_t worker,
                           chunk_outcome *o)
{
    *o = (chunk_outcome){.payload = NULL};
    quantise_run(p, worker, chunk * p->layout.chunk,
                 sti_codec_chunk_n(&p->layout, chunk), p->w[worker], p->stream[worker],
                 outlier_room(p, chunk), &o->found);
}

/* The outliers move behind the stream, which grows towards the front. */
static void encode_chunk(const sti_codec_pack_job *p, int64_t chunk, int64_t worker,
                         chunk_outcome *o)
{
    const int64_t n = sti_codec_chunk_n(&p->layout, chunk);
    const int64_t begin = chunk * p->layout.chunk, room = outlier_room(p, chunk);
    uint8_t *buffer = p->stream[worker];
    const size_t size = (size_t)n * sizeof(float);
    if (o->found.outliers <= room && p->model->contexts > 0) {
        const size_t list = (size_t)o->found.outliers * STI_CODEC_OUTLIER_BYTES;
        uint8_t *top = buffer + size - list;
        memmove(top, buffer, list);
        o->payload = p->kernels->encode(&p->form, &p->coder, begin, p->w[worker],
                                        p->mask, n, buffer, top);
    }
    if (!o->payload) {
        keep_raw(p, begin, n, buffer, o);
        return;
    }
    o->entry.bytes = (uint32_t)(buffer + size - o->payload);
    o->entry.outliers = (uint32_t)o->found.outliers;
    o->entry.checksum = p->kernels->checksum(o->payload, o->entry.bytes);
}

/* Behind what is there already, if it fits. */
static void take_chunk(sti_codec_pack_job *p, int64_t chunk, const chunk_outcome *o)
{
    if (p->out && p->bytes + o->entry.bytes <= p->capacity)
        memcpy(p->out + p->bytes, o->payload, o->entry.bytes);
    p->bytes += o->entry.bytes;
    p->entries[chunk] = o->entry;
    p->found.zeros += o->found.zeros;
    p->found.outliers += o->found.outliers;
    p->found.unmasked |= o->found.unmasked;
    if (o->found.max_error > p->found.max_error)
        p->found.max_error = o->found.max_error;
    if (o->entry.outliers == STI_CODEC_RAW)
        p->raw += sti_codec_chunk_n(&p->layout, chunk);
}

static bool is_turn(const chunk_job *job, int64_t chunk)
{
    return atomic_load_explicit(&job->done, memory_order_acquire) == chunk;
}

static void wait_for(const chunk_job *job, int64_t chunk)
{
    enum { SPINS = 1000 };
    for (int i = 0; !is_turn(job, chunk); i++)
        if (i >= SPINS)
            sched_yield();
}

/* In its turn. */
static void place_chunk(chunk_job *job, int64_t chunk, const chunk_outcome *o)
{
    wait_for(job, chunk);
    take_chunk(job->p, chunk, o);
    atomic_store_explicit(&job->done, chunk + 1, memory_order_release);
}

/* May the next chunk's outliers be listed while these bytes lie in the buffer? */
static bool can_stay(const sti_codec_pack_job *p, int64_t chunk, int64_t worker,
                     const chunk_outcome *o)
{
    const size_t list = (size_t)outlier_room(p, chunk) * STI_CODEC_OUTLIER_BYTES;
    return o->entry.outliers != STI_CODEC_RAW && o->payload >= p->stream[worker] + list;
}

/* A chunk whose turn has not come when it is coded waits until the next one is
 * quantised, if there is room for both. */
static void pack_piece(void *arg, int64_t piece, int worker)
{
    (void)worker;
    chunk_job *job = arg;
    chunk_outcome ready, outcome;
    int64_t chunk, waiting = -1; /* whose outcome is `ready` */
    while ((chunk = atomic_fetch_add(&job->next, 1)) < job->p->layout.chunks) {
        quantise_chunk(job->p, chunk, piece, &outcome);
        if (waiting >= 0)
            place_chunk(job, waiting, &ready);
        encode_chunk(job->p, chunk, piece, &outcome);
        waiting = -1;
        if (is_turn(job, chunk) || !can_stay(job->p, chunk, piece, &outcome)) {
            place_chunk(job, chunk, &outcome);
        } else {
            ready = outcome;
            waiting = chunk;
        }
    }
    if (waiting >= 0)
        place_chunk(job, waiting, &ready);
}

static void pack_chunks(sti_codec_pack_job *p)
{
    chunk_job job = {.p = p};
    const int64_t chunks = p->layout.chunks;
    const int64_t workers = p->team.threads < chunks ? p->team.threads : chunks;
    sti_team_run(&p->team, workers, pack_piece, &job);
}

/* ---- the block ---- */

static void fill_head(const sti_codec_pack_job *p, sti_codec_head *head)
{
    const stint_codec_desc *d = p->desc;
    sti_codec_head_begin(head);
    head->bytes = p->bytes;
    for (int i = 0; i < d->rank; i++)
        head->dim[i] = d->dim[i];
    head->bound = d->bound;
    head->max_error = (double)p->found.max_error;
    head->zeros = p->found.zeros;
    head->outliers = p->found.outliers;
    head->raw = p->raw;
    head->front_bytes = (uint32_t)p->front_bytes;
    head->rank = (uint8_t)d->rank;
    head->predictor = (uint8_t)p->model->predictor;
    head->contexts = (uint8_t)p->model->contexts;
    head->flags = (uint8_t)((p->quant.dither ? STI_CODEC_DITHER : 0) |
                            (p->mask ? STI_CODEC_MASKED : 0) |
                            (p->model->direct_positive ? STI_CODEC_POSITIVE : 0) |
                            (p->source.kind ? STI_CODEC_KINDS : 0));
    if (p->model->contexts == 0)
        return;
    head->model_bytes = (uint32_t)p->model_bytes;
    head->step = p->quant.step;
    if (p->quant.dither) {
        head->seed = d->seed;
        head->id = d->id;
        head->shard = d->shard;
    }
}

/* Head, usual, model, entries; then zeros behind everything. */
static void write_front(const sti_codec_pack_job *p)
{
    sti_codec_head head;
    uint8_t *at = p->out + sizeof head;
    fill_head(p, &head);
    if (p->model->contexts > 0 && p->layout.channels > 1) {
        memcpy(at, p->usual_code, (size_t)p->layout.channels);
        at += p->layout.channels;
    }
    memcpy(at, p->model_coded, head.model_bytes);
    at += head.model_bytes;
    memcpy(at, p->entries, (size_t)p->layout.chunks * sizeof *p->entries);
    memset(p->out + p->bytes - STI_CODEC_PAD_BYTES, 0, STI_CODEC_PAD_BYTES);
    memcpy(p->out, &head, sizeof head);
    const size_t skip = offsetof(sti_codec_head, bytes);
    head.checksum = p->kernels->checksum(p->out + skip, p->front_bytes - skip);
    memcpy(p->out, &head, sizeof head);
}

static void pack_all(sti_codec_pack_job *p)
{
    p->found = (sti_codec_found){0};
    p->raw = 0;
    p->front_bytes =
        sti_codec_front_bytes(&p->layout, p->model->contexts, p->model_bytes);
    p->bytes = p->front_bytes;
    pack_chunks(p);
    p->bytes += STI_CODEC_PAD_BYTES;
}

stint_status sti_codec_pack_run(sti_codec_pack_job *p)
{
    sti_codec_quant_set(p->desc, 0.0f, &p->quant);
    p->model->contexts = 0;
    p->model->predictor = STINT_CODEC_DIRECT;
    p->model->direct_positive = false;
    if (p->desc->bound >= STI_CODEC_LEAST_BOUND && p->layout.count > 0) {
        const unsigned mode = sti_float_mode_enter();
        sti_codec_quant_set(p->desc, largest(p), &p->quant);
        choose_predictor(p);
        sti_float_mode_leave(mode);
        fit_model(p);
        p->model_bytes = sti_codec_model_write(p->model, p->model_coded);
    }
    pack_all(p);
    if (p->raw == p->layout.count && p->model->contexts > 0) {
        /* Nothing is coded: a model would be for nothing. */
        p->model->contexts = 0;
        p->model_bytes = 0;
        pack_all(p);
    }
    if (p->found.unmasked)
        return sti_fail(STINT_E_INPUT,
                        "codec: a value that is not zero where the mask is 0");
    if (p->out && p->bytes <= p->capacity)
        write_front(p);
    return STINT_OK;
}
