/* The image folder inside PATH/train.tar and PATH/test.tar, read in place.
 *
 * libarchive walks the headers once; after that a sample is a span of the file. Where a
 * member's bytes begin is not something libarchive tells, but a member ends where the
 * next header begins, and its data is padded to 512 bytes: so it begins that far
 * before. This holds with pax and GNU extension headers too, which come before the
 * header proper. */
#include <archive.h>
#include <archive_entry.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "data/data_priv.h"

#define TAR_BLOCK 512

static bool tar_present(const char *path, stint_data_split split, bool nested)
{
    (void)nested; /* or not, it is there */
    return sti_data_find_split(path, split, ".tar") != NULL;
}

/* A walk over one archive. */
typedef struct tar_walk {
    struct archive *archive;
    sti_index *index;
    stint_data *data;
    const char *path;
    int64_t file_bytes;
    /* The image whose end is not known yet; pending_name is NULL for none. */
    char *pending_name;
    int32_t pending_class;
    int64_t pending_bytes;
} tar_walk;

/* Split "./train/cat/1.jpg" into class and name, in place, where the name of one in a
 * folder within the class is "sub/1.jpg". False: not of that form. */
static bool split_member(char *member, const char *split, char **class_out,
                         char **name_out)
{
    size_t length = strlen(split);
    while (member[0] == '.' && member[1] == '/')
        member += 2;
    if (strncmp(member, split, length) == 0 && member[length] == '/')
        member += length + 1;
    char *slash = strchr(member, '/');
    if (!slash || slash == member)
        return false;
    *slash = '\0';
    *class_out = member;
    *name_out = slash + 1;
    return member[0] != '.';
}

/* Is a part of this path hidden, as in folders? */
static bool is_hidden(const char *name)
{
    return name[0] == '.' || strstr(name, "/.") != NULL;
}

/* The pending image ends at `end`. */
static stint_status place_pending(tar_walk *walk, int64_t end)
{
    if (!walk->pending_name)
        return STINT_OK;
    int64_t padded = (walk->pending_bytes + TAR_BLOCK - 1) / TAR_BLOCK * TAR_BLOCK;
    int64_t where = end - padded;
    const char *name = walk->pending_name;
    walk->pending_name = NULL;
    if (where < TAR_BLOCK || where + walk->pending_bytes > walk->file_bytes)
        return sti_data_find(
            walk->index->sink, STI_FIND_DAMAGED_INDEX,
            "%s: %s lies outside the archive, which is cut short or damaged",
            walk->path, name);
    return sti_index_add(walk->index, walk->pending_class, name, where,
                         walk->pending_bytes);
}

static stint_status skip_member(tar_walk *walk, const char *name, const char *why)
{
    return sti_data_find(walk->index->sink, STI_FIND_SKIPPED, "%s: %s: skipped, %s",
                         walk->path, name, why);
}

static stint_status take_member(tar_walk *walk, struct archive_entry *entry)
{
    const char *stored = archive_entry_pathname(entry);
    if (!stored) /* not representable in this locale */
        stored = archive_entry_pathname_utf8(entry);
    if (!stored)
        return skip_member(walk, "a member", "its name cannot be read");
    char *member = sti_arena_strdup(walk->index->arena, stored);
    char *class_name = NULL, *name = NULL;
    if (!member)
        return STINT_E_MEMORY;
    bool is_folder = archive_entry_filetype(entry) == AE_IFDIR;
    bool fits = split_member(member, walk->data->split_name, &class_name, &name);
    if (is_folder) { /* a class folder; it may turn out to be empty */
        int32_t ignored;
        return fits && !*name && strcmp(class_name, walk->data->split_name) != 0
                   ? sti_index_class(walk->index, class_name, &ignored)
                   : STINT_OK;
    }
    if (!fits || !*name)
        return skip_member(walk, stored, "not <class>/<image>");
    if (is_hidden(name))
        return STINT_OK;
    if (strchr(name, '/') && !walk->data->nested) {
        walk->index->passed_folders = true;
        return sti_data_find(walk->index->sink, STI_FIND_FOLDER,
                             "%s: %s: skipped, it lies in a folder within a class; "
                             "data.nested = true takes it",
                             walk->path, stored);
    }
    if (archive_entry_filetype(entry) != AE_IFREG || archive_entry_hardlink(entry))
        return skip_member(walk, stored, "not a regular file");
    if (!sti_data_image_name(name))
        return skip_member(walk, stored, "not a .jpg, .png, .webp or .bmp file");
    if (archive_entry_sparse_count(entry) > 0)
        return sti_fail(
            STINT_E_UNSUPPORTED,
            "%s: %s is stored sparse; write the archive again without --sparse",
            walk->path, stored);
    walk->pending_name = name;
    walk->pending_bytes = archive_entry_size(entry);
    if (walk->pending_bytes < 0 || walk->pending_bytes > STI_DATA_MAX_FILE)
        return sti_fail(STINT_E_INPUT, "%s: %s is too large for an image", walk->path,
                        stored);
    return sti_index_class(walk->index, class_name, &walk->pending_class);
}

/* How an archive is unpacked that is no plain tar but a compressed file, by its first
 * bytes; NULL: it is none that is known. */
