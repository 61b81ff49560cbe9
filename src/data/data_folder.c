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
static bool folder_present(const char *path, stint_data_split split, bool nested)
{
    (void)nested; /* or not, it is there */
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

/* ---- one class ---- */

/* How deep an image may lie for its folder to be taken for one with classes. */
enum { LOOKED_DEEP = 4 };
/* Folders within folders beyond this are not looked into. */
enum { FOLDERS_DEEP = 32 };

/* A class folder on its way into the index. */
typedef struct class_walk {
    const stint_data *data;
    sti_index *index;
    const char *folder, *class_name; /* the split's folder, and the name in it */
    int32_t class_index;             /* -1: there is no image of it yet */
    bool passed;                     /* a folder within it was */
    struct stat above[FOLDERS_DEEP]; /* folders that are being looked into */
} class_walk;

static bool same_file(const struct stat *a, const struct stat *b)
{
    return a->st_dev == b->st_dev && a->st_ino == b->st_ino;
}

static stint_status walk_folder(class_walk *w, const char *inner, int depth);

/* The folder `inner` of the class, "sub/deeper", whose status is `info`. */
static stint_status enter_folder(class_walk *w, const char *inner,
                                 const struct stat *info, int depth)
{
    const char *why = depth == FOLDERS_DEEP ? "it lies too deep" : NULL;
    for (int i = 0; i < depth; i++)
        if (same_file(&w->above[i], info)) /* by a link */
            why = "it is a folder above itself";
    if (why)
        return sti_data_find(w->index->sink, STI_FIND_FOLDER, "%s/%s/%s: skipped, %s",
                             w->folder, w->class_name, inner, why);
    w->above[depth] = *info;
    return walk_folder(w, inner, depth + 1);
}

static stint_status pass_folder(class_walk *w, const char *name)
{
    w->index->passed_folders = true;
    return sti_data_find(w->index->sink, STI_FIND_FOLDER,
                         "%s/%s/%s: skipped, it is a folder within a class; "
                         "data.nested = true takes what is in it",
                         w->folder, w->class_name, name);
}

/* By its name, whether this image belongs to the split; its class is there then. */
static stint_status choose_image(class_walk *w, const char *path, bool *in_split)
{
    *in_split = sti_data_name_in_split(w->data, path);
    return w->class_index >= 0
               ? STINT_OK
               : sti_index_class(w->index, w->class_name, &w->class_index);
}

/* A file or folder of the class; name: "sub/1.jpg". *is_folder_out: one that is not
 * looked into. */
static stint_status add_entry(class_walk *w, const char *name, int depth,
                              bool *is_folder_out)
{
    char path[SAMPLE_PATH_BYTES];
    struct stat info;
    bool wanted = true;
    const int n = snprintf(path, sizeof path, "%s/%s", w->class_name, name);
    const bool fits = n < (int)sizeof path, image = sti_data_image_name(name);
    if (w->index->by_names && fits && image) {
        const stint_status st = choose_image(w, path, &wanted);
        if (st != STINT_OK || !wanted)
            return st;
    }
    if (!fits || fstatat(w->data->fds[0], path, &info, 0) != 0)
        return sti_data_find(w->index->sink, STI_FIND_UNREADABLE, "%s/%s/%s: %s",
                             w->folder, w->class_name, name,
                             strerror(fits ? errno : ENAMETOOLONG));
    if (S_ISDIR(info.st_mode)) {
        *is_folder_out = !w->data->nested;
        w->passed = w->passed || *is_folder_out;
        return *is_folder_out ? STINT_OK : enter_folder(w, name, &info, depth);
    }
    if (w->class_index < 0)
        return STINT_OK; /* what lies in a folder without images is nobody's */
    if (!S_ISREG(info.st_mode) || !image)
        return sti_data_find(w->index->sink, STI_FIND_SKIPPED,
                             "%s/%s/%s: skipped, not a .jpg, .png, .webp or .bmp file",
                             w->folder, w->class_name, name);
    return sti_index_add(w->index, w->class_index, name, 0, (int64_t)info.st_size);
}

/* What is in the folder `inner` of the class ("": the class itself). Folders that are
 * passed by are told when it is known whether this is a class. */
static stint_status walk_names(class_walk *w, const char *inner, int depth,
                               sti_arena *arena, char **names, int64_t count)
{
    stint_status st = STINT_OK;
    for (int64_t i = 0; i < count && st == STINT_OK; i++) {
        bool passed = false;
        if (names[i][0] == '.') {
            names[i] = NULL;
            continue;
        }
        if (*inner && !(names[i] = sti_path_join(arena, inner, names[i])))
            return STINT_E_MEMORY;
        st = add_entry(w, names[i], depth, &passed);
        names[i] = passed ? names[i] : NULL;
    }
    for (int64_t i = 0; i < count && st == STINT_OK && w->class_index >= 0; i++)
        if (names[i])
            st = pass_folder(w, names[i]);
    return st;
}

static stint_status walk_folder(class_walk *w, const char *inner, int depth)
{
    sti_arena *arena = sti_arena_create("data.names");
    char **names = NULL;
    int64_t count = 0;
    stint_status st = STINT_E_MEMORY;
    char *path = arena ? sti_path_join(arena, w->folder, w->class_name) : NULL;
    if (path && *inner)
        path = sti_path_join(arena, path, inner);
    if (!path)
        goto out;
    st = sti_dir_list(arena, path, &names, &count);
    if (st == STINT_E_IO && w->index->sink->found)
        st = sti_data_find(w->index->sink, STI_FIND_UNREADABLE, "%s",
                           stint_last_error());
    if (st == STINT_OK)
        st = walk_names(w, inner, depth, arena, names, count);
out:
    sti_arena_destroy(arena);
    return st;
}

/* One folder a class and no splits: a folder without images is no class. */
static stint_status tell_no_class(const class_walk *w)
{
    return sti_data_find(w->index->sink, STI_FIND_SKIPPED,
                         "%s/%s: skipped, there is no image in it%s", w->folder,
                         w->class_name,
                         w->passed ? ", only folders, of which data.nested = true "
                                     "takes what is in them"
                                   : "");
}

static stint_status add_class(const stint_data *data, sti_index *index,
                              const char *folder, const char *class_name)
{
    class_walk w = {.data = data,
                    .index = index,
                    .folder = folder,
                    .class_name = class_name,
                    .class_index = -1};
    stint_status st = STINT_OK;
    if (fstatat(data->fds[0], class_name, &w.above[0], 0) != 0 ||
        !S_ISDIR(w.above[0].st_mode))
        return sti_data_find(index->sink, STI_FIND_SKIPPED,
                             "%s/%s: skipped, not a class folder", folder, class_name);
    if (!index->by_names)
        st = sti_index_class(index, class_name, &w.class_index);
    if (st == STINT_OK)
        st = walk_folder(&w, "", 1);
    return st == STINT_OK && w.class_index < 0 ? tell_no_class(&w) : st;
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

/* Is there an image in this folder, or, nested, in one within? */
static bool has_image(const char *path, int depth)
{
    sti_arena *arena = sti_arena_create("data.paths");
    char **names = NULL;
    int64_t count = 0;
    bool found = false;
    if (arena && sti_dir_list(arena, path, &names, &count) == STINT_OK) {
        for (int64_t i = 0; i < count && !found; i++)
            found = names[i][0] != '.' && sti_data_image_name(names[i]);
        for (int64_t i = 0; i < count && !found && depth > 0; i++) {
            const char *full =
                names[i][0] == '.' ? NULL : sti_path_join(arena, path, names[i]);
            found = full && sti_path_is_dir(full) && has_image(full, depth - 1);
        }
    }
    sti_arena_destroy(arena);
    return found;
}

static bool classes_present(const char *path, stint_data_split split, bool nested)
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
            found = full && sti_path_is_dir(full) &&
                    has_image(full, nested ? LOOKED_DEEP : 0);
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
