/* A ready list: tasks of a graph without circles, handed out as soon as those that they
 * wait for are done, the one with the longest path behind it first (the lowest number
 * among equals). What is handed out depends on the graph, on how many are taken at once
 * and on the order of the calls alone, never on time. Serves one thread; whoever takes
 * runs the tasks as it likes. Hu, "Parallel sequencing and assembly line problems",
 * 1961. */
#ifndef STI_BASE_READY_H
#define STI_BASE_READY_H

#include <stdbool.h>
#include <stdint.h>

#include "stint/status.h"

/* Task t must be done before those of next[first[t]] .. next[first[t + 1] - 1], whose
 * numbers are higher; one that is there twice counts twice. */
typedef struct sti_ready_graph {
    int64_t tasks;
    const int64_t *first; /* [tasks + 1] */
    const int32_t *next;  /* [first[tasks]] */
} sti_ready_graph;

typedef struct sti_ready sti_ready;

/* by_levels: a task waits for all tasks that are fewer steps from the begin, too. Keeps
 * the graph's arrays, not copies. NULL is fine for destroy. */
stint_status sti_ready_create(const sti_ready_graph *graph, bool by_levels,
                              sti_ready **out);
void sti_ready_destroy(sti_ready *ready);
/* Up to `most` tasks that may run now; returns how many. 0: all that are left wait for
 * tasks that were taken and are not done, or none is left. */
int64_t sti_ready_take(sti_ready *ready, int64_t most, int32_t *task_out);
void sti_ready_done(sti_ready *ready, int32_t task);

#endif
