/* IDX, the format of MNIST and its kin: one file of images [n, h, w] and one of labels
 * [n], each with a big-endian header, plain or gzipped.
 *
 * A gzipped image file cannot be read at random places, and held unpacked it would be
 * resident memory; so it is unpacked once into an unnamed temporary file. Classes are
 * the label values that occur, named by their number, or by EMNIST's mapping. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#include "base/file.h"
#include "base/units.h"
#include "data/data_priv.h"

#define IDX_IMAGES_HEADER 16
#define COPY_BYTES        65536
#define MAPPING_BYTES     65536

/* ---- names ---- */

/* Where the files may be below the folder given; torchvision puts them into raw/. */
static const char *const folders[] = {
    ".", "raw", "MNIST/raw", "EMNIST/raw", "FashionMNIST/raw", "KMNIST/raw"};
/* What stands before "train" and "test": MNIST, Fashion-MNIST and KMNIST; EMNIST. */
static const char *const sets[] = {"",
                                   "emnist-balanced-",
                                   "emnist-byclass-",
                                   "emnist-bymerge-",
                                   "emnist-digits-",
                                   "emnist-letters-",
                                   "emnist-mnist-"};
enum {
    FOLDERS = sizeof folders / sizeof folders[0],
    SETS = sizeof sets / sizeof sets[0]
};

/* A set and the folder that it is in. */
typedef struct idx_place {
    char *folder;
    const char *set;
} idx_place;

/* Path of the images (idx3) or labels (idx1) of a split, or NULL. */
static char *find_file(sti_arena *arena, const idx_place *place, stint_data_split split,
                       bool images)
{
    static const char *const prefixes[2][2] = {{"train", NULL}, {"t10k", "test"}};
    static const char *const joints[] = {"-", "."}, *const endings[] = {"", ".gz"};
    for (int i = 0; i < 8; i++) {
        const char *prefix = prefixes[split][i >> 2];
        if (!prefix)
            continue;
        char *full =
            sti_arena_printf(arena, "%s/%s%s-%s%sidx%d-ubyte%s", place->folder,
                             place->set, prefix, images ? "images" : "labels",
                             joints[i & 1], images ? 3 : 1, endings[i >> 1 & 1]);
        if (full && sti_path_is_file(full))
            return full;
    }
    return NULL;
}

/* The sets whose images of the split are there: the first one's place. Returns how
 * many. */
static int find_places(sti_arena *arena, const char *path, stint_data_split split,
                       idx_place *first)
{
    int count = 0;
    for (int f = 0; f < FOLDERS && count == 0; f++) {
        char *folder = f == 0 ? sti_arena_strdup(arena, path)
                              : sti_path_join(arena, path, folders[f]);
        if (!folder || !sti_path_is_dir(folder))
            continue;
        for (int s = 0; s < SETS; s++) {
            const idx_place place = {folder, sets[s]};
            if (find_file(arena, &place, split, true) && count++ == 0)
                *first = place;
        }
    }
    return count;
}

static bool idx_present(const char *path, stint_data_split split, bool nested)
{
    (void)nested; /* or not, it is there */
    idx_place place;
    sti_arena *arena = sti_arena_create("data.paths");
    bool present = arena && find_places(arena, path, split, &place) > 0;
    sti_arena_destroy(arena);
    return present;
}

/* EMNIST has a text of lines "label code...": the class is named as the character of
 * the first code, where it is one to be seen. names [256][16] hold numbers before. */
static stint_status read_mapping(const idx_place *place, char names[256][16])
{
    void *text = NULL;
    size_t n_bytes = 0;
    char *rest = NULL;
    sti_arena *arena = sti_arena_create("data.paths");
    char *path =
        arena ? sti_arena_printf(arena, "%s/%smapping.txt", place->folder, place->set)
              : NULL;
    stint_status st = path ? STINT_OK : STINT_E_MEMORY;
    if (st == STINT_OK && *place->set && sti_path_is_file(path))
        st = sti_file_read(path, MAPPING_BYTES, &text, &n_bytes);
    for (char *line = text ? strtok_r(text, "\r\n", &rest) : NULL; line;
         line = strtok_r(NULL, "\r\n", &rest)) {
        int label, code;
        if (sscanf(line, "%3d %3d", &label, &code) == 2 && label >= 0 && label < 256 &&
            code > 32 && code < 127)
            (void)snprintf(names[label], sizeof names[label], "%c", code);
    }
    sti_free(text);
    sti_arena_destroy(arena);
    return st;
}

