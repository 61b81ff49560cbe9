/* When queries were due and how long their answers took: as they came, for a page of
 * them (answer_times_page.h). */
#ifndef STI_SERVE_ANSWER_TIMES_H
#define STI_SERVE_ANSWER_TIMES_H

#include <stdbool.h>
#include <stdint.h>

typedef struct sti_answer_time {
    double due_s, latency_s;
} sti_answer_time;

typedef struct sti_answer_times {
    sti_answer_time *query; /* [count]; the page sorts them */
    int64_t count, room;
} sti_answer_times;

/* False: no memory. */
bool sti_answer_times_add(sti_answer_times *times, double due_s, double latency_s);
void sti_answer_times_fini(sti_answer_times *times); /* a zeroed one is fine */

#endif
