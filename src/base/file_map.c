#define _GNU_SOURCE /* madvise */
#include "base/file_map.h"

#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/fail.h"
#include "base/memory.h"

struct sti_file_map {
    char *begin;
    size_t n_bytes, pages, page_bytes;
    bool *kept; /* [pages] */
};

stint_status sti_file_map_create(int fd, const char *path, size_t n_bytes,
                                 sti_file_map **map_out)
{
    const size_t page = (size_t)sysconf(_SC_PAGESIZE);
    const size_t pages = (n_bytes + page - 1) / page;
    sti_file_map *m = sti_alloc(sizeof *m, "file mapped");
    bool *kept = m ? sti_alloc(pages, "file mapped") : NULL;
    if (!kept) {
        sti_free(m);
        return STINT_E_MEMORY;
    }
    *m = (sti_file_map){
        .n_bytes = n_bytes, .pages = pages, .page_bytes = page, .kept = kept};
    m->begin = mmap(NULL, n_bytes, PROT_READ, MAP_PRIVATE, fd, 0);
    if (m->begin == MAP_FAILED) {
        const stint_status st = sti_fail_errno("%s: cannot be mapped", path);
        sti_free(kept);
        sti_free(m);
        return st;
    }
    *map_out = m;
    return STINT_OK;
}

void sti_file_map_destroy(sti_file_map *m)
{
    if (!m)
        return;
    munmap(m->begin, m->n_bytes);
    sti_free(m->kept);
    sti_free(m);
}

const void *sti_file_map_at(const sti_file_map *m, int64_t offset)
{
    return offset >= 0 && (uint64_t)offset < m->n_bytes ? m->begin + offset : NULL;
}

/* Is it part of the mapping? *offset_out: where it begins. */
static bool holds(const sti_file_map *m, const void *from, size_t n_bytes,
                  size_t *offset_out)
{
    const uintptr_t at = (uintptr_t)from, begin = (uintptr_t)m->begin;
    if (n_bytes == 0 || at < begin || at - begin >= m->n_bytes ||
        n_bytes > m->n_bytes - (at - begin))
        return false;
    *offset_out = at - begin;
    return true;
}

bool sti_file_map_rest(const sti_file_map *m, const void *from, size_t n_bytes)
{
    size_t offset;
    if (!holds(m, from, n_bytes, &offset))
        return false;
    (void)madvise(m->begin, m->n_bytes, MADV_DONTNEED);
    return true;
}

void sti_file_map_keep(sti_file_map *m, const void *from, size_t n_bytes)
{
    size_t offset;
    if (holds(m, from, n_bytes, &offset))
        memset(m->kept + offset / m->page_bytes, true,
               (offset + n_bytes - 1) / m->page_bytes - offset / m->page_bytes + 1);
}

/* The run of pages from `first` on that are kept, or are not. Its end. */
static size_t run_end(const sti_file_map *m, size_t first)
{
    size_t end = first + 1;
    while (end < m->pages && m->kept[end] == m->kept[first])
        end++;
    return end;
}

size_t sti_file_map_settle(sti_file_map *m)
{
    size_t kept = 0;
    for (size_t i = 0, end; i < m->pages; i = end) {
        end = run_end(m, i);
        char *at = m->begin + i * m->page_bytes;
        const size_t n_bytes = (end - i) * m->page_bytes;
        kept += m->kept[i] ? n_bytes : 0;
        /* Pages beside one that is touched come with it where they are the file's. The
         * addresses stay taken, so that the mapping can be ended as one. */
        if (m->kept[i])
            (void)madvise(at, n_bytes, MADV_DONTNEED);
        else
            (void)mmap(at, n_bytes, PROT_NONE,
                       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0);
    }
    return kept;
}

void sti_file_map_fill(const sti_file_map *m)
{
#ifdef MADV_POPULATE_READ
    for (size_t i = 0, end; i < m->pages; i = end) {
        end = run_end(m, i);
        if (m->kept[i])
            (void)madvise(m->begin + i * m->page_bytes, (end - i) * m->page_bytes,
                          MADV_POPULATE_READ);
    }
#else
    (void)m;
#endif
}