/* ---- headers ---- */

static int64_t big_endian(const uint8_t *bytes)
{
    return (int64_t)bytes[0] << 24 | bytes[1] << 16 | bytes[2] << 8 | bytes[3];
}

/* Exactly n_bytes, or an error that says where the file ends. */
static stint_status read_exactly(gzFile file, const char *path, void *buffer,
                                 size_t n_bytes)
{
    int got = gzread(file, buffer, (unsigned)n_bytes);
    int error = Z_OK;
    if (got == (int)n_bytes)
        return STINT_OK;
    const char *text = gzerror(file, &error);
    if (error == Z_ERRNO)
        return sti_fail_errno("cannot read %s", path);
    if (error != Z_OK && error != Z_BUF_ERROR && error != Z_STREAM_END)
        return sti_fail(STINT_E_INPUT, "%s is damaged: %s", path, text);
    return sti_fail(STINT_E_INPUT, "%s is cut short: fetch it again", path);
}

static stint_status open_gz(const char *path, gzFile *file_out)
{
    errno = 0;
    *file_out = gzopen(path, "rb"); /* reads plain files as they are */
    if (*file_out)
        return STINT_OK;
    return errno ? sti_fail_errno("cannot open %s", path)
                 : sti_fail(STINT_E_MEMORY, "%s: no memory to read it", path);
}

/* Dimensions of a header for unsigned bytes. */
static stint_status read_header(gzFile file, const char *path, int dimensions,
                                int64_t *sizes)
{
    uint8_t header[IDX_IMAGES_HEADER] = {0};
    stint_status st = read_exactly(file, path, header, 4 + 4 * (size_t)dimensions);
    if (st != STINT_OK)
        return st;
    if (header[0] != 0 || header[1] != 0 || header[2] != 8 || header[3] != dimensions)
        return sti_fail(
            STINT_E_INPUT,
            "%s is not an IDX file of bytes with %d dimension%s: it begins with "
            "%02x%02x%02x%02x, wanted 000008%02x",
            path, dimensions, sti_s(dimensions), header[0], header[1], header[2],
            header[3], dimensions);
    for (int i = 0; i < dimensions; i++)
        sizes[i] = big_endian(header + 4 + 4 * i);
    return STINT_OK;
}

static stint_status expect_end(gzFile file, const char *path, int64_t count)
{
    uint8_t extra;
    if (gzread(file, &extra, 1) == 0)
        return STINT_OK;
    return sti_fail(STINT_E_INPUT,
                    "%s goes on after the %" PRId64 " items that its header promises",
                    path, count);
}

/* An unnamed file that vanishes with its descriptor. */
static stint_status open_temporary(const char *what, int *fd_out)
{
    const char *folder = getenv("TMPDIR");
    char name[1024];
    if (!folder || !*folder)
        folder = "/var/tmp";
    int n = snprintf(name, sizeof name, "%s/stint-idx-XXXXXX", folder);
    if (n >= (int)sizeof name)
        return sti_fail(STINT_E_USAGE, "TMPDIR is too long a path");
    *fd_out = mkstemp(name);
    if (*fd_out < 0)
        return sti_fail_errno(
            "no temporary file in %s to unpack %s (set TMPDIR, or gunzip "
            "it yourself)",
            folder, what);
    (void)fcntl(*fd_out, F_SETFD, FD_CLOEXEC);
    (void)unlink(name);
    return STINT_OK;
}

static stint_status write_unpacked(int fd, const char *path, const void *bytes,
                                   size_t n_bytes)
{
    stint_status st = sti_write_all(fd, "a temporary file", bytes, n_bytes);
    if (st == STINT_OK)
        return st;
    return sti_fail_context(st,
                            "cannot unpack %s (set TMPDIR to a roomier folder, or "
                            "gunzip it yourself)",
                            path);
}

