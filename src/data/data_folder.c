/* Image folders: PATH/<split>/<class>/NAME.{jpg,jpeg,png,webp,bmp}, or the same without
 * splits, which names then decide. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "base/units.h"
#include "data/data_priv.h"

/* "<class>/<name>": each at most 255 bytes on Linux file systems. */
#define SAMPLE_PATH_BYTES 1024

/* Is there a folder in this one? Splits hold one a class. */
static bool has_folder(const char *path)
{
    sti_arena *arena = sti_arena_create("data.paths");
    char **names = NULL;
    int64_t count = 0;
    bool found = false;
    if (arena && sti_dir_list(arena, path, &names, &count) == STINT_OK)
        for (int64_t i = 0; i < count && !found; i++) {
            const char *full =
                names[i][0] == '.' ? NULL : sti_path_join(arena, path, names[i]);
            found = full && sti_path_is_dir(full);
        }
    sti_arena_destroy(arena);
    return found;
}

/* A folder without classes beside a list of files and labels is the list's. */
static bool folder_present(const char *path, stint_data_split split)
{
    const char *name = sti_data_find_split(path, split, "");
    if (!name)
        return false;
    if (!sti_data_has_list(path))
        return true;
    sti_arena *arena = sti_arena_create("data.paths");
    char *folder = arena ? sti_path_join(arena, path, name) : NULL;
    const bool classes = folder && has_folder(folder);
    sti_arena_destroy(arena);
    return classes;
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
                             "%s/%s/%s: skipped, not a .jpg, .png, .webp or .bmp file",
                             folder, class_name, name);
    return sti_index_add(index, class_index, name, 0, (int64_t)info.st_size);
}

/* The images of one class. One folder a class and no splits: only those whose names
 * belong to the split, and a folder without images is no class. */
static stint_status add_images(const stint_data *data, sti_index *index,
                               const char *folder, const char *class_name, char **names,
                               int64_t count)
{
    char path[SAMPLE_PATH_BYTES];
    int32_t class_index = -1;
    stint_status st = STINT_OK;
    if (!index->by_names)
        st = sti_index_class(index, class_name, &class_index);
    for (int64_t i = 0; i < count && st == STINT_OK; i++) {
        if (names[i][0] == '.')
            continue;
        if (index->by_names && sti_data_image_name(names[i])) {
            (void)snprintf(path, sizeof path, "%s/%s", class_name, names[i]);
            if (class_index < 0)
                st = sti_index_class(index, class_name, &class_index);
            if (st != STINT_OK || !sti_data_name_in_split(data, path))
                continue;
        }
        if (class_index >= 0)
            st = add_image(index, class_index, folder, class_name, names[i]);
    }
    if (st == STINT_OK && class_index < 0)
        st = sti_data_find(index->sink, STI_FIND_SKIPPED,
                           "%s/%s: skipped, there is no image in it", folder,
                           class_name);
    return st;
}

static stint_status add_class(const stint_data *data, sti_index *index,
                              const char *folder, const char *class_name)
{
    sti_arena *arena = sti_arena_create("data.names");
    char **names = NULL;
    int64_t count = 0;
    stint_status st = STINT_E_MEMORY;
    char *path = arena ? sti_path_join(arena, folder, class_name) : NULL;
    if (!path)
        goto out;
    if (!sti_path_is_dir(path)) {
        st = sti_data_find(index->sink, STI_FIND_SKIPPED,
                           "%s: skipped, not a class folder", path);
        goto out;
    }
    st = sti_dir_list(arena, path, &names, &count);
    if (st == STINT_E_IO && index->sink)
        st = sti_data_find(index->sink, STI_FIND_UNREADABLE, "%s", stint_last_error());
    if (st == STINT_OK)
        st = add_images(data, index, folder, class_name, names, count);
out:
    sti_arena_destroy(arena);
    return st;
}

/* `folder` has one folder a class. */
static stint_status open_classes(stint_data *data, const char *folder,
                                 const stint_data_info *like, bool by_names,
                                 sti_data_sink *sink)
{
    sti_arena *arena = sti_arena_create("data.paths");
    sti_index index = {0};
    char **classes = NULL;
    int64_t count = 0;
    stint_status st = STINT_E_MEMORY;
    data->layout = STI_LAYOUT_ENCODED;
    data->info.from = folder;
    if (!arena || sti_index_init(&index, sink) != STINT_OK)
        goto out;
    index.by_names = by_names;
    if ((st = sti_data_add_file(data, folder)) != STINT_OK ||
        (st = sti_dir_list(arena, folder, &classes, &count)) != STINT_OK)
        goto out;
    for (int64_t i = 0; i < count && st == STINT_OK; i++)
        if (classes[i][0] != '.')
            st = add_class(data, &index, folder, classes[i]);
    if (st == STINT_OK)
        st = sti_index_finish(&index, data, like, folder);
out:
    sti_index_fini(&index);
    sti_arena_destroy(arena);
    return st;
}

