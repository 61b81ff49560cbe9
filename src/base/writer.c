/* Atomic writing.
 *
 * The bytes go to "<path>.part" beside the target, which is synced and renamed over it.
 * The name is fixed so that the leavings of a killed process are taken over by the next
 * one and never pile up; a lock keeps two processes from sharing it. A target that is
 * no regular file (a terminal, a pipe, /dev/null) is written directly. */
#define _GNU_SOURCE /* flock, O_CLOEXEC, O_DIRECTORY */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fail.h"
#include "base/file.h"
#include "base/secure_random.h"

#define BUFFER_BYTES ((size_t)64 << 10)

struct sti_writer {
    int fd;
    bool direct;     /* into the target itself */
    bool secret;     /* for the owner alone: the file, and the buffer */
    size_t used;     /* of buffer */
    stint_status st; /* first failure; nothing is written after it */
    char path[PATH_MAX], part[PATH_MAX + 8];
    char buffer[BUFFER_BYTES];
};

/* After waiting for nobody: true if fd is still what the name of the part says, and not
 * a file that another process has meanwhile renamed to its target. */
static bool is_current(const sti_writer *w)
{
    struct stat mine, named;
    return fstat(w->fd, &mine) == 0 && stat(w->part, &named) == 0 &&
           mine.st_dev == named.st_dev && mine.st_ino == named.st_ino;
}

