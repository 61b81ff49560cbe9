#include "kernel/conv/conv_chunks.h"

enum { JOIN_FLOATS = 4096 };

static int64_t ceil_div(int64_t a, int64_t b)
{
    return (a + b - 1) / b;
}

sti_conv_chunks sti_conv_chunks_cut(int64_t chunks, int64_t most)
{
    sti_conv_chunks c = {
        .chunks = chunks > 1 ? chunks : 1, .tree_chunks = 1, .levels = 1};
    while (ceil_div(c.chunks, c.tree_chunks) > most) {
        c.tree_chunks *= 2;
        c.levels++;
    }
    c.trees = ceil_div(c.chunks, c.tree_chunks);
    return c;
}

static void add_floats(float *left, const float *right, size_t count)
{
    for (size_t i = 0; i < count; i++)
        left[i] += right[i];
}

void sti_conv_chunks_sum(const sti_conv_chunks *c, int64_t tree, size_t size,
                         float *stack, sti_conv_chunk_fn *make, void *arg)
{
    const int64_t first = tree * c->tree_chunks, left = c->chunks - first;
    const int64_t count = left < c->tree_chunks ? left : c->tree_chunks;
    size_t top = 0;
    for (int64_t i = 0; i < count; i++, top++) {
        make(arg, first + i, stack + top * size);
        for (int64_t done = i + 1; done % 2 == 0; done /= 2, top--)
            add_floats(stack + (top - 1) * size, stack + top * size, size);
    }
    for (; top > 1; top--)
        add_floats(stack + (top - 2) * size, stack + (top - 1) * size, size);
}

/* Pairs first. */
void sti_conv_chunks_join(const sti_conv_chunks *c, float *const *result, size_t count)
{
    for (int64_t step = 1; step < c->trees; step *= 2)
        for (int64_t t = 0; t + step < c->trees; t += 2 * step)
            add_floats(result[t], result[t + step], count);
}

typedef struct join {
    const sti_conv_chunks *chunks;
    float *first, *rest;
    size_t count;
} join;

static void join_piece(void *arg, int64_t piece, int worker)
{
    const join *j = arg;
    const size_t at = (size_t)piece * JOIN_FLOATS, left = j->count - at;
    float *side[STI_CONV_MAX_TREES];
    (void)worker;
    for (int64_t t = 0; t < j->chunks->trees; t++)
        side[t] = (t == 0 ? j->first : j->rest + (size_t)(t - 1) * j->count) + at;
    sti_conv_chunks_join(j->chunks, side, left < JOIN_FLOATS ? left : JOIN_FLOATS);
}

void sti_conv_chunks_join_all(const sti_team *team, const sti_conv_chunks *chunks,
                              float *first, float *rest, size_t count)
{
    join j = {chunks, first, rest, count};
    if (chunks->trees > 1)
        sti_team_run(team, ceil_div((int64_t)count, JOIN_FLOATS), join_piece, &j);
}
