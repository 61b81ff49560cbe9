/* Loaded before a program (LD_PRELOAD), writes down what it does to the files below
 * $WRITE_LOG_ROOT, in the order in which it happened, to $WRITE_LOG: what crash.py
 * makes the states of a disk from that a power cut can leave. Calls go through one
 * lock, so that a sync covers exactly the writes that stand before it.
 *
 * A record is "op fd offset length path_length\n", then the path and the bytes:
 *   o opened (offset: 1 it was created, 2 cut to nothing, 0 neither)   w written
 *   t cut or made longer to `offset`   s synced   r renamed (bytes: to)   u removed */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { FDS = 1024 };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int log_fd = -1;
static const char *root;
static char watched[FDS];

static ssize_t (*real_write)(int, const void *, size_t);
static ssize_t (*real_pwrite)(int, const void *, size_t, off_t);
static int (*real_openat)(int, const char *, int, ...);
static int (*real_ftruncate)(int, off_t);
static int (*real_fsync)(int), (*real_fdatasync)(int), (*real_close)(int);
static int (*real_rename)(const char *, const char *), (*real_unlink)(const char *);

/* The bits of a function pointer, which ISO C does not convert. */
static void find(void *slot, const char *name)
{
    void *at = dlsym(RTLD_NEXT, name);
    memcpy(slot, &at, sizeof at);
}

__attribute__((constructor)) static void begin(void)
{
    const char *path = getenv("WRITE_LOG");
    root = getenv("WRITE_LOG_ROOT");
    find(&real_write, "write");
    find(&real_pwrite, "pwrite");
    find(&real_openat, "openat");
    find(&real_ftruncate, "ftruncate");
    find(&real_fsync, "fsync");
    find(&real_fdatasync, "fdatasync");
    find(&real_close, "close");
    find(&real_rename, "rename");
    find(&real_unlink, "unlink");
    if (path && root)
        log_fd =
            real_openat(AT_FDCWD, path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
}

static void put(const void *bytes, size_t n)
{
    for (const char *at = bytes; n > 0;) {
        const ssize_t done = real_write(log_fd, at, n);
        if (done <= 0)
            _exit(99); /* a log with a gap would prove nothing */
        at += done;
        n -= (size_t)done;
    }
}

static void tell(char op, int fd, long long offset, const char *path, const void *bytes,
                 size_t n)
{
    char head[128];
    const size_t path_length = path ? strlen(path) : 0;
    const int length = snprintf(head, sizeof head, "%c %d %lld %zu %zu\n", op, fd,
                                offset, n, path_length);
    put(head, (size_t)length);
    put(path, path_length);
    put(bytes, n);
}

static int is_ours(const char *path)
{
    return log_fd >= 0 && strncmp(path, root, strlen(root)) == 0;
}

static int is_watched(int fd)
{
    return fd >= 0 && fd < FDS && watched[fd];
}

static int open_watched(int folder, const char *path, int flags, mode_t mode)
{
    struct stat now;
    if (!is_ours(path))
        return real_openat(folder, path, flags, mode);
    pthread_mutex_lock(&lock);
    const int was = stat(path, &now) == 0;
    const int fd = real_openat(folder, path, flags, mode);
    if (fd >= 0 && fd < FDS) {
        watched[fd] = 1;
        tell('o', fd, was ? ((flags & O_TRUNC) ? 2 : 0) : 1, path, NULL, 0);
    }
    pthread_mutex_unlock(&lock);
    return fd;
}

static mode_t mode_of(int flags, va_list args)
{
    return flags & (O_CREAT | O_TMPFILE) ? (mode_t)va_arg(args, int) : 0;
}

int open(const char *path, int flags, ...)
{
    va_list args;
    va_start(args, flags);
    const mode_t mode = mode_of(flags, args);
    va_end(args);
    return open_watched(AT_FDCWD, path, flags, mode);
}

int openat(int folder, const char *path, int flags, ...)
{
    va_list args;
    va_start(args, flags);
    const mode_t mode = mode_of(flags, args);
    va_end(args);
    return open_watched(folder, path, flags, mode);
}

ssize_t write(int fd, const void *bytes, size_t n)
{
    if (!is_watched(fd))
        return real_write(fd, bytes, n);
    pthread_mutex_lock(&lock);
    const ssize_t done = real_write(fd, bytes, n);
    if (done > 0)
        tell('w', fd, (long long)lseek(fd, 0, SEEK_CUR) - done, NULL, bytes,
             (size_t)done);
    pthread_mutex_unlock(&lock);
    return done;
}

ssize_t pwrite(int fd, const void *bytes, size_t n, off_t offset)
{
    if (!is_watched(fd))
        return real_pwrite(fd, bytes, n, offset);
    pthread_mutex_lock(&lock);
    const ssize_t done = real_pwrite(fd, bytes, n, offset);
    if (done > 0)
        tell('w', fd, (long long)offset, NULL, bytes, (size_t)done);
    pthread_mutex_unlock(&lock);
    return done;
}

static int sync_watched(int fd, int (*real)(int))
{
    if (!is_watched(fd))
        return real(fd);
    pthread_mutex_lock(&lock);
    const int failed = real(fd);
    if (!failed)
        tell('s', fd, 0, NULL, NULL, 0);
    pthread_mutex_unlock(&lock);
    return failed;
}

int fsync(int fd)
{
    return sync_watched(fd, real_fsync);
}

int fdatasync(int fd)
{
    return sync_watched(fd, real_fdatasync);
}

int ftruncate(int fd, off_t size)
{
    if (!is_watched(fd))
        return real_ftruncate(fd, size);
    pthread_mutex_lock(&lock);
    const int failed = real_ftruncate(fd, size);
    if (!failed)
        tell('t', fd, (long long)size, NULL, NULL, 0);
    pthread_mutex_unlock(&lock);
    return failed;
}

int rename(const char *from, const char *to)
{
    if (!is_ours(from))
        return real_rename(from, to);
    pthread_mutex_lock(&lock);
    const int failed = real_rename(from, to);
    if (!failed)
        tell('r', -1, 0, from, to, strlen(to));
    pthread_mutex_unlock(&lock);
    return failed;
}

int unlink(const char *path)
{
    if (!is_ours(path))
        return real_unlink(path);
    pthread_mutex_lock(&lock);
    const int failed = real_unlink(path);
    if (!failed)
        tell('u', -1, 0, path, NULL, 0);
    pthread_mutex_unlock(&lock);
    return failed;
}

int close(int fd)
{
    if (is_watched(fd))
        watched[fd] = 0;
    return real_close(fd);
}
