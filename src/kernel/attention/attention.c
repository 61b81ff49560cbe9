#include "kernel/attention/attention.h"

#include <math.h>
#include <string.h>

#include "kernel/gemm/brgemm.h"
#include "kernel/gemm/gemm_tile.h"
#include "kernel/lane/dispatch.h"
#include "kernel/softmax/softmax_row.h"

enum {
    BLOCK = 64 /* keys, and queries, of a tile; that of keys is part of the numerics */
};

/* Operands of a tile lie in blocks of their own: rows of qkv are so far apart that few
 * of them fit the first cache beside each other. */
typedef struct attention_job {
    const sti_attention *a;
    const sti_softmax_kernels *row;
    const sti_gemm_kernels *copy;
    const float *qkv, *dy, *y;
    float *out, *stats; /* forward */
    const float *saved; /* backward: the stats */
    float *dqkv;
    float *scratch;
    int64_t worker_floats, width;
    float factor; /* 1 / sqrt(size) */
} attention_job;

/* One head of one sequence, and the worker's blocks. */
typedef struct head {
    const attention_job *job;
    const float *q, *k, *v; /* [length, size], rows job->width apart */
    float *scaled;          /* [length, size]: queries times the factor */
    float *s;               /* [BLOCK, BLOCK]: scores, then weights */
    float *kt;              /* [size, BLOCK]: keys transposed */
    float *vb;              /* [BLOCK, size]: values */
    int64_t stats;          /* where the [length, 2] of this head begin */
} head;

static int64_t block_end(int64_t first, int64_t length)
{
    return first + BLOCK < length ? first + BLOCK : length;
}

/* Keys that query t sees among [j0, j1): how many. */
static int64_t seen(const sti_attention *a, int64_t t, int64_t j0, int64_t j1)
{
    const int64_t end = a->causal && t + 1 < j1 ? t + 1 : j1;
    return end > j0 ? end - j0 : 0;
}

/* Keys of the block from j0 that are behind the window of query t. */
static int64_t behind(const sti_attention *a, int64_t t, int64_t j0)
{
    const int64_t first = a->window ? t + 1 - a->window - j0 : 0;
    return first > 0 ? first : 0;
}

/* Keys behind the window weigh nothing. Returns how many of the n there are to be
 * looked at: all, or none where all are behind it. */
static int64_t hide(const sti_attention *a, int64_t t, int64_t j0, int64_t n, float *s)
{
    const int64_t hidden = behind(a, t, j0);
    if (hidden >= n)
        return 0;
    for (int64_t j = 0; j < hidden; j++)
        s[j] = -INFINITY;
    return n;
}

/* End of the queries that see any key of the block [j0, j1). */
static int64_t last_query(const sti_attention *a, int64_t j1)
{
    const int64_t end = a->window ? j1 + a->window - 1 : a->length;
    return end < a->length ? end : a->length;
}

static void copy_rows(const attention_job *job, const float *x, int64_t ld,
                      int64_t rows, float *block)
{
    const int64_t size = job->a->size;
    job->copy->pack(x, ld, rows, size, size, block);
}

static void copy_columns(const attention_job *job, const float *x, int64_t rows,
                         float *block)
{
    job->copy->pack_transposed(x, job->width, job->a->size, rows, BLOCK, block);
}

static void scale_queries(const head *h)
{
    const int64_t size = h->job->a->size, length = h->job->a->length;
    copy_rows(h->job, h->q, h->job->width, length, h->scaled);
    for (int64_t i = 0; i < length * size; i++)
        h->scaled[i] *= h->job->factor;
}

/* s = scaled queries [i0, i1) times `keys` keys. */
static void find_scores(const head *h, int64_t i0, int64_t i1, int64_t keys)
{
    const int64_t size = h->job->a->size;
    const sti_brgemm g = {
        .m = i1 - i0, .n = keys, .k = size, .lda = size, .ldb = BLOCK, .ldc = BLOCK};
    sti_brgemm_stride_f32(&g, 1, h->scaled + i0 * size, h->kt, 0, 0, h->s);
}

static void zero_from(float *s, int64_t n, int64_t count)
{
    if (n < count)
        memset(s + n, 0, (size_t)(count - n) * sizeof *s);
}

/* Rows [n, size], in whole lines of the cache. */
static int64_t room(int64_t n, int64_t size)
{
    return (n * size + 15) / 16 * 16;
}

static int64_t scaled_floats(const sti_attention *a)
{
    return room(a->length, a->size);
}

static int64_t block_floats(const sti_attention *a)
{
    return room(BLOCK, a->size);
}

