#include "kernel/attention.h"

#include <math.h>
#include <string.h>

#include "kernel/brgemm.h"
#include "kernel/dispatch.h"
#include "kernel/softmax_row.h"

enum {
    BLOCK = 64 /* keys, and queries, of a tile; that of keys is part of the numerics */
};

typedef struct attention_job {
    const sti_attention *a;
    const sti_softmax_kernels *row;
    const float *qkv, *dy, *y;
    float *out, *stats; /* forward */
    const float *saved; /* backward: the stats */
    float *dqkv;
    float *scratch;
    int64_t worker_floats, width;
    float factor; /* 1 / sqrt(size) */
} attention_job;

/* One head of one sequence. */
typedef struct head {
    const attention_job *job;
    const float *q, *k, *v; /* [length, size], rows job->width apart */
    float *kt;              /* [size, length]: keys transposed */
    float *vt;              /* the same of values; backward only */
    float *scaled;          /* [BLOCK, size]: queries times the factor */
    float *s;               /* [BLOCK, BLOCK]: scores, then weights */
    float *ds;              /* [BLOCK, BLOCK]: backward only */
    float *delta;           /* [length]: dy . y, backward only */
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

static void transpose(const float *x, int64_t rows, int64_t ld, int64_t columns,
                      float *out)
{
    for (int64_t i = 0; i < rows; i += 16)
        for (int64_t c = 0; c < columns; c++)
            for (int64_t r = i; r < rows && r < i + 16; r++)
                out[c * rows + r] = x[r * ld + c];
}

static void scale_queries(const head *h, int64_t i0, int64_t i1)
{
    const int64_t size = h->job->a->size;
    for (int64_t t = i0; t < i1; t++)
        for (int64_t c = 0; c < size; c++)
            h->scaled[(t - i0) * size + c] =
                h->q[t * h->job->width + c] * h->job->factor;
}

/* s = scaled queries times keys [j0, j1). */
static void find_scores(const head *h, int64_t i0, int64_t i1, int64_t j0, int64_t j1)
{
    const sti_attention *a = h->job->a;
    const sti_brgemm g = {.m = i1 - i0,
                          .n = j1 - j0,
                          .k = a->size,
                          .lda = a->size,
                          .ldb = a->length,
                          .ldc = BLOCK};
    sti_brgemm_stride_f32(&g, 1, h->scaled, h->kt + j0, 0, 0, h->s);
}

/* ---- forward ---- */

static void forward_tile(const head *h, int64_t i0, int64_t i1, int64_t j0, int64_t j1,
                         float *out, int64_t ldo)
{
    const sti_attention *a = h->job->a;
    find_scores(h, i0, i1, j0, j1);
    for (int64_t t = i0; t < i1; t++) {
        const int64_t n = seen(a, t, j0, j1);
        float *s = h->s + (t - i0) * BLOCK;
        sti_softmax_join(h->job->row, n, s, h->job->stats + h->stats + 2 * t, a->size,
                         out + (t - i0) * ldo);
        memset(s + n, 0, (size_t)(j1 - j0 - n) * sizeof *s);
    }
    const sti_brgemm g = {.m = i1 - i0,
                          .n = a->size,
                          .k = j1 - j0,
                          .lda = BLOCK,
                          .ldb = h->job->width,
                          .ldc = ldo,
                          .accumulate = true};
    sti_brgemm_stride_f32(&g, 1, h->s, h->v + j0 * h->job->width, 0, 0, out);
}

static void forward_queries(const head *h, int64_t i0, int64_t i1, float *out,
                            int64_t ldo)
{
    const sti_attention *a = h->job->a;
    const int64_t last = a->causal ? i1 : a->length;
    float *stats = h->job->stats + h->stats;
    scale_queries(h, i0, i1);
    for (int64_t t = i0; t < i1; t++) {
        stats[2 * t] = -INFINITY;
        stats[2 * t + 1] = 0.0f;
        memset(out + (t - i0) * ldo, 0, (size_t)a->size * sizeof *out);
    }
    for (int64_t j0 = 0; j0 < last; j0 += BLOCK)
        forward_tile(h, i0, i1, j0, block_end(j0, a->length), out, ldo);
    for (int64_t t = i0; t < i1; t++)
        for (int64_t c = 0; c < a->size; c++)
            out[(t - i0) * ldo + c] /= stats[2 * t + 1];
}

/* Head `index` of batch * heads; buffers are the worker's. */
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
    h.s = job->scratch + worker * job->worker_floats;
    h.ds = h.s + BLOCK * BLOCK;
    h.scaled = h.ds + BLOCK * BLOCK;
    h.kt = h.scaled + BLOCK * a->size;
    h.vt = h.kt + a->length * a->size;
    h.delta = h.vt + a->length * a->size;
    return h;
}

static void forward_piece(void *arg, int64_t piece, int worker)
{
    const attention_job *job = arg;
    const sti_attention *a = job->a;
    const head h = head_of(job, piece, worker);
    const int64_t ldo = a->heads * a->size;
    float *out =
        job->out + piece / a->heads * a->length * ldo + piece % a->heads * a->size;
    transpose(h.k, a->length, job->width, a->size, h.kt);
    for (int64_t i0 = 0; i0 < a->length; i0 += BLOCK)
        forward_queries(&h, i0, block_end(i0, a->length), out + i0 * ldo, ldo);
}

