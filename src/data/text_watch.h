/* The watch over long work on a text: memory within its budget, progress in the log, a
 * wish to stop. */
#ifndef STI_DATA_TEXT_WATCH_H
#define STI_DATA_TEXT_WATCH_H

#include <stddef.h>
#include <stdint.h>

#include "stint/status.h"

typedef struct sti_text_watch {
    const char *title;   /* such as "learning byte pairs" */
    size_t budget_bytes; /* resident memory of the process; 0: no limit */
    size_t before_bytes; /* resident before the work began */
    int64_t last_ns;     /* when progress was last told */
} sti_text_watch;

void sti_text_watch_begin(sti_text_watch *watch, const char *title,
                          size_t budget_bytes);
/* Asked between the steps: `bytes` is what the work holds or is about to, `unit` what
 * is counted. STINT_E_BUDGET: that is too much; STINT_E_INTERRUPTED or _TERMINATED
 * after stint_stop(). */
stint_status sti_text_watch_look(sti_text_watch *watch, size_t bytes, const char *unit,
                                 int64_t done, int64_t total);

#endif