/* ---- forward ---- */

static void forward_tile(const head *h, int64_t i0, int64_t i1, int64_t j0, int64_t j1,
                         float *out, int64_t ldo)
{
    const sti_attention *a = h->job->a;
    find_scores(h, i0, i1, j1 - j0);
    for (int64_t t = i0; t < i1; t++) {
        float *s = h->s + (t - i0) * BLOCK;
        const int64_t n = hide(a, t, j0, seen(a, t, j0, j1), s);
        if (n > 0)
            h->job->row->join(sti_softmax_pad(n, s), s,
                              h->job->stats + h->stats + 2 * t, a->size,
                              out + (t - i0) * ldo);
        zero_from(s, n, j1 - j0);
    }
    const sti_brgemm g = {.m = i1 - i0,
                          .n = a->size,
                          .k = j1 - j0,
                          .lda = BLOCK,
                          .ldb = a->size,
                          .ldc = ldo,
                          .accumulate = true};
    sti_brgemm_stride_f32(&g, 1, h->s, h->vb, 0, 0, out);
}

/* Head `index` of batch * heads; the blocks are the worker's. */
static head head_of(const attention_job *job, int64_t index, int worker)
{
    const sti_attention *a = job->a;
    const int64_t b = index / a->heads, i = index % a->heads;
    const int64_t group = i / (a->heads / a->kv_heads);
    const float *row = job->qkv + b * a->length * job->width;
    head h = {.job = job,
              .q = row + i * a->size,
              .k = row + (a->heads + group) * a->size,
              .v = row + (a->heads + a->kv_heads + group) * a->size,
              .stats = index * a->length * 2};
    h.scaled = job->scratch + worker * job->worker_floats;
    h.s = h.scaled + scaled_floats(a);
    h.kt = h.s + BLOCK * BLOCK;
    h.vb = h.kt + block_floats(a);
    return h;
}

static void forward_piece(void *arg, int64_t piece, int worker)
{
    const attention_job *job = arg;
    const sti_attention *a = job->a;
    const head h = head_of(job, piece, worker);
    const int64_t ldo = a->heads * a->size;
    float *stats = job->stats + h.stats;
    float *out =
        job->out + piece / a->heads * a->length * ldo + piece % a->heads * a->size;
    scale_queries(&h);
    for (int64_t t = 0; t < a->length; t++) {
        stats[2 * t] = -INFINITY;
        stats[2 * t + 1] = 0.0f;
        memset(out + t * ldo, 0, (size_t)a->size * sizeof *out);
    }
    for (int64_t j0 = 0; j0 < a->length; j0 += BLOCK) {
        const int64_t j1 = block_end(j0, a->length);
        copy_columns(job, h.k + j0 * job->width, j1 - j0, h.kt);
        copy_rows(job, h.v + j0 * job->width, job->width, j1 - j0, h.vb);
        const int64_t end = last_query(a, j1);
        for (int64_t i0 = a->causal ? j0 : 0; i0 < end; i0 += BLOCK)
            forward_tile(&h, i0, block_end(i0, a->length), j0, j1, out + i0 * ldo, ldo);
    }
    for (int64_t t = 0; t < a->length; t++)
        job->row->finish(a->size, stats[2 * t + 1], 0.0f, 1.0f, out + t * ldo);
}

static int64_t worker_floats(const sti_attention *a, bool backward)
{
    const int64_t wholes = backward ? 3 : 1, squares = backward ? 2 : 1;
    const int64_t blocks = backward ? 6 : 2;
    const int64_t floats =
        wholes * scaled_floats(a) + squares * BLOCK * BLOCK + blocks * block_floats(a);
    return floats + (backward ? (a->length + 15) / 16 * 16 : 0);
}

static attention_job job_of(const sti_attention *a, const float *qkv, void *scratch,
                            bool backward)
{
    return (attention_job){.a = a,
                           .row = STI_KERNELS_NOW(sti_softmax_kernels),
                           .copy = sti_gemm_kernels_now(),
                           .qkv = qkv,
                           .scratch = scratch,
                           .worker_floats = worker_floats(a, backward),
                           .width = sti_attention_width(a),
                           .factor = 1.0f / sqrtf((float)a->size)};
}

double sti_attention_flop(const sti_attention *a)
{
    const int64_t length = a->length;
    const int64_t far = a->window && a->window < length ? length - a->window : 0;
    const double pairs =
        (double)length * (double)(length + 1) * (a->causal ? 0.5 : 1.0) -
        (double)far * (double)(far + 1) * 0.5;
    return 4.0 * (double)(a->batch * a->heads * a->size) * pairs;
}

