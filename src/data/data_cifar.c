/* CIFAR-10 and CIFAR-100 in their binary version: records of one label byte (CIFAR-100:
 * a coarse and a fine one) and three planes of 32x32 bytes. Class names come from the
 * text file beside them, else classes are the numbers that occur. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "data/data_priv.h"

#define CIFAR_SIDE    32
#define CIFAR_PIXELS  (3 * CIFAR_SIDE * CIFAR_SIDE)
#define CIFAR_CLASSES 256 /* a label is a byte */
#define META_BYTES    65536
#define BLOCK_RECORDS 64

/* The two sets: where they may lie, their files, and how a record begins. */
typedef struct cifar_set {
    const char *folder, *meta;
    const char *files[2][6];
    int label_bytes; /* the last of them is the class */
} cifar_set;

static const cifar_set sets[] = {
    {"cifar-10-batches-bin",
     "batches.meta.txt",
     {{"data_batch_1.bin", "data_batch_2.bin", "data_batch_3.bin", "data_batch_4.bin",
       "data_batch_5.bin"},
      {"test_batch.bin"}},
     1},
    {"cifar-100-binary", "fine_label_names.txt", {{"train.bin"}, {"test.bin"}}, 2},
};

/* The set whose first file of the split is there, and its folder. */
static const cifar_set *find_set(sti_arena *arena, const char *path,
                                 stint_data_split split, char **folder_out)
{
    for (size_t s = 0; s < sizeof sets / sizeof *sets; s++) {
        char *folders[2] = {sti_path_join(arena, path, sets[s].folder),
                            sti_arena_strdup(arena, path)};
        for (int i = 0; i < 2; i++) {
            char *first =
                folders[i] ? sti_path_join(arena, folders[i], sets[s].files[split][0])
                           : NULL;
            if (first && sti_path_is_file(first)) {
                *folder_out = folders[i];
                return &sets[s];
            }
        }
    }
    return NULL;
}

static bool cifar_present(const char *path, stint_data_split split, bool nested)
{
    (void)nested; /* or not, it is there */
    sti_arena *arena = sti_arena_create("data.paths");
    char *folder = NULL;
    bool present = arena && find_set(arena, path, split, &folder);
    sti_arena_destroy(arena);
    return present;
}

/* Names, one a line, become the classes 0, 1, ... *known_out: how many; 0 without a
 * file. */
static stint_status read_names(sti_index *index, const char *folder,
                               const cifar_set *set, int32_t class_of[CIFAR_CLASSES],
                               int *known_out)
{
    void *text = NULL;
    size_t bytes = 0;
    char *path = sti_path_join(index->arena, folder, set->meta), *rest = NULL;
    stint_status st = path ? STINT_OK : STINT_E_MEMORY;
    *known_out = 0;
    if (st != STINT_OK || !sti_path_is_file(path))
        return st;
    if ((st = sti_file_read(path, META_BYTES, &text, &bytes)) != STINT_OK)
        return st;
    for (char *line = strtok_r(text, "\r\n", &rest); line && st == STINT_OK;
         line = strtok_r(NULL, "\r\n", &rest)) {
        if (*known_out == CIFAR_CLASSES)
            st = sti_fail(STINT_E_INPUT, "%s: more than %d names", path, CIFAR_CLASSES);
        else if (*line)
            st = sti_index_class(index, line, &class_of[(*known_out)++]);
    }
    sti_free(text);
    if (st == STINT_OK && index->class_count != *known_out)
        st = sti_fail(STINT_E_INPUT, "%s: a name is there twice", path);
    return st;
}

/* Labels of one file, [records], appended to *labels. */
static stint_status read_file_labels(const stint_data *data, int file, int64_t records,
                                     uint8_t *labels)
{
    int64_t each = data->record_bytes;
    uint8_t *block = sti_alloc((size_t)(each * BLOCK_RECORDS), "data.unpack");
    stint_status st = block ? STINT_OK : STINT_E_MEMORY;
    for (int64_t i = 0; i < records && st == STINT_OK; i += BLOCK_RECORDS) {
        int64_t n = records - i < BLOCK_RECORDS ? records - i : BLOCK_RECORDS;
        st = sti_read_at(data->fds[file], data->files[file], i * each, block,
                         (size_t)(n * each));
        for (int64_t k = 0; k < n && st == STINT_OK; k++)
            labels[i + k] = block[k * each + data->record_skip - 1];
    }
    sti_free(block);
    return st;
}

static stint_status count_records(const stint_data *data, int file,
                                  int64_t *records_out)
{
    struct stat info;
    if (fstat(data->fds[file], &info) != 0)
        return sti_fail_errno("cannot read %s", data->files[file]);
    int64_t bytes = (int64_t)info.st_size;
    *records_out = bytes / data->record_bytes;
    if (bytes > 0 && bytes % data->record_bytes == 0)
        return STINT_OK;
    return sti_fail(STINT_E_INPUT,
                    "%s has %" PRId64 " bytes, not a whole number of %" PRId64
                    "-byte records; it is cut short or no CIFAR file",
                    data->files[file], bytes, data->record_bytes);
}

