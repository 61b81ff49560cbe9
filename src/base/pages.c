#define _GNU_SOURCE /* madvise */
#include "base/pages.h"

#include <stdint.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/memory.h"

/* The least block that is a mapping of its own (base/memory.h). */
enum { MAPPED_LEAST = 128 << 10 };

void *sti_pages_alloc(size_t bytes, const char *name)
{
    return sti_alloc(bytes < MAPPED_LEAST ? MAPPED_LEAST : bytes, name);
}

void sti_pages_forget(void *memory, size_t bytes)
{
    const uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
    const uintptr_t from = ((uintptr_t)memory + page - 1) / page * page;
    const uintptr_t to = ((uintptr_t)memory + bytes) / page * page;
    if (to > from)
        (void)madvise((char *)memory + (from - (uintptr_t)memory), to - from,
                      MADV_DONTNEED);
}
