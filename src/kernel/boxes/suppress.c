#include "kernel/boxes/suppress.h"

#include <string.h>

typedef struct suppress_job {
    const sti_suppress_desc *d;
    const float *box, *score;
    int32_t *index;  /* pair p's choices begin at row p most */
    int32_t *chosen; /* [images classes] */
    int32_t *heap;   /* [threads, boxes] */
} suppress_job;

/* Places of `chosen`, a multiple of 64 bytes. */
static int64_t pair_places(const sti_suppress_desc *d)
{
    return (d->images * d->classes + 15) / 16 * 16;
}

size_t sti_suppress_scratch_bytes(const sti_suppress_desc *d, int threads)
{
    return (size_t)(pair_places(d) + threads * d->boxes) * sizeof(int32_t);
}

/* ---- two boxes ---- */

typedef struct rectangle {
    float top, left, bottom, right;
} rectangle;

static float lesser(float a, float b)
{
    return a < b ? a : b;
}

static float greater(float a, float b)
{
    return a > b ? a : b;
}

static rectangle rectangle_of(const sti_suppress_desc *d, const float *b)
{
    if (d->centre)
        return (rectangle){b[1] - b[3] / 2, b[0] - b[2] / 2, b[1] + b[3] / 2,
                           b[0] + b[2] / 2};
    return (rectangle){lesser(b[0], b[2]), lesser(b[1], b[3]), greater(b[0], b[2]),
                       greater(b[1], b[3])};
}

static float area_of(const rectangle *r)
{
    return (r->bottom - r->top) * (r->right - r->left);
}

static bool overlaps(const sti_suppress_desc *d, const rectangle *a, const float *other)
{
    const rectangle b = rectangle_of(d, other);
    const float height = lesser(a->bottom, b.bottom) - greater(a->top, b.top),
                width = lesser(a->right, b.right) - greater(a->left, b.left);
    const float own = area_of(a), its = area_of(&b);
    if (!(height > 0 && width > 0 && own > 0 && its > 0))
        return false;
    const float common = height * width;
    return common / (own + its - common) > d->overlap;
}

/* ---- candidates, best first ---- */

static bool before(const float *score, int32_t a, int32_t b)
{
    return score[a] != score[b] ? score[a] > score[b] : a < b;
}

/* A heap whose root comes before all others. */
static void sink(const float *score, int32_t *heap, int64_t count, int64_t at)
{
    for (;;) {
        int64_t child = 2 * at + 1;
        if (child >= count)
            return;
        if (child + 1 < count && before(score, heap[child + 1], heap[child]))
            child++;
        if (before(score, heap[at], heap[child]))
            return;
        const int32_t moved = heap[at];
        heap[at] = heap[child];
        heap[child] = moved;
        at = child;
    }
}

static int64_t candidates(const sti_suppress_desc *d, const float *score, int32_t *heap)
{
    int64_t count = 0;
    for (int64_t i = 0; i < d->boxes; i++)
        if (d->any_score ? score[i] == score[i] : score[i] > d->score)
            heap[count++] = (int32_t)i;
    for (int64_t i = count / 2; i-- > 0;)
        sink(score, heap, count, i);
    return count;
}

/* ---- one class of one image ---- */

static void suppress_pair(void *arg, int64_t pair, int worker)
{
    const suppress_job *j = arg;
    const sti_suppress_desc *d = j->d;
    const int64_t image = pair / d->classes;
    const float *score = j->score + pair * d->boxes,
                *box = j->box + image * d->boxes * 4;
    int32_t *heap = j->heap + worker * d->boxes, *row = j->index + pair * d->most * 3;
    int64_t left = candidates(d, score, heap), chosen = 0;
    while (left > 0 && chosen < d->most) {
        const int32_t best = heap[0];
        heap[0] = heap[--left];
        sink(score, heap, left, 0);
        const rectangle r = rectangle_of(d, box + best * (int64_t)4);
        bool free = true;
        for (int64_t i = 0; free && i < chosen; i++)
            free = !overlaps(d, &r, box + row[3 * i + 2] * (int64_t)4);
        if (!free)
            continue;
        row[3 * chosen] = (int32_t)image;
        row[3 * chosen + 1] = (int32_t)(pair % d->classes);
        row[3 * chosen + 2] = best;
        chosen++;
    }
    j->chosen[pair] = (int32_t)chosen;
}

void sti_suppress_f32(const sti_team *team, const sti_suppress_desc *d,
                      const float *box, const float *score, int32_t *index_out,
                      void *scratch)
{
    const int64_t pairs = d->images * d->classes;
    int32_t *chosen = scratch;
    suppress_job job = {d, box, score, index_out, chosen, chosen + pair_places(d)};
    int64_t rows = 0;
    sti_team_run(team, pairs, suppress_pair, &job);
    /* Each pair's choices move up to those of the pairs before it. */
    for (int64_t p = 0; p < pairs; p++) {
        memmove(index_out + rows * 3, index_out + p * d->most * 3,
                (size_t)chosen[p] * 3 * sizeof *index_out);
        rows += chosen[p];
    }
    for (int64_t i = rows * 3; i < pairs * d->most * 3; i++)
        index_out[i] = -1;
}
