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

enum { FEW_PAGES = 4 };

/* Whole pages within the bytes; the few at their ends come by writing. A kernel that
 * does not know of it says no, and nothing is lost. */
static void touch(char *bytes, size_t n_bytes)
{
#ifdef MADV_POPULATE_WRITE
    const size_t page = (size_t)sysconf(_SC_PAGESIZE);
    const size_t before = (page - (uintptr_t)bytes % page) % page;
    if (n_bytes < before + FEW_PAGES * page)
        return;
    (void)madvise(bytes + before, (n_bytes - before) / page * page,
                  MADV_POPULATE_WRITE);
#else
    (void)bytes;
    (void)n_bytes;
#endif
}

void *sti_pages_array(int64_t count, size_t each_bytes, const char *name)
{
    void *array = sti_alloc_array(count, each_bytes, name);
    if (array)
        touch(array, (size_t)count * each_bytes);
    return array;
}
