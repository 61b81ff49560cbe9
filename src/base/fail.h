/* Recording of errors and log lines. The function that first decides what an error is
 * records it; callers pass the status on, and may put a context in front. */
#ifndef STI_BASE_FAIL_H
#define STI_BASE_FAIL_H

#include <stdbool.h>

#include "stint/status.h"

#if defined(__GNUC__)
#define STI_PRINTF(a, b) __attribute__((format(printf, a, b)))
#else
#define STI_PRINTF(a, b)
#endif

/* Record a failure and return its status, so that callers can write `return
 * sti_fail(..)`. */
stint_status sti_fail(stint_status status, const char *format, ...) STI_PRINTF(2, 3);

/* Put "context: " before the recorded text and hand `status` back. */
stint_status sti_fail_context(stint_status status, const char *format, ...)
    STI_PRINTF(2, 3);

/* Like sti_fail for a failed system call: appends ": " and the text of errno. ENOSPC
 * and EDQUOT say that the disk is full. The status is STINT_E_IO. */
stint_status sti_fail_errno(const char *format, ...) STI_PRINTF(1, 2);

/* One step of several: a failure goes to the label `out`, where what was taken is given
 * back. Wants a variable `st` and the label in the same function. */
#define STI_TRY(call)                  \
    do {                               \
        if ((st = (call)) != STINT_OK) \
            goto out;                  \
    } while (0)

/* May a message of this level be shown? What is costly to find out is not found out
 * for one that will not be (stint_set_log_level). */
bool sti_log_shows(stint_log_level level);
void sti_log(stint_log_level level, const char *format, ...) STI_PRINTF(2, 3);

#endif
