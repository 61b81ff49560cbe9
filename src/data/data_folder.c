/* Image folder: PATH/<split>/<class>/NAME.{jpg,jpeg,png}. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "data/data_priv.h"

/* "<class>/<name>": each at most 255 bytes on Linux file systems. */
#define SAMPLE_PATH_BYTES 1024

static bool folder_present(const char *path, stint_data_split split)
{
    sti_arena *arena = sti_arena_create("data.paths");
    char *sub = arena ? sti_path_join(arena, path, sti_data_split_name(split)) : NULL;
    bool present = sub && sti_path_is_dir(sub);
    sti_arena_destroy(arena);
    return present;
}

static stint_status add_image(sti_index *index, int32_t class_index, const char *folder,
                              const char *class_name, const char *name)
{
    char path[SAMPLE_PATH_BYTES];
    struct stat info;
    int fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    int n = snprintf(path, sizeof path, "%s/%s", class_name, name);
    bool seen = fd >= 0 && n < (int)sizeof path && fstatat(fd, path, &info, 0) == 0;
    int error = errno;
    if (fd >= 0)
        close(fd);
    if (!seen)
        return sti_data_find(index->sink, STI_FIND_UNREADABLE, "%s/%s/%s: %s", folder,
                             class_name, name, strerror(error));
    if (!S_ISREG(info.st_mode) || !sti_data_image_name(name))
        return sti_data_find(index->sink, STI_FIND_SKIPPED,
                             "%s/%s/%s: skipped, not a .jpg or .png file", folder,
                             class_name, name);
    return sti_index_add(index, class_index, name, 0, (int64_t)info.st_size);
}

static stint_status add_class(sti_index *index, const char *folder,
                              const char *class_name)
{
    sti_arena *arena = sti_arena_create("data.names");
    char **names = NULL;
    int64_t count = 0;
    int32_t class_index = 0;
    stint_status st = STINT_E_MEMORY;
    char *path = arena ? sti_path_join(arena, folder, class_name) : NULL;
    if (!path)
        goto out;
    if (!sti_path_is_dir(path)) {
        st = sti_data_find(index->sink, STI_FIND_SKIPPED,
                           "%s: skipped, not a class folder", path);
        goto out;
    }
    if ((st = sti_index_class(index, class_name, &class_index)) != STINT_OK)
        goto out;
    st = sti_dir_list(arena, path, &names, &count);
    if (st == STINT_E_IO && index->sink)
        st = sti_data_find(index->sink, STI_FIND_UNREADABLE, "%s", stint_last_error());
    for (int64_t i = 0; i < count && st == STINT_OK; i++)
        if (names[i][0] != '.')
            st = add_image(index, class_index, folder, class_name, names[i]);
out:
    sti_arena_destroy(arena);
    return st;
}

static stint_status folder_open(stint_data *data, const stint_data_info *like,
                                sti_data_sink *sink)
{
    sti_arena *arena = sti_arena_create("data.paths");
    sti_index index = {0};
    char **classes = NULL, *folder = NULL;
    int64_t count = 0;
    stint_status st = STINT_E_MEMORY;
    data->layout = STI_LAYOUT_ENCODED;
    if (!arena || sti_index_init(&index, sink) != STINT_OK ||
        !(folder =
              sti_path_join(arena, data->info.path, sti_data_split_name(data->split))))
        goto out;
    if ((st = sti_data_add_file(data, folder)) != STINT_OK ||
        (st = sti_dir_list(arena, folder, &classes, &count)) != STINT_OK)
        goto out;
    for (int64_t i = 0; i < count && st == STINT_OK; i++)
        if (classes[i][0] != '.')
            st = add_class(&index, folder, classes[i]);
    if (st == STINT_OK)
        st = sti_index_finish(&index, data, like, folder);
out:
    sti_index_fini(&index);
    sti_arena_destroy(arena);
    return st;
}

static void sample_path(const stint_data *data, int64_t index, char *path, size_t bytes)
{
    const sti_data_sample *sample = &data->samples[index];
    (void)snprintf(path, bytes, "%s/%s", data->info.class_names[sample->label],
                   data->names + sample->where);
}

static stint_status folder_read(const stint_data *data, int64_t index, void *buffer,
                                size_t n_bytes)
{
    char path[SAMPLE_PATH_BYTES];
    struct stat info;
    size_t bytes = data->samples[index].bytes;
    sample_path(data, index, path, sizeof path);
    int fd = openat(data->fds[0], path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return sti_fail_errno("cannot open %s/%s", data->files[0], path);
    stint_status st = STINT_OK;
    if (fstat(fd, &info) != 0)
        st = sti_fail_errno("cannot read %s/%s", data->files[0], path);
    else if ((uint64_t)info.st_size != bytes)
        st = sti_fail(
            STINT_E_INPUT,
            "%s/%s has changed since the data was opened (%zu bytes then, %" PRId64
            " now); run again",
            data->files[0], path, bytes, (int64_t)info.st_size);
    else
        st = sti_read_at(fd, path, 0, buffer, n_bytes);
    close(fd);
    return st;
}

static void folder_prefetch(const stint_data *data, int64_t index)
{
    char path[SAMPLE_PATH_BYTES];
    sample_path(data, index, path, sizeof path);
    int fd = openat(data->fds[0], path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return; /* reading it will tell */
    (void)posix_fadvise(fd, 0, 0, POSIX_FADV_WILLNEED);
    close(fd);
}

static void folder_name(const stint_data *data, int64_t index, char *text_out,
                        size_t bytes)
{
    char path[SAMPLE_PATH_BYTES];
    sample_path(data, index, path, sizeof path);
    (void)snprintf(text_out, bytes, "%s/%s", sti_data_split_name(data->split), path);
}

const sti_data_source sti_data_folder = {
    .name = "folder",
    .wants = "train/<class>/*.jpg or *.png",
    .present = folder_present,
    .open = folder_open,
    .read = folder_read,
    .prefetch = folder_prefetch,
    .name_of = folder_name,
    .finds_by_name = true,
};
