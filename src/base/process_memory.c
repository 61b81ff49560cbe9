/* What the system counts as this process's memory, and how much the host has. */
#include <string.h>
#include <unistd.h>
#if defined(__GLIBC__)
#include <malloc.h>
#endif

#include "base/base_priv.h"
#include "base/memory.h"

/* The figure of a "VmHWM:   1234 kB" line; /proc is read without stdio so that asking
 * does not itself allocate. */
static size_t process_status_bytes(const char *key)
{
    char status[4096];
    if (sti_file_peek("/proc/self/status", status, sizeof status) == 0)
        return 0;
    const char *at = strstr(status, key);
    if (!at)
        return 0;
    at += strlen(key);
    while (*at == ' ' || *at == '\t')
        at++;
    size_t kib = 0;
    for (; *at >= '0' && *at <= '9'; at++)
        kib = kib * 10 + (size_t)(*at - '0');
    return kib * 1024;
}

size_t sti_host_memory_bytes(void)
{
    const long pages = sysconf(_SC_PHYS_PAGES), page_bytes = sysconf(_SC_PAGESIZE);
    return pages > 0 && page_bytes > 0 ? (size_t)pages * (size_t)page_bytes : 0;
}

size_t sti_process_peak_bytes(void)
{
    return process_status_bytes("VmHWM:");
}

size_t sti_process_now_bytes(void)
{
    return process_status_bytes("VmRSS:");
}

void sti_memory_trim(void)
{
#if defined(__GLIBC__)
    malloc_trim(0);
#endif
}
