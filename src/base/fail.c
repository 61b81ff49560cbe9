/* The record of the last error, the log hook and the version of the library. */
#include "base/fail.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/base_priv.h"
#include "stint/version.h"

/* The record has a fixed size so that running out of memory can be reported too. */
static _Thread_local char fail_text[STI_FAIL_TEXT_BYTES];

static stint_log_fn *log_fn;
static stint_log_level log_least = STINT_LOG_DEBUG;
static void *log_user;

const char *stint_last_error(void)
{
    return fail_text;
}

const char *stint_version(void)
{
    return STINT_VERSION;
}

const char *stint_status_name(stint_status status)
{
    switch (status) {
    case STINT_OK:
        return "ok";
    case STINT_E_FAILED:
        return "failed";
    case STINT_E_USAGE:
        return "wrong use";
    case STINT_E_BUDGET:
        return "budget cannot be met";
    case STINT_E_INPUT:
        return "bad input";
    case STINT_E_IO:
        return "input or output failed";
    case STINT_E_PEER:
        return "peer or network failed";
    case STINT_E_MEMORY:
        return "out of memory";
    case STINT_E_UNSUPPORTED:
        return "not supported here";
    case STINT_E_BUG:
        return "bug in Stint";
    case STINT_E_INTERRUPTED:
        return "interrupted";
    case STINT_E_TERMINATED:
        return "terminated";
    }
    return "unknown status";
}

void stint_set_log(stint_log_fn *fn, void *user)
{
    log_fn = fn;
    log_user = user;
}

void stint_set_log_level(stint_log_level least)
{
    log_least = least;
}

bool sti_log_shows(stint_log_level level)
{
    return log_fn && level <= log_least;
}

stint_status sti_fail(stint_status status, const char *format, ...)
{
    /* Formatted aside first: an argument may be stint_last_error() itself. */
    char fresh[STI_FAIL_TEXT_BYTES];
    va_list args;
    va_start(args, format);
    sti_c_vsnprintf(fresh, sizeof fresh, format, args);
    va_end(args);
    memcpy(fail_text, fresh, strlen(fresh) + 1);
    return status;
}

stint_status sti_fail_context(stint_status status, const char *format, ...)
{
    char fresh[STI_FAIL_TEXT_BYTES];
    va_list args;
    va_start(args, format);
    sti_c_vsnprintf(fresh, sizeof fresh, format, args);
    va_end(args);
    size_t context = strlen(fresh);
    sti_c_snprintf(fresh + context, sizeof fresh - context, ": %s", fail_text);
    memcpy(fail_text, fresh, strlen(fresh) + 1);
    return status;
}

stint_status sti_fail_errno(const char *format, ...)
{
    int code = errno;
    char fresh[STI_FAIL_TEXT_BYTES];
    va_list args;
    va_start(args, format);
    sti_c_vsnprintf(fresh, sizeof fresh, format, args);
    va_end(args);
    size_t length = strlen(fresh);
    if (code == EFBIG) {
        sti_c_snprintf(fresh + length, sizeof fresh - length,
                       ": the file would be larger than this process may write; "
                       "raise the limit (ulimit -f) or write less");
    } else if (code == ENOSPC || code == EDQUOT) {
        sti_c_snprintf(fresh + length, sizeof fresh - length,
                       ": the disk is full%s; free some space or write elsewhere",
                       code == EDQUOT ? " (quota used up)" : "");
    } else {
        char reason[128];
        if (strerror_r(code, reason, sizeof reason) != 0)
            snprintf(reason, sizeof reason, "error %d", code);
        sti_c_snprintf(fresh + length, sizeof fresh - length, ": %s%s", reason,
                       code == EACCES || code == EROFS
                           ? "; change what is permitted there or choose another place"
                           : "");
    }
    memcpy(fail_text, fresh, strlen(fresh) + 1);
    return STINT_E_IO;
}

void sti_log(stint_log_level level, const char *format, ...)
{
    if (!sti_log_shows(level))
        return;
    char line[2048];
    va_list args;
    va_start(args, format);
    sti_c_vsnprintf(line, sizeof line, format, args);
    va_end(args);
    log_fn(log_user, level, line);
}
