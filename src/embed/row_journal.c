#define _GNU_SOURCE
#include "embed/row_journal.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fail.h"
#include "base/file.h"
#include "base/number.h"

#define NAME  "journal-"
#define MAGIC "stint undo 1\n\n\n\n"

/* The front of the file, and of each record. */
typedef struct journal_head {
    char magic[16];
    uint64_t generation, pages, page_bytes;
    uint32_t unused, crc;
} journal_head;

typedef struct record_head {
    uint64_t page;
    uint32_t unused, crc; /* of generation, page and bytes */
} record_head;

static void path_of(const char *folder, int64_t generation, char path[1200])
{
    snprintf(path, 1200, "%.1000s/" NAME "%" PRId64, folder, generation);
}

stint_status sti_row_journal_init(sti_row_journal *j, const char *folder,
                                  size_t page_bytes, int64_t pages)
{
    *j = (sti_row_journal){
        .folder = folder, .fd = -1, .pages = pages, .page_bytes = page_bytes};
    j->held = sti_alloc((size_t)pages / 8 + 1, "embed.journal");
    j->fresh = sti_alloc((size_t)pages / 8 + 1, "embed.journal");
    j->list = sti_alloc_array(STI_JOURNAL_FRESH, sizeof *j->list, "embed.journal");
    return j->held && j->fresh && j->list ? STINT_OK : STINT_E_MEMORY;
}

size_t sti_row_journal_bytes(int64_t pages)
{
    return 2 * ((size_t)pages / 8 + 1) + STI_JOURNAL_FRESH * sizeof(int64_t);
}

void sti_row_journal_fini(sti_row_journal *j)
{
    if (j->held && j->fd >= 0)
        close(j->fd);
    sti_free(j->held);
    sti_free(j->fresh);
    sti_free(j->list);
    *j = (sti_row_journal){.fd = -1};
}

/* ---- the folder ---- */

/* The generation of a journal's name; -1: it is no journal. */
static int64_t generation_of(const char *name)
{
    int64_t generation;
    const size_t n = strlen(NAME);
    if (strncmp(name, NAME, n) != 0 ||
        !sti_digits_read(name + n, name + strlen(name), INT64_MAX / 2, &generation))
        return -1;
    return generation;
}

/* Remove journals of generations below `least`, or from `from` on. */
static stint_status remove_some(const char *folder, int64_t least, int64_t from)
{
    char **names = NULL, path[1200];
    int64_t count = 0;
    sti_arena *arena = sti_arena_create("embed.journal");
    stint_status st =
        arena ? sti_dir_list(arena, folder, &names, &count) : STINT_E_MEMORY;
    for (int64_t i = 0; i < count && st == STINT_OK; i++) {
        const int64_t g = generation_of(names[i]);
        if (g < 0 || (g >= least && g < from))
            continue;
        path_of(folder, g, path);
        if (unlink(path) != 0 && errno != ENOENT)
            st = sti_fail_errno("%s: cannot be removed", path);
    }
    sti_arena_destroy(arena);
    return st;
}

stint_status sti_row_journal_remove_all(const char *folder)
{
    return remove_some(folder, 0, 0);
}

static stint_status newest(const char *folder, int64_t *generation_out)
{
    char **names = NULL;
    int64_t count = 0;
    sti_arena *arena = sti_arena_create("embed.journal");
    stint_status st =
        arena ? sti_dir_list(arena, folder, &names, &count) : STINT_E_MEMORY;
    *generation_out = -1;
    for (int64_t i = 0; i < count && st == STINT_OK; i++)
        if (generation_of(names[i]) > *generation_out)
            *generation_out = generation_of(names[i]);
    sti_arena_destroy(arena);
    return st;
}

/* The newest first, so that those that are left after a stop are without a gap. */
stint_status sti_row_journal_remove_from(const char *folder, int64_t generation)
{
    int64_t last = -1;
    stint_status st = newest(folder, &last);
    for (int64_t g = last; g >= generation && st == STINT_OK; g--)
        st = remove_some(folder, 0, g);
    return st;
}

static stint_status sync_folder(const char *folder)
{
    int fd = -1;
    stint_status st = sti_folder_open(folder, &fd);
    if (st == STINT_OK && fsync(fd) != 0)
        st = sti_fail_errno("%s: cannot be written", folder);
    if (fd >= 0)
        close(fd);
    return st;
}

/* ---- writing ---- */

static journal_head head_of(const sti_row_journal *j, int64_t generation)
{
    journal_head head = {.generation = (uint64_t)generation,
                         .pages = (uint64_t)j->pages,
                         .page_bytes = j->page_bytes};
    memcpy(head.magic, MAGIC, sizeof head.magic);
    head.crc = sti_crc32c(0, &head, offsetof(journal_head, crc));
    return head;
}

