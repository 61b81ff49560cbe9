/* Files of pages that are read and written one by one: each ends with its number and a
 * CRC-32C, so that one that was torn, misplaced or rotted is told from a sound one. A
 * page that was never written is a hole of the file, and reads as zeros.
 *
 * What goes to and fro is base/async_io.h's; this is the file, and what a page looks
 * like. With O_DIRECT, where the file system has it, pages pass by the page cache: a
 * file many times larger than memory costs none. Buffers are then aligned to
 * STI_PAGE_ALIGN. A page_file serves one thread at a time. */
#ifndef STI_BASE_PAGE_FILE_H
#define STI_BASE_PAGE_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "stint/status.h"

enum { STI_PAGE_ALIGN = 4096, STI_PAGE_TAIL = 16 };

typedef struct sti_paged_file {
    int fd;
    char *path;
    size_t page_bytes; /* a multiple of STI_PAGE_ALIGN */
    int64_t pages;
    bool direct; /* O_DIRECT was wanted and is there */
    char *map;   /* the whole file, where it is mapped; else NULL */
} sti_paged_file;

typedef struct sti_paged_file_desc {
    const char *path;
    size_t page_bytes;
    int64_t pages;
    bool writes;   /* else for reading alone */
    bool create;   /* with writes: it need not be there, and becomes so long */
    bool buffered; /* without O_DIRECT */
    bool mapped;   /* through a mapping, in the place of both */
} sti_paged_file_desc;

/* STINT_E_INPUT: it is shorter than its pages; STINT_E_IO. Where O_DIRECT is refused
 * the log says so, and the file is read through the page cache. */
stint_status sti_paged_file_open(const sti_paged_file_desc *desc,
                                 sti_paged_file *file_out);
void sti_paged_file_close(sti_paged_file *file); /* also of a zeroed one */
/* All that was written is on the disk. */
stint_status sti_paged_file_sync(const sti_paged_file *file);

/* Bytes of a page that are the caller's, at its front. */
static inline size_t sti_page_payload(size_t page_bytes)
{
    return page_bytes - STI_PAGE_TAIL;
}

/* Number and checksum into the tail. */
void sti_page_seal(size_t page_bytes, int64_t index, void *page);

typedef enum sti_page_state {
    STI_PAGE_FRESH,
    STI_PAGE_SOUND,
    STI_PAGE_BROKEN
} sti_page_state;
/* FRESH: all zeros, never written. */
sti_page_state sti_page_check(size_t page_bytes, int64_t index, const void *page);

#endif