static stint_status open_part(sti_writer *w)
{
    for (int attempt = 0; attempt < 100; attempt++) {
        struct stat info;
        w->fd = open(w->part, O_WRONLY | O_CREAT | O_CLOEXEC | O_NONBLOCK,
                     w->secret ? 0600 : 0666);
        const bool pipe = w->fd < 0 && errno == ENXIO; /* and nobody reads it */
        if (!pipe && (w->fd < 0 || fstat(w->fd, &info) != 0))
            return sti_fail_errno("%s: cannot be written", w->path);
        if (pipe || !S_ISREG(info.st_mode))
            return sti_fail(STINT_E_IO,
                            "%s: is no file, and one of this name is written first; "
                            "move it away",
                            w->part);
        if (flock(w->fd, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK)
            return sti_fail(STINT_E_IO,
                            "%s: another process is writing this file; wait for it or "
                            "write elsewhere",
                            w->path);
        if (w->secret && fchmod(w->fd, 0600) != 0)
            return sti_fail_errno("%s: cannot be kept from others", w->part);
        if (is_current(w))
            return ftruncate(w->fd, 0) == 0
                       ? STINT_OK
                       : sti_fail_errno("%s: cannot be written", w->part);
        close(w->fd);
        w->fd = -1;
    }
    return sti_fail(STINT_E_IO, "%s: other processes keep replacing it", w->part);
}

/* Where to write: through symbolic links to the file itself,
 * so that a link stays one. */
static stint_status choose_target(sti_writer *w, const char *path)
{
    struct stat info, link;
    size_t length = strlen(path);
    bool exists = stat(path, &info) == 0;
    if (length == 0 || length >= sizeof w->path)
        return sti_fail(STINT_E_IO, "'%s': no usable name for a file", path);
    memcpy(w->path, path, length + 1);
    if (exists && S_ISDIR(info.st_mode))
        return sti_fail(STINT_E_IO, "%s: is a folder, a file is wanted", path);
    w->direct = exists && !S_ISREG(info.st_mode);
    if (exists && !w->direct && lstat(path, &link) == 0 && S_ISLNK(link.st_mode) &&
        !realpath(path, w->path))
        return sti_fail_errno("%s: cannot be written", path);
    if (w->direct) {
        w->fd = open(path, O_WRONLY | O_CLOEXEC | O_NONBLOCK);
        if (w->fd < 0 && errno == ENXIO)
            return sti_fail(STINT_E_IO,
                            "%s: is a pipe that nobody reads; begin the "
                            "reader first, or name a file",
                            path);
        return w->fd >= 0 && fcntl(w->fd, F_SETFL, 0) == 0
                   ? STINT_OK
                   : sti_fail_errno("%s: cannot be written", path);
    }
    snprintf(w->part, sizeof w->part, "%s.part", w->path);
    stint_status st = open_part(w);
    if (st == STINT_OK && exists && !w->secret &&
        fchmod(w->fd, info.st_mode & 07777) != 0)
        st = sti_fail_errno("%s: its permissions cannot be kept", path);
    return st;
}

static stint_status open_writer(const char *path, bool secret, sti_writer **writer_out)
{
    sti_writer *w = sti_alloc(sizeof *w, "file writer");
    if (!w)
        return STINT_E_MEMORY;
    w->fd = -1;
    w->secret = secret;
    stint_status st = choose_target(w, path);
    if (st != STINT_OK) {
        if (w->fd >= 0)
            close(w->fd); /* the part may be another's: not removed */
        sti_free(w);
        return st;
    }
    *writer_out = w;
    return STINT_OK;
}

stint_status sti_writer_open(const char *path, sti_writer **writer_out)
{
    return open_writer(path, false, writer_out);
}

static void free_writer(sti_writer *w)
{
    if (w->secret)
        sti_secure_wipe(w->buffer, sizeof w->buffer);
    sti_free(w);
}

static void flush_buffer(sti_writer *w)
{
    if (w->st == STINT_OK && w->used > 0)
        w->st = sti_write_all(w->fd, w->path, w->buffer, w->used);
    w->used = 0;
}

stint_status sti_writer_add(sti_writer *w, const void *bytes, size_t n_bytes)
{
    if (n_bytes > BUFFER_BYTES - w->used)
        flush_buffer(w);
    if (w->st != STINT_OK)
        return w->st;
    if (n_bytes >= BUFFER_BYTES) {
        w->st = sti_write_all(w->fd, w->path, bytes, n_bytes);
    } else if (n_bytes > 0) {
        memcpy(w->buffer + w->used, bytes, n_bytes);
        w->used += n_bytes;
    }
    return w->st;
}

/* Makes the rename itself last through a loss of power. Some file systems cannot sync a
 * folder; there is then nothing more to be had. */
static stint_status sync_folder(const sti_writer *w)
{
    char folder[PATH_MAX];
    size_t length = (size_t)(sti_path_name(w->path) - w->path);
    memcpy(folder, w->path, length);
    folder[length] = '\0';
    int fd = open(length ? folder : ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0)
        return STINT_OK; /* a folder may be writable and not readable */
    bool good = fsync(fd) == 0 || errno == EINVAL || errno == ENOTSUP || errno == EROFS;
    stint_status st =
        good ? STINT_OK : sti_fail_errno("%s: its folder cannot be synced", w->path);
    close(fd);
    return st;
}

static stint_status sync_file(const sti_writer *w)
{
    if (fsync(w->fd) == 0 || (w->direct && (errno == EINVAL || errno == ENOTSUP)))
        return STINT_OK;
    return sti_fail_errno("%s: cannot be written", w->path);
}

stint_status sti_writer_commit(sti_writer *w)
{
    stint_status st;
    flush_buffer(w);
    st = w->st;
    if (st == STINT_OK)
        st = sync_file(w);
    /* Renamed before closing: closing gives up the lock. */
    if (st == STINT_OK && !w->direct && rename(w->part, w->path) != 0)
        st = sti_fail_errno("%s: cannot be replaced", w->path);
    if (st != STINT_OK) {
        sti_writer_abort(w);
        return st;
    }
    if (close(w->fd) != 0)
        st = sti_fail_errno("%s: cannot be closed", w->path);
    if (st == STINT_OK && !w->direct)
        st = sync_folder(w);
    free_writer(w);
    return st;
}

void sti_writer_abort(sti_writer *w)
{
    if (!w)
        return;
    if (!w->direct)
        unlink(w->part);
    close(w->fd);
    free_writer(w);
}

static stint_status write_whole(const char *path, bool secret, const void *bytes,
                                size_t n_bytes)
{
    sti_writer *w;
    stint_status st = open_writer(path, secret, &w);
    if (st != STINT_OK)
        return st;
    sti_writer_add(w, bytes, n_bytes); /* a failure stays in w for the commit */
    return sti_writer_commit(w);
}

stint_status sti_file_write(const char *path, const void *bytes, size_t n_bytes)
{
    return write_whole(path, false, bytes, n_bytes);
}

stint_status sti_file_write_private(const char *path, const void *bytes, size_t n_bytes)
{
    return write_whole(path, true, bytes, n_bytes);
}