/* Classes for label values that have no name from the text file. */
static stint_status number_labels(sti_index *index, const uint8_t *labels,
                                  int64_t count, int known,
                                  int32_t class_of[CIFAR_CLASSES],
                                  bool used[CIFAR_CLASSES])
{
    char name[16];
    for (int64_t i = 0; i < count; i++)
        used[labels[i]] = true;
    stint_status st = STINT_OK;
    for (int k = 0; !known && k < CIFAR_CLASSES && st == STINT_OK; k++) {
        (void)snprintf(name, sizeof name, "%d", k);
        if (used[k])
            st = sti_index_class(index, name, &class_of[k]);
    }
    return st;
}

/* `known`: number of class names, 0 when there are none to hold the labels to. */
static stint_status check_labels(const stint_data *data, int file,
                                 const uint8_t *labels, int64_t count, int known)
{
    for (int64_t i = 0; i < count && known; i++)
        if (labels[i] >= known)
            return sti_fail(STINT_E_INPUT,
                            "%s: record %" PRId64 " has the label %d, but there are "
                            "only %d class names; fetch the file again",
                            data->files[file], i + 1, (int)labels[i], known);
    return STINT_OK;
}

static stint_status add_labels(sti_index *index, const stint_data *data,
                               const uint8_t *labels, const int64_t *records,
                               const int32_t *class_of)
{
    stint_status st = STINT_OK;
    int64_t at = 0;
    for (int f = 0; f < data->file_count; f++) {
        for (int64_t i = 0; i < records[f] && st == STINT_OK; i++, at++)
            st = sti_index_add(index, class_of[labels[at]], NULL,
                               (int64_t)f << 48 |
                                   (i * data->record_bytes + data->record_skip),
                               CIFAR_PIXELS);
    }
    return st;
}

/* Every record of the files that are open; classes numbered by label value. */
static stint_status index_files(sti_index *index, stint_data *data, const char *folder,
                                const cifar_set *set)
{
    int32_t class_of[CIFAR_CLASSES] = {0};
    bool used[CIFAR_CLASSES] = {false};
    int64_t records[STI_DATA_FILES] = {0}, total = 0, at = 0;
    int known = 0;
    uint8_t *labels = NULL;
    stint_status st = read_names(index, folder, set, class_of, &known);
    for (int f = 0; f < data->file_count && st == STINT_OK; f++) {
        st = count_records(data, f, &records[f]);
        total += records[f];
    }
    if (st != STINT_OK)
        return st;
    if (!(labels = sti_alloc((size_t)total, "data.labels")))
        return STINT_E_MEMORY;
    for (int f = 0; f < data->file_count && st == STINT_OK; at += records[f++]) {
        st = read_file_labels(data, f, records[f], labels + at);
        if (st == STINT_OK)
            st = check_labels(data, f, labels + at, records[f], known);
    }
    if (st == STINT_OK)
        st = number_labels(index, labels, total, known, class_of, used);
    if (st == STINT_OK)
        st = add_labels(index, data, labels, records, class_of);
    sti_free(labels);
    return st;
}

static stint_status open_files(stint_data *data, const char *folder,
                               const cifar_set *set, sti_data_sink *sink)
{
    stint_status st = STINT_OK;
    for (int i = 0; i < 6 && set->files[data->split][i] && st == STINT_OK; i++) {
        char *path = sti_path_join(data->arena, folder, set->files[data->split][i]);
        if (!path)
            return STINT_E_MEMORY;
        if (sti_path_is_file(path))
            st = sti_data_add_file(data, path);
        else if (sink->found)
            st = sti_data_find(sink, STI_FIND_SKIPPED, "%s is missing", path);
        else if (!sink->quiet) /* a smaller set is a weaker result: more than a note */
            sti_log(STINT_LOG_WARNING,
                    "%s is missing: going on without its images; fetch the set again",
                    path);
    }
    return st;
}

static stint_status cifar_open(stint_data *data, const stint_data_info *like,
                               sti_data_sink *sink)
{
    sti_index index = {0};
    char *folder = NULL;
    stint_status st = STINT_E_MEMORY;
    const cifar_set *set = find_set(data->arena, data->info.path, data->split, &folder);
    if (!set)
        return sti_fail(STINT_E_INPUT, "%s: no CIFAR %s file", data->info.path,
                        sti_data_split_name(data->split));
    if (sti_index_init(&index, sink) != STINT_OK)
        goto out;
    index.ordered = true;
    data->layout = STI_LAYOUT_PLANES;
    data->stored_height = data->stored_width = CIFAR_SIDE;
    data->record_skip = set->label_bytes;
    data->record_bytes = set->label_bytes + CIFAR_PIXELS;
    if ((st = open_files(data, folder, set, sink)) == STINT_OK &&
        (st = index_files(&index, data, folder, set)) == STINT_OK)
        st = sti_index_finish(&index, data, like, folder);
out:
    sti_index_fini(&index);
    return st;
}

static void cifar_name(const stint_data *data, int64_t index, char *text_out,
                       size_t bytes)
{
    int64_t where = data->samples[index].where;
    (void)snprintf(text_out, bytes, "%s image %" PRId64,
                   sti_path_name(data->files[STI_DATA_FILE(where)]),
                   STI_DATA_OFFSET(where) / data->record_bytes);
}

const sti_data_source sti_data_cifar = {
    .name = "cifar",
    .wants = "data_batch_1.bin ... (or cifar-10-batches-bin/)",
    .present = cifar_present,
    .open = cifar_open,
    .read = sti_data_read_span,
    .prefetch = sti_data_prefetch_span,
    .name_of = cifar_name,
};