stint_status sti_row_journal_begin(sti_row_journal *j, int64_t generation, int64_t keep)
{
    char path[1200];
    const journal_head head = head_of(j, generation);
    stint_status st;
    if (j->fd >= 0)
        close(j->fd);
    path_of(j->folder, generation, path);
    j->fd = open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
    if (j->fd < 0)
        return sti_fail_errno("%s: cannot be written", path);
    j->generation = generation;
    j->offset = (int64_t)sizeof head;
    memset(j->held, 0, (size_t)j->pages / 8 + 1);
    memset(j->fresh, 0, (size_t)j->pages / 8 + 1);
    j->fresh_count = 0;
    STI_TRY(sti_write_all(j->fd, path, &head, sizeof head));
    if (fsync(j->fd) != 0)
        return sti_fail_errno("%s: cannot be written", path);
    STI_TRY(sync_folder(j->folder));
    STI_TRY(
        remove_some(j->folder, generation + 1 - (keep > 0 ? keep : 1), generation + 1));
out:
    return st;
}

static uint32_t record_crc(int64_t generation, uint64_t page, const void *bytes,
                           size_t n_bytes)
{
    const uint64_t head[2] = {(uint64_t)generation, page};
    return sti_crc32c(sti_crc32c(0, head, sizeof head), bytes, n_bytes);
}

stint_status sti_row_journal_sync(sti_row_journal *j)
{
    if (fdatasync(j->fd) != 0)
        return sti_fail_errno("%s/" NAME "%" PRId64 ": cannot be written", j->folder,
                              j->generation);
    for (int64_t i = 0; i < j->fresh_count; i++)
        j->fresh[j->list[i] / 8] =
            (uint8_t)(j->fresh[j->list[i] / 8] & ~(1u << j->list[i] % 8));
    j->fresh_count = 0;
    return STINT_OK;
}

stint_status sti_row_journal_add(sti_row_journal *j, int64_t page, const void *bytes)
{
    char path[1200];
    const record_head head = {
        .page = (uint64_t)page,
        .crc = record_crc(j->generation, (uint64_t)page, bytes, j->page_bytes)};
    path_of(j->folder, j->generation, path);
    stint_status st = sti_write_all(j->fd, path, &head, sizeof head);
    if (st == STINT_OK)
        st = sti_write_all(j->fd, path, bytes, j->page_bytes);
    if (st != STINT_OK)
        return st;
    j->held[page / 8] = (uint8_t)(j->held[page / 8] | 1u << page % 8);
    j->fresh[page / 8] = (uint8_t)(j->fresh[page / 8] | 1u << page % 8);
    j->list[j->fresh_count++] = page;
    j->offset += (int64_t)(sizeof head + j->page_bytes);
    j->bytes += (int64_t)(sizeof head + j->page_bytes);
    return j->fresh_count == STI_JOURNAL_FRESH ? sti_row_journal_sync(j) : STINT_OK;
}

/* ---- taking back ---- */

/* Whole records from the front; what is behind a torn one was never relied on. */
static stint_status undo_records(const sti_row_journal *j, int fd, int64_t generation,
                                 char *bytes, sti_row_undo_fn *fn, void *user)
{
    off_t at = (off_t)sizeof(journal_head);
    record_head head;
    stint_status st = STINT_OK;
    while (st == STINT_OK &&
           pread(fd, &head, sizeof head, at) == (ssize_t)sizeof head &&
           pread(fd, bytes, j->page_bytes, at + (off_t)sizeof head) ==
               (ssize_t)j->page_bytes &&
           head.page < (uint64_t)j->pages &&
           head.crc == record_crc(generation, head.page, bytes, j->page_bytes)) {
        st = fn(user, (int64_t)head.page, bytes);
        at += (off_t)(sizeof head + j->page_bytes);
    }
    return st;
}

static stint_status undo_one(const sti_row_journal *j, int64_t generation, char *bytes,
                             sti_row_undo_fn *fn, void *user)
{
    char path[1200];
    const journal_head want = head_of(j, generation);
    journal_head have;
    int fd = -1;
    path_of(j->folder, generation, path);
    stint_status st = sti_file_open(path, &fd);
    if (st != STINT_OK)
        return st;
    const ssize_t n = pread(fd, &have, sizeof have, 0);
    if (n < (ssize_t)sizeof have) /* it was just begun: nothing was overwritten yet */
        st = STINT_OK;
    else if (memcmp(&have, &want, sizeof have) != 0)
        st = sti_fail(STINT_E_INPUT, "%s: is no journal of this table", path);
    else
        st = undo_records(j, fd, generation, bytes, fn, user);
    close(fd);
    return st;
}

stint_status sti_row_journal_undo(sti_row_journal *j, int64_t generation,
                                  sti_row_undo_fn *fn, void *user)
{
    int64_t last = -1;
    stint_status st = newest(j->folder, &last);
    char *room = sti_alloc(j->page_bytes + STI_PAGE_ALIGN, "embed.journal");
    char *bytes = (char *)STI_ALIGN_UP((uintptr_t)room, STI_PAGE_ALIGN);
    if (st == STINT_OK && !room)
        st = STINT_E_MEMORY;
    if (st == STINT_OK && last < generation - 1)
        st = sti_fail(STINT_E_INPUT,
                      "%s: the table is of checkpoint %" PRId64
                      ", older than the one to go on from, %" PRId64,
                      j->folder, last, generation);
    for (int64_t g = last; g >= generation && st == STINT_OK; g--)
        st = undo_one(j, g, bytes, fn, user);
    sti_free(room);
    return st;
}