static const char *unpacker_of(int fd)
{
    static const struct {
        const char *magic, *command;
    } kinds[] = {{"\x1f\x8b", "gunzip"},
                 {"BZh", "bunzip2"},
                 {"\xfd"
                  "7zXZ",
                  "unxz"},
                 {"\x28\xb5\x2f\xfd", "unzstd"},
                 {"PK\x03\x04", "unzip"}};
    char head[8] = "";
    if (pread(fd, head, sizeof head - 1, 0) < 0)
        return NULL;
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        if (strncmp(head, kinds[i].magic, strlen(kinds[i].magic)) == 0)
            return kinds[i].command;
    return NULL;
}

static stint_status damaged(const tar_walk *walk)
{
    const char *why = archive_error_string(walk->archive);
    const char *unpacker = unpacker_of(walk->data->fds[0]);
    sti_data_sink *sink = walk->index->sink;
    if (unpacker)
        return sti_data_find(sink, STI_FIND_DAMAGED_INDEX,
                             "%s: it is compressed, and samples are read in place; "
                             "unpack it with %s into a plain tar",
                             walk->path, unpacker);
    if (why && strstr(why, "runcated"))
        return sti_data_find(sink, STI_FIND_DAMAGED_INDEX,
                             "%s: cut short: it ends before the archive does; fetch or "
                             "write it again",
                             walk->path);
    return sti_data_find(sink, STI_FIND_DAMAGED_INDEX,
                         "%s: %s; it must be a plain, whole tar", walk->path,
                         why ? why : "not a tar archive");
}

static stint_status walk_archive(tar_walk *walk)
{
    for (;;) {
        struct archive_entry *entry = NULL;
        int code = archive_read_next_header(walk->archive, &entry);
        if (code == ARCHIVE_RETRY)
            continue;
        if (code == ARCHIVE_FATAL || code == ARCHIVE_FAILED)
            return damaged(walk);
        stint_status st =
            place_pending(walk, archive_read_header_position(walk->archive));
        if (st != STINT_OK || code == ARCHIVE_EOF)
            return st;
        if ((st = take_member(walk, entry)) != STINT_OK)
            return st;
    }
}

static stint_status read_archive(tar_walk *walk, int fd)
{
    walk->archive = archive_read_new();
    if (!walk->archive || archive_read_support_format_tar(walk->archive) != ARCHIVE_OK)
        return sti_fail(STINT_E_MEMORY, "%s: no memory to read the archive",
                        walk->path);
    if (archive_read_open_fd(walk->archive, fd, 64 * 1024) != ARCHIVE_OK)
        return damaged(walk);
    return walk_archive(walk);
}

static stint_status tar_open(stint_data *data, const stint_data_info *like,
                             sti_data_sink *sink)
{
    sti_index index = {0};
    tar_walk walk = {.index = &index, .data = data};
    struct stat info;
    stint_status st = STINT_E_MEMORY;
    if (!(data->split_name = sti_data_find_split(data->info.path, data->split, ".tar")))
        return sti_fail(STINT_E_IO, "%s has changed just now; try again",
                        data->info.path);
    char *path =
        sti_arena_printf(data->arena, "%s/%s.tar", data->info.path, data->split_name);
    data->info.from = path;
    data->layout = STI_LAYOUT_ENCODED;
    if (!path || sti_index_init(&index, sink) != STINT_OK)
        goto out;
    if ((st = sti_data_tell_split(data, ".tar", sink)) != STINT_OK ||
        (st = sti_data_add_file(data, path)) != STINT_OK)
        goto out;
    walk.path = path;
    if (fstat(data->fds[0], &info) != 0) {
        st = sti_fail_errno("cannot read %s", path);
        goto out;
    }
    walk.file_bytes = (int64_t)info.st_size;
    if (walk.file_bytes == 0) {
        st = sti_fail(STINT_E_INPUT, "%s is empty", path);
        goto out;
    }
    if ((st = read_archive(&walk, data->fds[0])) == STINT_OK)
        st = sti_index_finish(&index, data, like, path);
out:
    if (walk.archive)
        archive_read_free(walk.archive);
    sti_index_fini(&index);
    return st;
}

/* The header block before the data holds the name, cut to 100 bytes if the archive has
 * it in an extension header. */
static void tar_name(const stint_data *data, int64_t index, char *text_out,
                     size_t bytes)
{
    char header[TAR_BLOCK] = {0};
    int64_t where = STI_DATA_OFFSET(data->samples[index].where) - TAR_BLOCK;
    ssize_t got = pread(data->fds[0], header, sizeof header, where);
    bool posix = memcmp(header + 257, "ustar\0", 6) == 0; /* has a prefix field */
    if (got != (ssize_t)sizeof header)
        (void)snprintf(text_out, bytes, "%s sample %" PRId64, data->files[0], index);
    else if (posix && header[345])
        (void)snprintf(text_out, bytes, "%.155s/%.100s", header + 345, header);
    else
        (void)snprintf(text_out, bytes, "%.100s", header);
}

const sti_data_source sti_data_tar = {
    .name = "tar",
    .wants = "train.tar with <class>/*.jpg or *.png in it",
    .present = tar_present,
    .open = tar_open,
    .read = sti_data_read_span,
    .prefetch = sti_data_prefetch_span,
    .name_of = tar_name,
};
