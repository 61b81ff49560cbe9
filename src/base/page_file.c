#define _GNU_SOURCE /* O_DIRECT */
#include "base/page_file.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fail.h"
#include "base/file.h"

static int flags_of(const sti_paged_file_desc *d)
{
    return O_CLOEXEC | (d->writes ? O_RDWR : O_RDONLY) |
           (d->writes && d->create ? O_CREAT : 0);
}

/* With O_DIRECT where it is wanted and to be had. */
static stint_status open_file(const sti_paged_file_desc *d, sti_paged_file *file)
{
    const bool want = !d->buffered && !d->mapped;
    const stint_status st = sti_path_check_file(d->path);
    if (st != STINT_OK)
        return st;
    if (want)
        file->fd = open(d->path, flags_of(d) | O_DIRECT, 0666);
    file->direct = want && file->fd >= 0;
    if (want && file->fd < 0 && errno == EINVAL)
        sti_log(STINT_LOG_WARNING,
                "%s: the file system refuses O_DIRECT; pages go through the page cache",
                d->path);
    if (file->fd < 0 && (!want || errno == EINVAL))
        file->fd = open(d->path, flags_of(d), 0666);
    return file->fd < 0 ? sti_fail_errno("%s: cannot be opened", d->path) : STINT_OK;
}

static stint_status fit(const sti_paged_file_desc *d, sti_paged_file *file)
{
    const off_t want = (off_t)(d->pages * (int64_t)d->page_bytes);
    struct stat now;
    if (fstat(file->fd, &now) != 0)
        return sti_fail_errno("%s", d->path);
    if (now.st_size < want && d->writes && d->create) {
        if (ftruncate(file->fd, want) != 0)
            return sti_fail_errno("%s: cannot be made as long as its pages", d->path);
        now.st_size = want;
    }
    if (now.st_size < want)
        return sti_fail(STINT_E_INPUT,
                        "%s: is cut short: %" PRId64 " bytes, %" PRId64 " pages of %zu "
                        "were wanted",
                        d->path, (int64_t)now.st_size, d->pages, d->page_bytes);
    return STINT_OK;
}

static stint_status map(const sti_paged_file_desc *d, sti_paged_file *file)
{
    void *at = mmap(NULL, (size_t)d->pages * d->page_bytes,
                    PROT_READ | (d->writes ? PROT_WRITE : 0), MAP_SHARED, file->fd, 0);
    if (at == MAP_FAILED)
        return sti_fail_errno("%s: cannot be mapped", d->path);
    file->map = at;
    return STINT_OK;
}

stint_status sti_paged_file_open(const sti_paged_file_desc *desc,
                                 sti_paged_file *file_out)
{
    sti_paged_file file = {.fd = -1,
                           .path = sti_strdup(desc->path),
                           .page_bytes = desc->page_bytes,
                           .pages = desc->pages};
    stint_status st = file.path ? open_file(desc, &file) : STINT_E_MEMORY;
    if (st == STINT_OK)
        st = fit(desc, &file);
    if (st == STINT_OK && desc->mapped)
        st = map(desc, &file);
    if (st != STINT_OK) {
        sti_paged_file_close(&file);
        return st;
    }
    *file_out = file;
    return STINT_OK;
}

void sti_paged_file_close(sti_paged_file *file)
{
    if (file->map)
        munmap(file->map, (size_t)file->pages * file->page_bytes);
    if (file->path && file->fd >= 0)
        close(file->fd);
    sti_free(file->path);
    *file = (sti_paged_file){.fd = -1};
}

stint_status sti_paged_file_sync(const sti_paged_file *file)
{
    if (file->map &&
        msync(file->map, (size_t)file->pages * file->page_bytes, MS_SYNC) != 0)
        return sti_fail_errno("%s: cannot be written", file->path);
    if (fsync(file->fd) != 0)
        return sti_fail_errno("%s: cannot be written", file->path);
    return STINT_OK;
}

/* ---- pages ---- */

typedef struct page_tail {
    uint64_t index;
    uint32_t unused, crc;
} page_tail;

_Static_assert(sizeof(page_tail) == STI_PAGE_TAIL, "the tail has no padding");

static char *tail_of(size_t page_bytes, void *page)
{
    return (char *)page + page_bytes - sizeof(page_tail);
}

void sti_page_seal(size_t page_bytes, int64_t index, void *page)
{
    page_tail tail = {.index = (uint64_t)index};
    memcpy(tail_of(page_bytes, page), &tail, sizeof tail);
    tail.crc = sti_crc32c(0, page, page_bytes - sizeof tail.crc);
    memcpy(tail_of(page_bytes, page), &tail, sizeof tail);
}

static bool is_zero(const char *page, size_t n_bytes)
{
    return page[0] == 0 && memcmp(page, page + 1, n_bytes - 1) == 0;
}

sti_page_state sti_page_check(size_t page_bytes, int64_t index, const void *page)
{
    page_tail tail;
    memcpy(&tail, (const char *)page + page_bytes - sizeof tail, sizeof tail);
    if (tail.crc == 0 && tail.index == 0 && is_zero(page, page_bytes))
        return STI_PAGE_FRESH;
    return tail.index == (uint64_t)index &&
                   tail.crc == sti_crc32c(0, page, page_bytes - sizeof tail.crc)
               ? STI_PAGE_SOUND
               : STI_PAGE_BROKEN;
}
