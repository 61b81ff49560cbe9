#include "kernel/attention/attention_cache.h"

#include <math.h>
#include <string.h>

#include "kernel/gemm/brgemm.h"
#include "kernel/lane/dispatch.h"
#include "kernel/softmax/softmax_row.h"

enum { BLOCK = STI_ATTENTION_BLOCK }; /* keys; that of attention.c */

static int64_t width_of(const sti_attention_cache *c)
{
    return (c->heads + 2 * c->kv_heads) * c->size;
}

/* Where the block of row t of a sequence begins for a head, in keys and in values. */
static int64_t block_at(const sti_attention_cache *c, const sti_attention_rows *q,
                        int64_t t, int64_t head)
{
    const int64_t block = q->page ? q->page[t / BLOCK] : t / BLOCK;
    return (block * c->kv_heads + head) * BLOCK * c->size;
}

static void put_row(const sti_attention_cache *c, const sti_attention_rows *q,
                    int64_t t, const float *k, const float *v)
{
    for (int64_t h = 0; h < c->kv_heads; h++) {
        const int64_t at = block_at(c, q, t, h);
        float *keys = c->keys + at + t % BLOCK;
        for (int64_t i = 0; i < c->size; i++)
            keys[i * BLOCK] = k[h * c->size + i];
        memcpy(c->values + at + t % BLOCK * c->size, v + h * c->size,
               (size_t)c->size * sizeof *v);
    }
}

void sti_attention_cache_put(const sti_attention_cache *c,
                             const sti_attention_rows *sequences, int count,
                             const float *qkv)
{
    for (const sti_attention_rows *q = sequences; q < sequences + count; q++)
        for (int64_t t = q->position; t < q->position + q->rows; t++) {
            const float *k = qkv + c->heads * c->size;
            put_row(c, q, t, k, k + c->kv_heads * c->size);
            qkv += width_of(c);
        }
}

typedef struct cache_job {
    const sti_attention_cache *c;
    const sti_softmax_kernels *row;
    const sti_attention_rows *sequence;
    const float *qkv;
    float *y, *scratch;
    int64_t worker_floats;
} cache_job;

/* The queries of a sequence of all heads that share one of keys and values:
 * [rows][group]. */
typedef struct cache_group {
    const cache_job *job;
    const sti_attention_rows *sequence;
    int64_t first; /* row of qkv and y */
    int64_t index, queries, group;
    float *scaled; /* [queries, size]: times 1 / sqrt(size) */
    float *out;    /* [queries, size] */
    float *s;      /* [queries, BLOCK]: scores, then weights */
    float *stats;  /* [queries, 2] */
} cache_group;

static int64_t floats_of_worker(const sti_attention_cache *c, int64_t rows)
{
    const int64_t queries = rows * (c->heads / c->kv_heads);
    return (queries * (2 * c->size + BLOCK + 2) + 15) / 16 * 16;
}

/* Pieces go through the sequences, and in each through the heads of keys. */
static cache_group group_of(const cache_job *job, int64_t piece, int worker)
{
    const sti_attention_cache *c = job->c;
    const int64_t number = piece / c->kv_heads;
    cache_group g = {.job = job,
                     .sequence = job->sequence + number,
                     .index = piece % c->kv_heads,
                     .group = c->heads / c->kv_heads};
    for (int64_t i = 0; i < number; i++)
        g.first += job->sequence[i].rows;
    g.queries = g.sequence->rows * g.group;
    g.scaled = job->scratch + worker * job->worker_floats;
    g.out = g.scaled + g.queries * c->size;
    g.s = g.out + g.queries * c->size;
    g.stats = g.s + g.queries * BLOCK;
    return g;
}

static void begin_group(const cache_group *g)
{
    const sti_attention_cache *c = g->job->c;
    const float factor = 1.0f / sqrtf((float)c->size);
    const int64_t run = g->group * c->size; /* heads of a group are neighbours */
    for (int64_t t = 0; t < g->sequence->rows; t++) {
        const float *q = g->job->qkv + (g->first + t) * width_of(c) + g->index * run;
        for (int64_t i = 0; i < run; i++)
            g->scaled[t * run + i] = q[i] * factor;
    }
    for (int64_t r = 0; r < g->queries; r++) {
        g->stats[2 * r] = -INFINITY;
        g->stats[2 * r + 1] = 0.0f;
    }
    memset(g->out, 0, (size_t)(g->queries * c->size) * sizeof *g->out);
}

