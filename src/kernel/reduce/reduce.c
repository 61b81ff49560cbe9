/* Cuts reductions into chunks by shape, hands chunks to threads, joins the partial
 * results by a binary tree. */
#include "kernel/reduce/reduce.h"

#include <string.h>

#include "base/memory.h"
#include "kernel/elementwise/elementwise.h"
#include "kernel/lane/dispatch.h"
#include "kernel/reduce/reduce_priv.h"

#define PIECE        16384 /* elements a piece at least, where rows are short */
#define COLUMN_BLOCK 1024  /* columns a piece */

static const sti_reduce_table *table_now(void)
{
    return STI_KERNELS_NOW(sti_reduce);
}

static int64_t ceil_div(int64_t a, int64_t b)
{
    return (a + b - 1) / b;
}

static int64_t min_i64(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

typedef struct work {
    const sti_reduce_table *table;
    bool max;
    int64_t outer, count, inner; /* of x */
    int64_t chunks, blocks;      /* of count, of inner */
    int64_t rows_per_piece;
    const float *x;
    float *partial; /* [outer, chunks, inner] */
    float *out;     /* [outer, inner] */
    float divisor;
} work;

static float join(const work *w, float a, float b)
{
    if (w->max)
        return b > a || b != b ? b : a;
    return a + b;
}

static float chunk(const work *w, int64_t n, const float *x)
{
    return w->max ? w->table->max(n, x) : w->table->sum(n, x);
}

/* Rows of at most one chunk: several a piece, no partial results. */
static void short_rows_piece(void *arg, int64_t piece, int worker)
{
    const work *w = arg;
    int64_t row = piece * w->rows_per_piece, end = row + w->rows_per_piece;
    (void)worker;
    for (; row < end && row < w->outer; row++)
        w->out[row] = chunk(w, w->count, w->x + row * w->count);
}

static void row_chunk_piece(void *arg, int64_t piece, int worker)
{
    const work *w = arg;
    int64_t row = piece / w->chunks, at = piece % w->chunks * STI_REDUCE_CHUNK;
    int64_t n = min_i64(STI_REDUCE_CHUNK, w->count - at);
    (void)worker;
    const float *x = w->x + row * w->count + at;
    w->partial[piece] = chunk(w, n, x);
}

static void row_join_piece(void *arg, int64_t piece, int worker)
{
    const work *w = arg;
    float *p = w->partial + piece * w->chunks;
    (void)worker;
    for (int64_t s = 1; s < w->chunks; s *= 2)
        for (int64_t i = 0; i + s < w->chunks; i += 2 * s)
            p[i] = join(w, p[i], p[i + s]);
    w->out[piece] = p[0];
}

static void reduce_rows(const sti_team *team, work *w)
{
    if (w->chunks == 1) {
        w->rows_per_piece = w->count >= PIECE ? 1 : PIECE / w->count;
        sti_team_run(team, ceil_div(w->outer, w->rows_per_piece), short_rows_piece, w);
        return;
    }
    sti_team_run(team, w->outer * w->chunks, row_chunk_piece, w);
    sti_team_run(team, w->outer, row_join_piece, w);
}

static void column_piece(void *arg, int64_t piece, int worker)
{
    const work *w = arg;
    int64_t block = piece % w->blocks, c = piece / w->blocks % w->chunks;
    int64_t outer = piece / w->blocks / w->chunks;
    int64_t row = c * STI_REDUCE_ROW_CHUNK, column = block * COLUMN_BLOCK;
    int64_t rows = min_i64(STI_REDUCE_ROW_CHUNK, w->count - row);
    int64_t n = min_i64(COLUMN_BLOCK, w->inner - column);
    const float *x = w->x + (outer * w->count + row) * w->inner + column;
    float *to = w->chunks == 1
                    ? w->out + outer * w->inner + column
                    : w->partial + (outer * w->chunks + c) * w->inner + column;
    (void)worker;
    (w->max ? w->table->column_max : w->table->column_sum)(rows, n, w->inner, x, to);
}

static void column_join_piece(void *arg, int64_t piece, int worker)
{
    const work *w = arg;
    int64_t outer = piece / w->blocks, column = piece % w->blocks * COLUMN_BLOCK;
    int64_t n = min_i64(COLUMN_BLOCK, w->inner - column);
    float *p = w->partial + outer * w->chunks * w->inner + column;
    (void)worker;
    for (int64_t s = 1; s < w->chunks; s *= 2)
        for (int64_t i = 0; i + s < w->chunks; i += 2 * s) {
            float *to = p + i * w->inner;
            const float *from = p + (i + s) * w->inner;
            for (int64_t j = 0; j < n; j++)
                to[j] = join(w, to[j], from[j]);
        }
    memcpy(w->out + outer * w->inner + column, p, (size_t)n * sizeof *p);
}

static void reduce_columns(const sti_team *team, work *w)
{
    sti_team_run(team, w->outer * w->chunks * w->blocks, column_piece, w);
    if (w->chunks > 1)
        sti_team_run(team, w->outer * w->blocks, column_join_piece, w);
}

static int64_t chunk_count(int64_t count, int64_t inner)
{
    return ceil_div(count, inner == 1 ? STI_REDUCE_CHUNK : STI_REDUCE_ROW_CHUNK);
}

static void divide_piece(void *arg, int64_t piece, int worker)
{
    const work *w = arg;
    int64_t end = min_i64((piece + 1) * PIECE, w->inner);
    (void)worker;
    for (int64_t i = piece * PIECE; i < end; i++)
        w->out[i] /= w->divisor;
}

static void divide(const sti_team *team, int64_t n, int64_t divisor, float *y)
{
    work w = {.inner = n, .out = y, .divisor = (float)divisor};
    sti_team_run(team, ceil_div(n, PIECE), divide_piece, &w);
}

size_t sti_reduce_scratch_bytes(int64_t outer, int64_t count, int64_t inner)
{
    int64_t chunks = chunk_count(count, inner);
    return chunks > 1 ? (size_t)(outer * chunks * inner) * sizeof(float) : 0;
}

void sti_reduce_f32(const sti_team *team, sti_reduce kind, int64_t outer, int64_t count,
                    int64_t inner, const float *x, float *y, void *scratch)
{
    work w = {.table = table_now(),
              .max = kind == STI_REDUCE_MAX,
              .outer = outer,
              .count = count,
              .inner = inner,
              .chunks = chunk_count(count, inner),
              .blocks = ceil_div(inner, COLUMN_BLOCK),
              .x = x,
              .partial = scratch,
              .out = y};
    if (outer == 0 || inner == 0)
        return;
    if (inner == 1)
        reduce_rows(team, &w);
    else
        reduce_columns(team, &w);
    if (kind == STI_REDUCE_MEAN)
        divide(team, outer * inner, count, y);
}

/* Runs of kept and of reduced axes, outermost first; axes of length 1 are dropped. */
typedef struct axis_groups {
    int count;
    int64_t length[STI_STRIDED_RANK];
    bool reduced[STI_STRIDED_RANK];
} axis_groups;

static axis_groups group_axes(int rank, const int64_t *dim, unsigned axes)
{
    axis_groups g = {0};
    for (int i = 0; i < rank; i++) {
        bool reduced = axes >> i & 1;
        if (dim[i] == 1)
            continue;
        if (g.count > 0 && g.reduced[g.count - 1] == reduced) {
            g.length[g.count - 1] *= dim[i];
        } else {
            g.length[g.count] = dim[i];
            g.reduced[g.count++] = reduced;
        }
    }
    return g;
}

/* One group of reduced axes at a time, innermost first. All results but the last lie in
 * two buffers by turns, followed by what a single stage needs for itself. */
typedef struct stages {
    int count;
    struct {
        int64_t outer, count, inner;
    } at[STI_STRIDED_RANK];
    size_t between_bytes[2], own_bytes;
    int64_t kept, reduced; /* elements of y, elements behind each */
} stages;

static void drop_group(axis_groups *g, int at)
{
    for (int i = at; i + 1 < g->count; i++) {
        g->length[i] = g->length[i + 1];
        g->reduced[i] = g->reduced[i + 1];
    }
    g->count--;
}

static void add_stage(stages *s, const axis_groups *g, int at)
{
    int64_t outer = 1, inner = 1;
    for (int i = 0; i < at; i++)
        outer *= g->length[i];
    for (int i = at + 1; i < g->count; i++)
        inner *= g->length[i];
    size_t own = sti_reduce_scratch_bytes(outer, g->length[at], inner);
    s->own_bytes = own > s->own_bytes ? own : s->own_bytes;
    s->at[s->count].outer = outer;
    s->at[s->count].count = g->length[at];
    s->at[s->count++].inner = inner;
}

static stages plan_stages(int rank, const int64_t *dim, unsigned axes)
{
    axis_groups g = group_axes(rank, dim, axes);
    stages s = {.kept = 1, .reduced = 1};
    for (int i = 0; i < g.count; i++)
        *(g.reduced[i] ? &s.reduced : &s.kept) *= g.length[i];
    for (int at = g.count - 1; at >= 0; at--)
        if (g.reduced[at]) {
            add_stage(&s, &g, at);
            drop_group(&g, at);
        }
    for (int i = 0; i + 1 < s.count; i++) {
        size_t bytes = (size_t)(s.at[i].outer * s.at[i].inner) * sizeof(float);
        bytes = STI_ALIGN_UP(bytes, 64);
        if (bytes > s.between_bytes[i % 2])
            s.between_bytes[i % 2] = bytes;
    }
    return s;
}

size_t sti_reduce_axes_scratch_bytes(int rank, const int64_t *dim, unsigned axes)
{
    stages s = plan_stages(rank, dim, axes);
    return s.between_bytes[0] + s.between_bytes[1] + s.own_bytes;
}

void sti_reduce_axes_f32(const sti_team *team, sti_reduce kind, int rank,
                         const int64_t *dim, unsigned axes, const float *x, float *y,
                         void *scratch)
{
    stages s = plan_stages(rank, dim, axes);
    char *base = scratch;
    sti_reduce each = kind == STI_REDUCE_MEAN ? STI_REDUCE_SUM : kind;
    if (s.count == 0) {
        sti_unary_f32(team, STI_UNARY_COPY, s.kept, 0.0f, x, y);
        return;
    }
    size_t own_at = s.between_bytes[0] + s.between_bytes[1];
    void *own = s.own_bytes > 0 ? base + own_at : NULL;
    for (int i = 0; i < s.count; i++) {
        float *to = y;
        if (i + 1 < s.count)
            to = (float *)(void *)(base + (i % 2 ? s.between_bytes[0] : 0));
        sti_reduce_f32(team, each, s.at[i].outer, s.at[i].count, s.at[i].inner, x, to,
                       own);
        x = to;
    }
    if (kind == STI_REDUCE_MEAN)
        divide(team, s.kept, s.reduced, y);
}
