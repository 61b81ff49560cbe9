#include "base/ready.h"

#include "base/memory.h"

struct sti_ready {
    sti_ready_graph graph;
    int32_t *waits; /* [tasks]: for how many more */
    int32_t *path;  /* [tasks]: longest way to an end */
    int32_t *level; /* [tasks]: longest way from a begin; NULL: not by levels */
    int64_t *left;  /* [levels + 1]: tasks of a level that are not done */
    int32_t now;    /* the lowest level that is not done */
    int32_t *heap;  /* [queued]: ready tasks, the first to go at 0 */
    int64_t queued;
};

static bool goes_before(const sti_ready *r, int32_t a, int32_t b)
{
    if (r->level && r->level[a] != r->level[b])
        return r->level[a] < r->level[b];
    return r->path[a] != r->path[b] ? r->path[a] > r->path[b] : a < b;
}

static void push(sti_ready *r, int32_t task)
{
    int64_t at = r->queued++;
    for (; at > 0 && goes_before(r, task, r->heap[(at - 1) / 2]); at = (at - 1) / 2)
        r->heap[at] = r->heap[(at - 1) / 2];
    r->heap[at] = task;
}

static int32_t pop(sti_ready *r)
{
    const int32_t first = r->heap[0], last = r->heap[--r->queued];
    int64_t at = 0;
    for (;;) {
        int64_t child = 2 * at + 1;
        if (child >= r->queued)
            break;
        if (child + 1 < r->queued && goes_before(r, r->heap[child + 1], r->heap[child]))
            child++;
        if (!goes_before(r, r->heap[child], last))
            break;
        r->heap[at] = r->heap[child];
        at = child;
    }
    r->heap[at] = last;
    return first;
}

/* Tasks after one have higher numbers: one pass from the end, one from the begin. */
static void measure(sti_ready *r)
{
    const sti_ready_graph *g = &r->graph;
    for (int64_t t = g->tasks - 1; t >= 0; t--)
        for (int64_t i = g->first[t]; i < g->first[t + 1]; i++) {
            const int32_t to = g->next[i];
            r->waits[to]++;
            if (r->path[to] + 1 > r->path[t])
                r->path[t] = r->path[to] + 1;
        }
    for (int64_t t = 0; r->level && t < g->tasks; t++) {
        r->left[r->level[t]]++;
        for (int64_t i = g->first[t]; i < g->first[t + 1]; i++)
            if (r->level[t] + 1 > r->level[g->next[i]])
                r->level[g->next[i]] = r->level[t] + 1;
    }
}

stint_status sti_ready_create(const sti_ready_graph *graph, bool by_levels,
                              sti_ready **out)
{
    sti_ready *r = sti_alloc(sizeof *r, "ready list");
    if (!r)
        return STINT_E_MEMORY;
    r->graph = *graph;
    r->waits = sti_alloc_array(graph->tasks, sizeof *r->waits, "ready list");
    r->path = sti_alloc_array(graph->tasks, sizeof *r->path, "ready list");
    r->heap = sti_alloc_array(graph->tasks, sizeof *r->heap, "ready list");
    if (by_levels) {
        r->level = sti_alloc_array(graph->tasks, sizeof *r->level, "ready list");
        r->left = sti_alloc_array(graph->tasks + 1, sizeof *r->left, "ready list");
    }
    if (!r->waits || !r->path || !r->heap || (by_levels && (!r->level || !r->left))) {
        sti_ready_destroy(r);
        return STINT_E_MEMORY;
    }
    measure(r);
    for (int64_t t = 0; t < graph->tasks; t++)
        if (r->waits[t] == 0)
            push(r, (int32_t)t);
    *out = r;
    return STINT_OK;
}

void sti_ready_destroy(sti_ready *ready)
{
    if (!ready)
        return;
    sti_free(ready->waits);
    sti_free(ready->path);
    sti_free(ready->level);
    sti_free(ready->left);
    sti_free(ready->heap);
    sti_free(ready);
}

int64_t sti_ready_take(sti_ready *ready, int64_t most, int32_t *task_out)
{
    int64_t count = 0;
    while (count < most && ready->queued > 0) {
        if (ready->level && ready->level[ready->heap[0]] > ready->now)
            break;
        task_out[count++] = pop(ready);
    }
    return count;
}

void sti_ready_done(sti_ready *ready, int32_t task)
{
    const sti_ready_graph *g = &ready->graph;
    for (int64_t i = g->first[task]; i < g->first[task + 1]; i++)
        if (--ready->waits[g->next[i]] == 0)
            push(ready, g->next[i]);
    if (!ready->level)
        return;
    ready->left[ready->level[task]]--;
    while (ready->now < g->tasks && ready->left[ready->now] == 0)
        ready->now++;
}
