/* A log of a JSON object a line, appended to a file: {"event": NAME, ...}. One thread
 * at a time. */
#ifndef STI_BASE_JSON_LOG_H
#define STI_BASE_JSON_LOG_H

#include "base/json.h"
#include "base/text.h"
#include "stint/status.h"

typedef struct sti_json_log {
    int fd;           /* -1: not open */
    const char *path; /* borrowed */
    sti_text line;
} sti_json_log;

#define STI_JSON_LOG_CLOSED ((sti_json_log){.fd = -1})

/* STINT_E_IO. */
stint_status sti_json_log_open(sti_json_log *log, const char *path);
void sti_json_log_close(sti_json_log *log); /* one that is not open is fine */

/* A line of such an event, to be filled in; the log must outlive it. */
sti_json sti_json_log_begin(sti_json_log *log, const char *event);
/* The line is whole: into the file at once. STINT_E_IO; STINT_E_MEMORY. */
stint_status sti_json_log_end(sti_json_log *log, sti_json *line);

#endif
