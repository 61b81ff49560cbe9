/* Files: reading whole, writing atomically, paths and folders. */
#define _GNU_SOURCE /* O_CLOEXEC, flock, realpath */
#include "base/file.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/base_priv.h"
#include "base/fail.h"
#include "base/units.h"

/* ---- reading ---- */

static const char *kind_of(mode_t mode)
{
    return S_ISREG(mode)    ? "a file"
           : S_ISDIR(mode)  ? "a folder"
           : S_ISFIFO(mode) ? "a pipe"
                            : "a device or socket";
}

/* Opens whatever has that name and looks at it; waits for no other end of a pipe. */
static int open_read(int folder, const char *name, struct stat *info)
{
    int fd;
    do
        fd = openat(folder, name, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    while (fd < 0 && errno == EINTR);
    if (fd >= 0 && fstat(fd, info) != 0) {
        const int error = errno;
        close(fd);
        errno = error;
        return -1;
    }
    return fd;
}

stint_status sti_file_open_at(int folder, const char *folder_path, const char *name,
                              int *fd_out)
{
    const char *slash = *folder_path && *name != '/' ? "/" : "";
    struct stat info;
    const int fd = open_read(folder, name, &info);
    if (fd < 0)
        return sti_fail_errno("%s%s%s: cannot be opened", folder_path, slash, name);
    if (!S_ISREG(info.st_mode)) {
        close(fd);
        return sti_fail(STINT_E_INPUT, "%s%s%s: is %s, a file is wanted", folder_path,
                        slash, name, kind_of(info.st_mode));
    }
    *fd_out = fd;
    return STINT_OK;
}

stint_status sti_file_open(const char *path, int *fd_out)
{
    return sti_file_open_at(AT_FDCWD, "", path, fd_out);
}

stint_status sti_folder_open(const char *path, int *fd_out)
{
    const int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0)
        return sti_fail_errno("%s: the folder cannot be opened", path);
    *fd_out = fd;
    return STINT_OK;
}

stint_status sti_file_open_stream(const char *path, FILE **file_out)
{
    int fd = -1;
    stint_status st = sti_file_open(path, &fd);
    if (st != STINT_OK)
        return st;
    *file_out = fdopen(fd, "r");
    if (!*file_out) {
        st = sti_fail_errno("%s: cannot be opened", path);
        close(fd);
    }
    return st;
}

/* A pipe that the process was given is open at both ends, or has been: reading it may
 * take as long as its writer does. */
static bool is_given(const char *path)
{
    return strcmp(path, "/dev/stdin") == 0 || strncmp(path, "/dev/fd/", 8) == 0 ||
           strncmp(path, "/proc/self/fd/", 14) == 0;
}

/* Reads until `size` bytes are there or the file ends; -1 with errno on failure. */
static ssize_t read_full(int fd, void *buffer, size_t size)
{
    size_t done = 0;
    while (done < size) {
        ssize_t n = read(fd, (char *)buffer + done, size - done);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return -1;
        if (n == 0)
            break;
        done += (size_t)n;
    }
    return (ssize_t)done;
}

size_t sti_file_peek(const char *path, char *buffer, size_t size)
{
    struct stat info;
    int fd = open_read(AT_FDCWD, path, &info);
    ssize_t n = fd >= 0 && S_ISREG(info.st_mode) ? read_full(fd, buffer, size - 1) : 0;
    if (fd >= 0)
        close(fd);
    buffer[n > 0 ? n : 0] = '\0';
    return n > 0 ? (size_t)n : 0;
}

static stint_status too_large(const char *path, size_t max_bytes)
{
    return sti_fail(STINT_E_INPUT,
                    "%s: larger than %s, the most that is read of such a file", path,
                    sti_bytes_text(max_bytes));
}

/* The rest of fd into a growing block; the size in the folder is only a first guess, as
 * pipes and /proc do not know theirs. */
static stint_status read_rest(int fd, const char *path, size_t guess, size_t max_bytes,
                              char **data, size_t *bytes_out)
{
    size_t capacity = guess + 1, length = 0;
    for (;;) {
        char *grown = sti_realloc(*data, capacity + 1, "file");
        if (!grown)
            return STINT_E_MEMORY;
        *data = grown;
        ssize_t n = read_full(fd, grown + length, capacity - length);
        if (n < 0)
            return sti_fail_errno("%s: cannot be read", path);
        length += (size_t)n;
        if (length > max_bytes)
            return too_large(path, max_bytes);
        if (length < capacity)
            break;
        if (capacity > SIZE_MAX / 4)
            return too_large(path, max_bytes);
        capacity *= 2;
        if (capacity > max_bytes)
            capacity = max_bytes + 1; /* one more byte shows that it is too large */
    }
    (*data)[length] = '\0';
    *bytes_out = length;
    return STINT_OK;
}