/* Keys of a block, n of them, below `sees`: those behind the query's window are to
 * weigh nothing. Returns n, or 0 where all are behind it. */
static int64_t hide(const sti_attention_cache *c, int64_t sees, int64_t n, float *s)
{
    const int64_t hidden = c->window ? sees - c->window : 0;
    if (hidden >= n)
        return 0;
    for (int64_t j = 0; j < hidden; j++)
        s[j] = -INFINITY;
    return n;
}

/* Keys j0 .. j0 + count, of which query r sees those up to its own row. */
static void add_block(const cache_group *g, int64_t j0, int64_t count)
{
    const sti_attention_cache *c = g->job->c;
    const int64_t at = block_at(c, g->sequence, j0, g->index);
    const sti_brgemm scores = {.m = g->queries,
                               .n = count,
                               .k = c->size,
                               .lda = c->size,
                               .ldb = BLOCK,
                               .ldc = BLOCK};
    const sti_brgemm sums = {.m = g->queries,
                             .n = c->size,
                             .k = count,
                             .lda = BLOCK,
                             .ldb = c->size,
                             .ldc = c->size,
                             .accumulate = true};
    sti_brgemm_stride_f32(&scores, 1, g->scaled, c->keys + at, 0, 0, g->s);
    for (int64_t r = 0; r < g->queries; r++) {
        const int64_t sees = g->sequence->position + r / g->group + 1 - j0;
        float *s = g->s + r * BLOCK;
        const int64_t n = hide(c, sees, sees < 0 ? 0 : sees < count ? sees : count, s);
        if (n > 0)
            g->job->row->join(sti_softmax_pad(n, s), s, g->stats + 2 * r, c->size,
                              g->out + r * c->size);
        memset(s + n, 0, (size_t)(count - n) * sizeof *s);
    }
    sti_brgemm_stride_f32(&sums, 1, g->s, c->values + at, 0, 0, g->out);
}

static void end_group(const cache_group *g)
{
    const sti_attention_cache *c = g->job->c;
    for (int64_t r = 0; r < g->queries; r++) {
        const int64_t t = r / g->group, head = g->index * g->group + r % g->group;
        float *y = g->job->y + ((g->first + t) * c->heads + head) * c->size;
        for (int64_t i = 0; i < c->size; i++)
            y[i] = g->out[r * c->size + i] / g->stats[2 * r + 1];
    }
}

static void group_piece(void *arg, int64_t piece, int worker)
{
    const cache_job *job = arg;
    const cache_group g = group_of(job, piece, worker);
    const int64_t keys = g.sequence->position + g.sequence->rows;
    const int64_t window = job->c->window;
    const int64_t first = window ? g.sequence->position + 1 - window : 0;
    begin_group(&g);
    for (int64_t j0 = first > 0 ? first / BLOCK * BLOCK : 0; j0 < keys; j0 += BLOCK)
        add_block(&g, j0, keys - j0 < BLOCK ? keys - j0 : BLOCK);
    end_group(&g);
}

size_t sti_attention_cache_scratch_bytes(const sti_attention_cache *c, int64_t rows,
                                         int threads)
{
    return (size_t)(threads * floats_of_worker(c, rows)) * sizeof(float);
}

void sti_attention_cache_f32(const sti_team *team, const sti_attention_cache *c,
                             const sti_attention_rows *sequences, int count,
                             const float *qkv, float *y, void *scratch)
{
    int64_t most = 0;
    for (int i = 0; i < count; i++)
        most = sequences[i].rows > most ? sequences[i].rows : most;
    cache_job job = {.c = c,
                     .row = STI_KERNELS_NOW(sti_softmax_kernels),
                     .sequence = sequences,
                     .qkv = qkv,
                     .y = y,
                     .scratch = scratch,
                     .worker_floats = floats_of_worker(c, most)};
    /* Sequences are of unequal length. */
    (count > 1 ? sti_team_take : sti_team_run)(team, count * c->kv_heads, group_piece,
                                               &job);
}