/* Copies the pixels that follow the header, at the same offsets as in a plain file. */
static stint_status unpack(gzFile file, const char *path, int64_t pixel_bytes,
                           int *fd_out)
{
    uint8_t *buffer = sti_alloc(COPY_BYTES, "data.unpack");
    stint_status st = buffer ? open_temporary(path, fd_out) : STINT_E_MEMORY;
    if (st == STINT_OK)
        st = write_unpacked(*fd_out, path, buffer,
                            IDX_IMAGES_HEADER); /* its place; zeros */
    for (int64_t left = pixel_bytes; left > 0 && st == STINT_OK; left -= COPY_BYTES) {
        size_t n = left < COPY_BYTES ? (size_t)left : COPY_BYTES;
        if ((st = read_exactly(file, path, buffer, n)) == STINT_OK)
            st = write_unpacked(*fd_out, path, buffer, n);
    }
    sti_free(buffer);
    return st;
}

static stint_status check_plain_size(const stint_data *data, const char *path,
                                     int64_t pixel_bytes)
{
    struct stat info;
    if (fstat(data->fds[0], &info) != 0)
        return sti_fail_errno("cannot read %s", path);
    int64_t wanted = pixel_bytes + IDX_IMAGES_HEADER;
    if ((int64_t)info.st_size == wanted)
        return STINT_OK;
    return sti_fail(STINT_E_INPUT,
                    "%s has %" PRId64 " bytes, its header promises %" PRId64
                    " (%s); fetch it again",
                    path, (int64_t)info.st_size, wanted,
                    (int64_t)info.st_size < wanted ? "it is cut short" : "too many");
}

/* sizes: count, height, width. */
static stint_status open_images(stint_data *data, const char *path, int64_t sizes[3])
{
    gzFile file = NULL;
    stint_status st = open_gz(path, &file);
    if (st != STINT_OK)
        return st;
    if ((st = read_header(file, path, 3, sizes)) != STINT_OK)
        goto out;
    if (sizes[0] > INT32_MAX || sizes[1] < 1 || sizes[2] < 1 ||
        sizes[1] > STI_IMAGE_MAX_SIDE || sizes[2] > STI_IMAGE_MAX_SIDE ||
        sizes[1] * sizes[2] > STI_IMAGE_MAX_PIXELS) {
        st = sti_fail(STINT_E_INPUT,
                      "%s: %" PRId64 " images of %" PRId64 "x%" PRId64
                      " cannot be right; the file is damaged",
                      path, sizes[0], sizes[1], sizes[2]);
        goto out;
    }
    int64_t pixel_bytes = sizes[0] * sizes[1] * sizes[2];
    if (gzdirect(file)) {
        if ((st = sti_data_add_file(data, path)) == STINT_OK)
            st = check_plain_size(data, path, pixel_bytes);
        goto out;
    }
    int fd = -1;
    st = unpack(file, path, pixel_bytes, &fd);
    if (fd >= 0) {
        data->fds[0] = fd;
        data->files[0] = path;
        data->file_count = 1;
    }
    if (st == STINT_OK)
        st = expect_end(file, path, sizes[0]);
out:
    (void)gzclose(file);
    return st;
}

static stint_status read_labels(const char *path, int64_t count, uint8_t **labels_out)
{
    gzFile file = NULL;
    uint8_t *labels = NULL;
    int64_t found = 0;
    stint_status st = open_gz(path, &file);
    if (st != STINT_OK)
        return st;
    if ((st = read_header(file, path, 1, &found)) != STINT_OK)
        goto out;
    if (found != count) {
        st = sti_fail(STINT_E_INPUT, "%s has %" PRId64 " labels for %" PRId64 " images",
                      path, found, count);
        goto out;
    }
    if (!(labels = sti_alloc((size_t)count, "data.labels"))) {
        st = STINT_E_MEMORY;
        goto out;
    }
    if ((st = read_exactly(file, path, labels, (size_t)count)) == STINT_OK &&
        (st = expect_end(file, path, count)) == STINT_OK) {
        *labels_out = labels;
        labels = NULL;
    }
out:
    sti_free(labels);
    (void)gzclose(file);
    return st;
}