stint_status sti_file_read(const char *path, size_t max_bytes, void **data_out,
                           size_t *bytes_out)
{
    char *data = NULL;
    struct stat info;
    int fd = open_read(AT_FDCWD, path, &info);
    if (fd < 0)
        return sti_fail_errno("%s: cannot be opened", path);
    stint_status st = STINT_OK;
    if (max_bytes > SIZE_MAX / 2)
        max_bytes = SIZE_MAX / 2;
    if (S_ISDIR(info.st_mode) || (S_ISFIFO(info.st_mode) && !is_given(path)))
        st = sti_fail(STINT_E_IO, "%s: is %s, a file is wanted", path,
                      kind_of(info.st_mode));
    else if (fcntl(fd, F_SETFL, 0) != 0) /* from here on a pipe is waited for */
        st = sti_fail_errno("%s: cannot be read", path);
    else if (S_ISREG(info.st_mode) && (uint64_t)info.st_size > max_bytes)
        st = too_large(path, max_bytes);
    else
        st = read_rest(fd, path, info.st_size > 0 ? (size_t)info.st_size : 4095,
                       max_bytes, &data, bytes_out);
    close(fd);
    if (st != STINT_OK) {
        sti_free(data);
        return st;
    }
    *data_out = data;
    return STINT_OK;
}

stint_status sti_read_at(int fd, const char *path, int64_t offset, void *buffer,
                         size_t n_bytes)
{
    size_t done = 0;
    while (done < n_bytes) {
        ssize_t n =
            pread(fd, (char *)buffer + done, n_bytes - done, offset + (int64_t)done);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return sti_fail_errno("%s: cannot be read at byte %" PRId64, path, offset);
        if (n == 0)
            return sti_fail(STINT_E_IO,
                            "%s: ends at byte %" PRId64
                            ", but %zu bytes from byte %" PRId64
                            " on are wanted: the file is cut off",
                            path, offset + (int64_t)done, n_bytes, offset);
        done += (size_t)n;
    }
    return STINT_OK;
}

stint_status sti_write_all(int fd, const char *path, const void *bytes, size_t n_bytes)
{
    const char *at = bytes;
    while (n_bytes > 0) {
        ssize_t n = write(fd, at, n_bytes);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return sti_fail_errno("%s: cannot be written", path);
        at += n;
        n_bytes -= (size_t)n;
    }
    return STINT_OK;
}

/* ---- paths and folders ---- */

bool sti_path_is_dir(const char *path)
{
    struct stat info;
    return stat(path, &info) == 0 && S_ISDIR(info.st_mode);
}

bool sti_path_is_file(const char *path)
{
    struct stat info;
    return stat(path, &info) == 0 && S_ISREG(info.st_mode);
}

stint_status sti_path_check_file(const char *path)
{
    struct stat info;
    if (stat(path, &info) != 0 || S_ISREG(info.st_mode))
        return STINT_OK;
    return sti_fail(STINT_E_IO, "%s: is %s, a file is wanted; move it away", path,
                    kind_of(info.st_mode));
}

bool sti_path_is_same(const char *a, const char *b)
{
    struct stat one, other;
    return strcmp(a, b) == 0 ||
           (stat(a, &one) == 0 && stat(b, &other) == 0 && one.st_dev == other.st_dev &&
            one.st_ino == other.st_ino);
}

char *sti_path_join(sti_arena *arena, const char *folder, const char *name)
{
    size_t length = strlen(folder);
    if (name[0] == '/' || length == 0)
        return sti_arena_strdup(arena, name);
    return sti_arena_printf(arena, folder[length - 1] == '/' ? "%s%s" : "%s/%s", folder,
                            name);
}

char *sti_path_absolute(sti_arena *arena, const char *path)
{
    char folder[PATH_MAX];
    if (path[0] == '/')
        return sti_arena_strdup(arena, path);
    if (!getcwd(folder, sizeof folder)) {
        sti_fail_errno("the working folder cannot be found");
        return NULL;
    }
    while (path[0] == '.' && path[1] == '/')
        for (path += 2; *path == '/'; path++)
            ;
    if (!*path || strcmp(path, ".") == 0)
        return sti_arena_strdup(arena, folder);
    return sti_path_join(arena, folder, path);
}

