#include "base/event_queue.h"

#include "base/memory.h"

static bool is_before(const sti_event *a, const sti_event *b)
{
    if (a->at < b->at || a->at > b->at)
        return a->at < b->at;
    return a->kind != b->kind ? a->kind < b->kind : a->number < b->number;
}

static stint_status make_room(sti_event_queue *queue)
{
    if (queue->count < queue->capacity)
        return STINT_OK;
    const int64_t capacity = queue->capacity ? 2 * queue->capacity : 64;
    sti_event *heap =
        sti_realloc(queue->heap, (size_t)capacity * sizeof *queue->heap, "event queue");
    if (!heap)
        return STINT_E_MEMORY;
    queue->heap = heap;
    queue->capacity = capacity;
    return STINT_OK;
}

stint_status sti_event_queue_push(sti_event_queue *queue, const sti_event *event)
{
    const stint_status st = make_room(queue);
    if (st != STINT_OK)
        return st;
    int64_t at = queue->count++;
    while (at > 0 && is_before(event, &queue->heap[(at - 1) / 2])) {
        queue->heap[at] = queue->heap[(at - 1) / 2];
        at = (at - 1) / 2;
    }
    queue->heap[at] = *event;
    return STINT_OK;
}

/* Where the last event belongs, when the first place is free. */
static void sink(sti_event_queue *queue, const sti_event *last)
{
    int64_t at = 0;
    for (;;) {
        int64_t next = 2 * at + 1;
        if (next >= queue->count)
            break;
        if (next + 1 < queue->count &&
            is_before(&queue->heap[next + 1], &queue->heap[next]))
            next++;
        if (!is_before(&queue->heap[next], last))
            break;
        queue->heap[at] = queue->heap[next];
        at = next;
    }
    queue->heap[at] = *last;
}

bool sti_event_queue_pop(sti_event_queue *queue, sti_event *event_out)
{
    if (queue->count == 0)
        return false;
    *event_out = queue->heap[0];
    const sti_event last = queue->heap[--queue->count];
    if (queue->count > 0)
        sink(queue, &last);
    return true;
}

void sti_event_queue_fini(sti_event_queue *queue)
{
    sti_free(queue->heap);
    *queue = (sti_event_queue){.count = 0};
}
