#define _GNU_SOURCE /* dl_iterate_phdr, madvise */
#include "base/program.h"

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#if defined(__linux__) && defined(__GLIBC__)
#include <fcntl.h>
#include <link.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/memory.h"

/* An entry of /proc/self/pagemap. */
#define PAGE_PRESENT (UINT64_C(1) << 63)
#define PAGE_OF_FILE (UINT64_C(1) << 61)

typedef struct settler {
    const char *const *used;
    sti_program_pages *out;
    bool giving_back; /* else mapping */
    size_t page;
    int pagemap; /* descriptor, -1: not to be had */
} settler;

typedef struct segment {
    char *begin;
    size_t bytes; /* whole pages */
} segment;

static segment segment_of(const settler *s, const struct dl_phdr_info *object,
                          const ElfW(Phdr) * header)
{
    uintptr_t from = object->dlpi_addr + header->p_vaddr, to = from + header->p_memsz;
    from &= ~(uintptr_t)(s->page - 1);
    return (segment){(char *)from, STI_ALIGN_UP(to, s->page) - from};
}

/* Pages hold what lies between variables too. */
__attribute__((no_sanitize_address)) static void map_all(const settler *s,
                                                         const segment *g)
{
    const volatile char *at = g->begin;
    for (size_t i = 0; i < g->bytes; i += s->page)
        (void)at[i];
}

/* Nothing of it was written to, as by relocation or by a debugger. */
static bool is_as_in_file(const settler *s, const segment *g)
{
    uint64_t entry[256];
    const size_t pages = g->bytes / s->page;
    const size_t first = (uintptr_t)g->begin / s->page;
    for (size_t i = 0; i < pages;) {
        size_t n = pages - i < 256 ? pages - i : 256;
        ssize_t got = pread(s->pagemap, entry, n * sizeof *entry,
                            (off_t)((first + i) * sizeof *entry));
        if (got != (ssize_t)(n * sizeof *entry))
            return false;
        for (size_t k = 0; k < n; k++)
            if ((entry[k] & PAGE_PRESENT) && !(entry[k] & PAGE_OF_FILE))
                return false;
        i += n;
    }
    return true;
}

static bool contains(const settler *s, const struct dl_phdr_info *object,
                     const void *address)
{
    for (int i = 0; i < object->dlpi_phnum; i++) {
        segment g = segment_of(s, object, &object->dlpi_phdr[i]);
        if (object->dlpi_phdr[i].p_type == PT_LOAD &&
            (uintptr_t)address - (uintptr_t)g.begin < g.bytes)
            return true;
    }
    return false;
}

static bool is_used(const settler *s, const struct dl_phdr_info *object)
{
    const char *slash = strrchr(object->dlpi_name, '/');
    const char *name = slash ? slash + 1 : object->dlpi_name;
    for (int i = 0; s->used[i]; i++)
        if (strncmp(name, s->used[i], strlen(s->used[i])) == 0)
            return true;
    return contains(s, object, (const void *)(uintptr_t)sti_program_settle);
}

static void settle_segment(const settler *s, const segment *g, bool used)
{
    if (!s->giving_back && used) {
        map_all(s, g);
        s->out->code_bytes += g->bytes;
    } else if (s->giving_back && !used && s->pagemap >= 0 && is_as_in_file(s, g)) {
        madvise(g->begin, g->bytes, MADV_DONTNEED);
    }
}

static int settle_object(struct dl_phdr_info *object, size_t size, void *user)
{
    const settler *s = user;
    const bool used = is_used(s, object);
    (void)size;
    if (strncmp(object->dlpi_name, "linux-vdso", 10) == 0)
        return 0;
    for (int i = 0; i < object->dlpi_phnum; i++) {
        const ElfW(Phdr) *header = &object->dlpi_phdr[i];
        segment g = segment_of(s, object, header);
        if (header->p_type != PT_LOAD || !(header->p_flags & PF_R))
            continue;
        if (!(header->p_flags & PF_W))
            settle_segment(s, &g, used);
        else if (!s->giving_back)
            s->out->data_bytes += g.bytes;
    }
    return 0;
}

void sti_program_settle(const char *const *used, sti_program_pages *pages_out)
{
    settler s = {.used = used,
                 .out = pages_out,
                 .giving_back = true,
                 .page = (size_t)sysconf(_SC_PAGESIZE),
                 .pagemap = open("/proc/self/pagemap", O_RDONLY | O_CLOEXEC)};
    *pages_out = (sti_program_pages){0};
    dl_iterate_phdr(settle_object, &s);
    s.giving_back = false; /* after that, so that never more is there than need be */
    dl_iterate_phdr(settle_object, &s);
    if (s.pagemap >= 0)
        close(s.pagemap);
}

#else

void sti_program_settle(const char *const *used, sti_program_pages *pages_out)
{
    (void)used;
    *pages_out = (sti_program_pages){0};
}
#endif