static stint_status add_records(sti_index *index, const uint8_t *labels,
                                const int64_t sizes[3], char names[256][16])
{
    bool used[256] = {false};
    int32_t class_of[256] = {0};
    stint_status st = STINT_OK;
    int64_t bytes = sizes[1] * sizes[2];
    for (int64_t i = 0; i < sizes[0]; i++)
        used[labels[i]] = true;
    for (int k = 0; k < 256 && st == STINT_OK; k++)
        if (used[k])
            st = sti_index_class(index, names[k], &class_of[k]);
    for (int64_t i = 0; i < sizes[0] && st == STINT_OK; i++)
        st = sti_index_add(index, class_of[labels[i]], NULL,
                           IDX_IMAGES_HEADER + i * bytes, bytes);
    return st;
}

/* Images and labels of one place into the index. */
static stint_status read_place(stint_data *data, const idx_place *place,
                               sti_index *index, char **images_out)
{
    uint8_t *labels = NULL;
    int64_t sizes[3] = {0};
    char names[256][16];
    char *images = find_file(data->arena, place, data->split, true);
    char *label_path = find_file(data->arena, place, data->split, false);
    if (!images || !label_path)
        return sti_fail(STINT_E_INPUT,
                        "%s: the %s %s file is missing (%s%s-...-ubyte[.gz])",
                        place->folder, sti_data_split_name(data->split),
                        images ? "labels" : "images", place->set,
                        data->split == STINT_DATA_TRAIN ? "train"
                        : *place->set                   ? "test"
                                                        : "t10k");
    for (int k = 0; k < 256; k++)
        (void)snprintf(names[k], sizeof names[k], "%d", k);
    stint_status st = open_images(data, images, sizes);
    if (st == STINT_OK)
        st = read_labels(label_path, sizes[0], &labels);
    if (st == STINT_OK)
        st = read_mapping(place, names);
    if (st == STINT_OK)
        st = add_records(index, labels, sizes, names);
    sti_free(labels);
    data->layout = STI_LAYOUT_ROWS;
    data->stored_height = sizes[1];
    data->stored_width = sizes[2];
    data->transposed = *place->set != '\0'; /* EMNIST stores columns */
    *images_out = images;
    return st;
}

static stint_status idx_open(stint_data *data, const stint_data_info *like,
                             sti_data_sink *sink)
{
    sti_index index = {0};
    idx_place place = {NULL, NULL};
    char *images = NULL;
    stint_status st = STINT_E_MEMORY;
    if (sti_index_init(&index, sink) != STINT_OK)
        goto out;
    index.ordered = true;
    const int places = find_places(data->arena, data->info.path, data->split, &place);
    if (places == 0)
        goto out; /* was there a moment ago: no memory */
    if (places > 1) {
        st =
            sti_fail(STINT_E_INPUT,
                     "%s holds %d sets, %strain-... and others; which is wanted is not "
                     "clear, so move one into a folder of its own",
                     place.folder, places, place.set);
        goto out;
    }
    data->info.from = place.folder;
    if ((st = read_place(data, &place, &index, &images)) == STINT_OK)
        st = sti_index_finish(&index, data, like, images);
out:
    sti_index_fini(&index);
    return st;
}

static void idx_name(const stint_data *data, int64_t index, char *text_out,
                     size_t bytes)
{
    int64_t each = data->stored_height * data->stored_width;
    int64_t at = STI_DATA_OFFSET(data->samples[index].where) - IDX_IMAGES_HEADER;
    (void)snprintf(text_out, bytes, "%s image %" PRId64, sti_path_name(data->files[0]),
                   at / each);
}

const sti_data_source sti_data_idx = {
    .name = "idx",
    .wants = "train-images-idx3-ubyte[.gz] and train-labels-idx1-ubyte[.gz]",
    .present = idx_present,
    .open = idx_open,
    .read = sti_data_read_span,
    .prefetch = sti_data_prefetch_span,
    .name_of = idx_name,
};