size_t sti_attention_scratch_bytes(const sti_attention *a, int threads)
{
    return (size_t)(threads * worker_floats(a, false)) * sizeof(float);
}

void sti_attention_f32(const sti_team *team, const sti_attention *a, const float *qkv,
                       float *y, float *stats, void *scratch)
{
    attention_job job = job_of(a, qkv, scratch, false);
    job.out = y;
    job.stats = stats;
    sti_team_run(team, a->batch * a->heads, forward_piece, &job);
}

/* ---- backward ----
 * With p the weights, D_t = dy_t . y_t: dv_j = sum_t p_tj dy_t,
 * ds_tj = p_tj (dy_t . v_j - D_t) factor, dq_t = sum_j ds_tj k_j, dk_j = sum_t ds_tj
 * q_t. A key-value head belongs to one piece, which walks the heads that share it, then
 * blocks of keys, then blocks of queries: every sum has one order. */

/* Where one head's gradients go and what they come from, and more blocks. */
typedef struct head_grad {
    head h;
    const float *dy, *y; /* rows ldo apart */
    float *dq, *dk, *dv; /* rows job->width apart */
    float *ds;           /* [BLOCK, BLOCK] */
    float *vt;           /* [size, BLOCK]: values transposed */
    float *qs, *dys;     /* [length, size]: queries and dy */
    float *kb;           /* [BLOCK, size] */
    float *dkb, *dvb;    /* [BLOCK, size]: sums of one block of keys */
    float *delta;        /* [length]: dy . y */
    int64_t ldo;
} head_grad;

/* s becomes the weights, ds their gradient times the factor. */
static void find_weights(const head_grad *g, int64_t t, int64_t n, int64_t count,
                         float *s, float *ds)
{
    const attention_job *job = g->h.job;
    const float *stats = job->saved + g->h.stats + 2 * t;
    if (n > 0)
        job->row->weights(sti_softmax_pad(n, s), stats[0], 1.0f / stats[1], g->delta[t],
                          job->factor, s, ds);
    zero_from(s, n, count);
    zero_from(ds, n, count);
}

static void backward_tile(const head_grad *g, int64_t i0, int64_t i1, int64_t j0,
                          int64_t j1)
{
    const head *h = &g->h;
    const sti_attention *a = h->job->a;
    const int64_t width = h->job->width, queries = i1 - i0, keys = j1 - j0;
    const float *q = g->qs + i0 * a->size, *dy = g->dys + i0 * a->size;
    find_scores(h, i0, i1, keys);
    const sti_brgemm of_weights = {.m = queries,
                                   .n = keys,
                                   .k = a->size,
                                   .lda = a->size,
                                   .ldb = BLOCK,
                                   .ldc = BLOCK};
    sti_brgemm_stride_f32(&of_weights, 1, dy, g->vt, 0, 0, g->ds);
    for (int64_t t = i0; t < i1; t++) {
        float *s = h->s + (t - i0) * BLOCK;
        find_weights(g, t, hide(a, t, j0, seen(a, t, j0, j1), s), keys, s,
                     g->ds + (t - i0) * BLOCK);
    }
    const sti_brgemm of_keys = {.m = keys,
                                .n = a->size,
                                .k = queries,
                                .lda = BLOCK,
                                .ldb = a->size,
                                .ldc = a->size,
                                .trans_a = true,
                                .accumulate = true};
    sti_brgemm_stride_f32(&of_keys, 1, h->s, dy, 0, 0, g->dvb);
    sti_brgemm_stride_f32(&of_keys, 1, g->ds, q, 0, 0, g->dkb);
    const sti_brgemm of_queries = {.m = queries,
                                   .n = a->size,
                                   .k = keys,
                                   .lda = BLOCK,
                                   .ldb = a->size,
                                   .ldc = width,
                                   .accumulate = true};
    sti_brgemm_stride_f32(&of_queries, 1, g->ds, g->kb, 0, 0, g->dq + i0 * width);
}

static void zero_columns(float *x, int64_t rows, int64_t ld, int64_t columns)
{
    for (int64_t r = 0; r < rows; r++)
        memset(x + r * ld, 0, (size_t)columns * sizeof *x);
}