const char *sti_path_name(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

const char *sti_path_extension(const char *path)
{
    const char *name = sti_path_name(path);
    const char *dot = strrchr(name, '.');
    return dot && dot != name ? dot : "";
}

char *sti_path_folder(sti_arena *arena, const char *path)
{
    size_t length = (size_t)(sti_path_name(path) - path);
    if (length == 0)
        return sti_arena_strdup(arena, ".");
    while (length > 1 && path[length - 1] == '/')
        length--;
    return sti_arena_printf(arena, "%.*s", (int)length, path);
}

static stint_status make_dir(const char *path)
{
    if (mkdir(path, 0777) == 0 || (errno == EEXIST && sti_path_is_dir(path)))
        return STINT_OK;
    if (errno == EEXIST)
        return sti_fail(STINT_E_IO, "%s: is a file, a folder is wanted", path);
    return sti_fail_errno("%s: the folder cannot be created", path);
}

stint_status sti_file_temporary(const char *what, char *path, size_t path_bytes)
{
    const char *folder = getenv("TMPDIR");
    if (!folder || !*folder)
        folder = "/var/tmp";
    const int n = snprintf(path, path_bytes, "%s/stint-%s-XXXXXX", folder, what);
    if (n < 0 || (size_t)n >= path_bytes)
        return sti_fail(STINT_E_USAGE, "TMPDIR is too long a path");
    const int fd = mkostemp(path, O_CLOEXEC);
    if (fd < 0)
        return sti_fail_errno("no temporary file in %s (set TMPDIR)", folder);
    close(fd);
    return STINT_OK;
}

stint_status sti_dir_create(const char *path)
{
    char part[PATH_MAX];
    size_t length = strlen(path);
    if (length == 0 || length >= sizeof part)
        return sti_fail(STINT_E_IO, "'%s': no usable name for a folder", path);
    memcpy(part, path, length + 1);
    for (char *slash = strchr(part + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
        *slash = '\0';
        stint_status st = make_dir(part);
        if (st != STINT_OK)
            return st;
        *slash = '/';
    }
    return make_dir(part);
}

int sti_dir_lock(const char *path)
{
    int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    while (fd >= 0 && flock(fd, LOCK_EX) != 0)
        if (errno != EINTR) {
            close(fd);
            fd = -1;
        }
    return fd;
}

void sti_dir_unlock(int lock)
{
    if (lock >= 0)
        close(lock);
}

static int compare_names(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* All names of an open folder, in a growing array and the arena. */
static stint_status collect_names(DIR *dir, const char *path, sti_arena *arena,
                                  char ***names, int64_t *count)
{
    int64_t capacity = 0;
    struct dirent *entry;
    while (errno = 0, (entry = readdir(dir)) != NULL) {
        if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0)
            continue;
        if (*count == capacity) {
            capacity = capacity ? capacity * 2 : 64;
            char **grown =
                sti_realloc(*names, (size_t)capacity * sizeof *grown, "folder listing");
            if (!grown)
                return STINT_E_MEMORY;
            *names = grown;
        }
        char *name = sti_arena_strdup(arena, entry->d_name);
        if (!name)
            return STINT_E_MEMORY;
        (*names)[(*count)++] = name;
    }
    return errno == 0 ? STINT_OK
                      : sti_fail_errno("%s: the folder cannot be read", path);
}

stint_status sti_dir_list(sti_arena *arena, const char *path, char ***names_out,
                          int64_t *count_out)
{
    char **names = NULL, **kept = NULL;
    int64_t count = 0;
    DIR *dir = opendir(path);
    if (!dir)
        return sti_fail_errno("%s: the folder cannot be opened", path);
    stint_status st = collect_names(dir, path, arena, &names, &count);
    closedir(dir);
    if (st != STINT_OK)
        goto out;
    kept = sti_arena_alloc(arena, (size_t)count * sizeof *kept);
    if (!kept) {
        st = STINT_E_MEMORY;
        goto out;
    }
    if (count > 0) {
        memcpy(kept, names, (size_t)count * sizeof *kept);
        qsort(kept, (size_t)count, sizeof *kept, compare_names);
    }
    *names_out = kept;
    *count_out = count;
out:
    sti_free(names);
    return st;
}

bool sti_cache_path(const char *name, char *path, size_t size)
{
    const char *cache = getenv("XDG_CACHE_HOME"), *home = getenv("HOME");
    int length = -1;
    if (cache && cache[0] == '/')
        length = snprintf(path, size, "%s/stint/%s", cache, name);
    else if (home && home[0] == '/')
        length = snprintf(path, size, "%s/.cache/stint/%s", home, name);
    return length > 0 && (size_t)length < size;
}