static int64_t worker_floats(const sti_attention *a, bool backward)
{
    int64_t floats = 2 * BLOCK * BLOCK + BLOCK * a->size + a->length * a->size;
    if (backward)
        floats += a->length * a->size + a->length;
    return (floats + 15) / 16 * 16;
}

static attention_job job_of(const sti_attention *a, const float *qkv, void *scratch,
                            bool backward)
{
    return (attention_job){.a = a,
                           .row = STI_KERNELS_NOW(sti_softmax_kernels),
                           .qkv = qkv,
                           .scratch = scratch,
                           .worker_floats = worker_floats(a, backward),
                           .width = sti_attention_width(a),
                           .factor = 1.0f / sqrtf((float)a->size)};
}

double sti_attention_flop(const sti_attention *a)
{
    const double pairs =
        (double)a->length * (double)(a->length + 1) * (a->causal ? 0.5 : 1.0);
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

/* Where one head's gradients go and what they come from. */
typedef struct head_grad {
    head h;
    const float *dy, *y; /* rows ldo apart */
    float *dq, *dk, *dv; /* rows job->width apart */
    int64_t ldo;
} head_grad;

/* s becomes the weights, ds their gradient times the factor. */
static void find_weights(const head_grad *g, int64_t t, int64_t n, int64_t count,
                         float *s, float *ds)
{
    const attention_job *job = g->h.job;
    const float *stats = job->saved + g->h.stats + 2 * t;
    const float inverse = 1.0f / stats[1], d = g->h.delta[t];
    (void)job->row->exp_sum(n, stats[0], s, s);
    for (int64_t j = 0; j < n; j++) {
        s[j] *= inverse;
        ds[j] = s[j] * (ds[j] - d) * job->factor;
    }
    memset(s + n, 0, (size_t)(count - n) * sizeof *s);
    memset(ds + n, 0, (size_t)(count - n) * sizeof *ds);
}

static void backward_tile(const head_grad *g, int64_t i0, int64_t i1, int64_t j0,
                          int64_t j1)
{
    const head *h = &g->h;
    const sti_attention *a = h->job->a;
    const int64_t width = h->job->width, queries = i1 - i0, keys = j1 - j0;
    scale_queries(h, i0, i1);
    find_scores(h, i0, i1, j0, j1);
    const sti_brgemm of_weights = {.m = queries,
                                   .n = keys,
                                   .k = a->size,
                                   .lda = g->ldo,
                                   .ldb = a->length,
                                   .ldc = BLOCK};
    sti_brgemm_stride_f32(&of_weights, 1, g->dy + i0 * g->ldo, h->vt + j0, 0, 0, h->ds);
    for (int64_t t = i0; t < i1; t++)
        find_weights(g, t, seen(a, t, j0, j1), keys, h->s + (t - i0) * BLOCK,
                     h->ds + (t - i0) * BLOCK);
    sti_brgemm of_keys = {.m = keys,
                          .n = a->size,
                          .k = queries,
                          .lda = BLOCK,
                          .ldb = g->ldo,
                          .ldc = width,
                          .trans_a = true,
                          .accumulate = true};
    sti_brgemm_stride_f32(&of_keys, 1, h->s, g->dy + i0 * g->ldo, 0, 0,
                          g->dv + j0 * width);
    of_keys.ldb = width;
    sti_brgemm_stride_f32(&of_keys, 1, h->ds, h->q + i0 * width, 0, 0,
                          g->dk + j0 * width);
    const sti_brgemm of_queries = {.m = queries,
                                   .n = a->size,
                                   .k = keys,
                                   .lda = BLOCK,
                                   .ldb = width,
                                   .ldc = width,
                                   .accumulate = true};
    sti_brgemm_stride_f32(&of_queries, 1, h->ds, h->k + j0 * width, 0, 0,
                          g->dq + i0 * width);
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
    return g;
}

static void find_deltas(const head_grad *g)
{
    const sti_attention *a = g->h.job->a;
    for (int64_t t = 0; t < a->length; t++) {
        float d = 0.0f;
        for (int64_t c = 0; c < a->size; c++)
            d += g->dy[t * g->ldo + c] * g->y[t * g->ldo + c];
        g->h.delta[t] = d;
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
        if (i == first) {
            zero_columns(g.dk, a->length, job->width, a->size);
            zero_columns(g.dv, a->length, job->width, a->size);
            transpose(g.h.k, a->length, job->width, a->size, g.h.kt);
            transpose(g.h.v, a->length, job->width, a->size, g.h.vt);
        }
        for (int64_t j0 = 0; j0 < a->length; j0 += BLOCK)
            for (int64_t i0 = a->causal ? j0 : 0; i0 < a->length; i0 += BLOCK)
                backward_tile(&g, i0, block_end(i0, a->length), j0,
                              block_end(j0, a->length));
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