static head_grad head_grad_of(const attention_job *job, int64_t index, int worker)
{
    const sti_attention *a = job->a;
    const int64_t b = index / a->heads, i = index % a->heads, ldo = a->heads * a->size;
    const int64_t at = b * a->length * ldo + i * a->size;
    head_grad g = {.h = head_of(job, index, worker),
                   .dy = job->dy + at,
                   .y = job->y + at,
                   .ldo = ldo};
    g.dq = job->dqkv + (g.h.q - job->qkv);
    g.dk = job->dqkv + (g.h.k - job->qkv);
    g.dv = job->dqkv + (g.h.v - job->qkv);
    float **blocks[] = {&g.vt, &g.kb, &g.dkb, &g.dvb};
    g.ds = g.h.vb + block_floats(a);
    float *next = g.ds + BLOCK * BLOCK;
    for (size_t k = 0; k < sizeof blocks / sizeof *blocks; k++, next += block_floats(a))
        *blocks[k] = next;
    g.qs = next;
    g.dys = g.qs + scaled_floats(a);
    g.delta = g.dys + scaled_floats(a);
    return g;
}

/* Chains of eight rows side by side: one alone is waiting. */
static void find_deltas(const head_grad *g)
{
    enum { ROWS = 8 };
    const sti_attention *a = g->h.job->a;
    for (int64_t t = 0; t < a->length; t += ROWS) {
        const int64_t rows = a->length - t < ROWS ? a->length - t : ROWS;
        float d[ROWS] = {0};
        const float *dy[ROWS], *y[ROWS];
        for (int64_t r = 0; r < ROWS; r++) {
            dy[r] = g->dy + (t + (r < rows ? r : 0)) * g->ldo;
            y[r] = g->y + (t + (r < rows ? r : 0)) * g->ldo;
        }
        for (int64_t c = 0; c < a->size; c++)
            for (int r = 0; r < ROWS; r++)
                d[r] += dy[r][c] * y[r][c];
        for (int64_t r = 0; r < rows; r++)
            g->delta[t + r] = d[r];
    }
}

/* Gradients of keys [j0, j1) and values; `first` of the heads that share them. */
static void backward_keys(const head_grad *g, int64_t j0, int64_t j1, bool first)
{
    const attention_job *job = g->h.job;
    const sti_attention *a = job->a;
    const int64_t at = j0 * job->width, size = a->size, keys = j1 - j0;
    copy_columns(job, g->h.k + at, keys, g->h.kt);
    copy_columns(job, g->h.v + at, keys, g->vt);
    copy_rows(job, g->h.k + at, job->width, keys, g->kb);
    if (first) {
        memset(g->dkb, 0, (size_t)(keys * size) * sizeof *g->dkb);
        memset(g->dvb, 0, (size_t)(keys * size) * sizeof *g->dvb);
    } else {
        copy_rows(job, g->dk + at, job->width, keys, g->dkb);
        copy_rows(job, g->dv + at, job->width, keys, g->dvb);
    }
    const int64_t end = last_query(a, j1);
    for (int64_t i0 = a->causal ? j0 : 0; i0 < end; i0 += BLOCK)
        backward_tile(g, i0, block_end(i0, a->length), j0, j1);
    for (int64_t j = 0; j < keys; j++) {
        memcpy(g->dk + at + j * job->width, g->dkb + j * size,
               (size_t)size * sizeof *g->dk);
        memcpy(g->dv + at + j * job->width, g->dvb + j * size,
               (size_t)size * sizeof *g->dv);
    }
}

static void backward_piece(void *arg, int64_t piece, int worker)
{
    const attention_job *job = arg;
    const sti_attention *a = job->a;
    const int64_t group = a->heads / a->kv_heads;
    const int64_t first = piece / a->kv_heads * a->heads + piece % a->kv_heads * group;
    for (int64_t i = first; i < first + group; i++) {
        const head_grad g = head_grad_of(job, i, worker);
        zero_columns(g.dq, a->length, job->width, a->size);
        find_deltas(&g);
        scale_queries(&g.h);
        copy_rows(job, g.h.q, job->width, a->length, g.qs);
        copy_rows(job, g.dy, g.ldo, a->length, g.dys);
        for (int64_t j0 = 0; j0 < a->length; j0 += BLOCK)
            backward_keys(&g, j0, block_end(j0, a->length), i == first);
    }
}

size_t sti_attention_grad_scratch_bytes(const sti_attention *a, int threads)
{
    return (size_t)(threads * worker_floats(a, true)) * sizeof(float);
}

void sti_attention_grad_f32(const sti_team *team, const sti_attention *a,
                            const float *dy, const float *qkv, const float *y,
                            const float *stats, float *dqkv, void *scratch)
{
    attention_job job = job_of(a, qkv, scratch, true);
    job.dy = dy;
    job.y = y;
    job.saved = stats;
    job.dqkv = dqkv;
    sti_team_run(team, a->batch * a->kv_heads, backward_piece, &job);
}
