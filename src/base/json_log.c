#define _GNU_SOURCE
#include "base/json_log.h"

#include <fcntl.h>
#include <unistd.h>

#include "base/fail.h"
#include "base/file.h"

stint_status sti_json_log_open(sti_json_log *log, const char *path)
{
    *log = (sti_json_log){.path = path};
    log->fd = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
    return log->fd < 0 ? sti_fail_errno("%s: cannot be written", path) : STINT_OK;
}

void sti_json_log_close(sti_json_log *log)
{
    if (log->path && log->fd >= 0)
        close(log->fd);
    sti_text_fini(&log->line);
    *log = STI_JSON_LOG_CLOSED;
}

sti_json sti_json_log_begin(sti_json_log *log, const char *event)
{
    sti_json j = {.out = &log->line};
    log->line.length = 0;
    sti_json_begin_object(&j, NULL);
    sti_json_text(&j, "event", event);
    return j;
}

stint_status sti_json_log_end(sti_json_log *log, sti_json *line)
{
    sti_json_end_object(line);
    sti_text_add(&log->line, "\n");
    if (log->line.failed)
        return sti_fail(STINT_E_MEMORY, "%s: out of memory for a line", log->path);
    return sti_write_all(log->fd, log->path, log->line.data, log->line.length);
}
