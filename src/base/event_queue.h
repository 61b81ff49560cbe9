/* The queue of a discrete-event simulation: what happens next. Events at one time come
 * by their kind, the lower first, then in the order of their numbers, so that a
 * simulation is a function of its inputs. One thread. */
#ifndef STI_BASE_EVENT_QUEUE_H
#define STI_BASE_EVENT_QUEUE_H

#include <stdbool.h>
#include <stdint.h>

#include "stint/status.h"

typedef struct sti_event {
    double at; /* seconds; not NaN */
    int32_t kind;
    int64_t number;
} sti_event;

typedef struct sti_event_queue {
    sti_event *heap; /* [capacity], the next one first */
    int64_t count, capacity;
} sti_event_queue;

/* A zeroed queue is empty. STINT_E_MEMORY: the event is not in it. */
stint_status sti_event_queue_push(sti_event_queue *queue, const sti_event *event);
/* False: none is left. */
bool sti_event_queue_pop(sti_event_queue *queue, sti_event *event_out);
void sti_event_queue_fini(sti_event_queue *queue);

#endif