static stint_status folder_open(stint_data *data, const stint_data_info *like,
                                sti_data_sink *sink)
{
    if (!(data->split_name = sti_data_find_split(data->info.path, data->split, "")))
        return sti_fail(STINT_E_IO, "%s has changed just now; try again",
                        data->info.path);
    const char *folder = sti_path_join(data->arena, data->info.path, data->split_name);
    if (!folder)
        return STINT_E_MEMORY;
    stint_status st = sti_data_tell_split(data, "", sink);
    return st == STINT_OK ? open_classes(data, folder, like, false, sink) : st;
}

/* ---- one folder a class, no splits ---- */

static bool has_image(const char *path)
{
    sti_arena *arena = sti_arena_create("data.paths");
    char **names = NULL;
    int64_t count = 0;
    bool found = false;
    if (arena && sti_dir_list(arena, path, &names, &count) == STINT_OK)
        for (int64_t i = 0; i < count && !found; i++)
            found = names[i][0] != '.' && sti_data_image_name(names[i]);
    sti_arena_destroy(arena);
    return found;
}

static bool classes_present(const char *path, stint_data_split split)
{
    sti_arena *arena = sti_arena_create("data.paths");
    char **names = NULL;
    int64_t count = 0;
    bool found = false;
    (void)split; /* names decide */
    if (arena && !sti_data_find_split(path, STINT_DATA_TRAIN, "") &&
        !sti_data_find_split(path, STINT_DATA_TEST, "") &&
        sti_dir_list(arena, path, &names, &count) == STINT_OK)
        for (int64_t i = 0; i < count && !found; i++) {
            const char *full =
                names[i][0] == '.' ? NULL : sti_path_join(arena, path, names[i]);
            found = full && sti_path_is_dir(full) && has_image(full);
        }
    sti_arena_destroy(arena);
    return found;
}

static stint_status classes_open(stint_data *data, const stint_data_info *like,
                                 sti_data_sink *sink)
{
    stint_status st = STINT_OK;
    data->split_name = sti_data_split_name(data->split);
    if (data->split == STINT_DATA_TEST)
        st = sti_data_find(sink, STI_FIND_SPLIT,
                           "%s has classes, but no train/ and test/: a share of %s of "
                           "the images, chosen by their names, is the test split",
                           data->info.path, sti_float_text(data->share));
    return st == STINT_OK ? open_classes(data, data->info.path, like, true, sink) : st;
}

/* ---- reading ---- */

static void sample_path(const stint_data *data, int64_t index, char *path, size_t bytes)
{
    const sti_data_sample *sample = &data->samples[index];
    const char *name = data->names + sample->where;
    if (data->whole_names)
        (void)snprintf(path, bytes, "%s", name);
    else
        (void)snprintf(path, bytes, "%s/%s", data->info.class_names[sample->label],
                       name);
}

stint_status sti_data_read_file(const stint_data *data, int64_t index, void *buffer,
                                size_t n_bytes)
{
    char path[SAMPLE_PATH_BYTES];
    struct stat info;
    size_t bytes = data->samples[index].bytes;
    sample_path(data, index, path, sizeof path);
    int fd = -1;
    stint_status st = sti_file_open_at(data->fds[0], data->files[0], path, &fd);
    if (st != STINT_OK)
        return st;
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

void sti_data_prefetch_file(const stint_data *data, int64_t index)
{
    char path[SAMPLE_PATH_BYTES];
    sample_path(data, index, path, sizeof path);
    int fd = openat(data->fds[0], path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
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
    (void)snprintf(text_out, bytes, "%s/%s", data->split_name, path);
}

static void classes_name(const stint_data *data, int64_t index, char *text_out,
                         size_t bytes)
{
    sample_path(data, index, text_out, bytes);
}

const sti_data_source sti_data_folder = {
    .name = "folder",
    .wants = "train/<class>/*.jpg or *.png",
    .present = folder_present,
    .open = folder_open,
    .read = sti_data_read_file,
    .prefetch = sti_data_prefetch_file,
    .name_of = folder_name,
    .finds_by_name = true,
};

const sti_data_source sti_data_classes = {
    .name = "folder",
    .wants = "<class>/*.jpg or *.png",
    .pairs = true,
    .finds_by_name = true,
    .present = classes_present,
    .open = classes_open,
    .read = sti_data_read_file,
    .prefetch = sti_data_prefetch_file,
    .name_of = classes_name,
};
