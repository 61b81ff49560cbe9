/* What the kinds of sources share: the names of splits, where findings go, and samples
 * that are spans of open files. */
#include <fcntl.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>

#include "base/file.h"
#include "data/data_priv.h"

const char *sti_data_split_name(stint_data_split split)
{
    return split == STINT_DATA_TRAIN ? "train" : "test";
}

/* What the remaining findings of a kind are called once ten have been told. */
static const char *const kind_names[STI_FIND_COUNT] = {
    [STI_FIND_NO_SPLIT] = "missing splits",
    [STI_FIND_EMPTY_CLASS] = "classes without images",
    [STI_FIND_CLASSES_DIFFER] = "classes that are in one split only",
    [STI_FIND_DUPLICATE] = "images that are there twice",
    [STI_FIND_UNREADABLE] = "unreadable files",
    [STI_FIND_NOT_IMAGE] = "files that are no images",
    [STI_FIND_TRUNCATED] = "images cut short",
    [STI_FIND_BROKEN] = "damaged images",
    [STI_FIND_WRONG_SIZE] = "images of another size",
    [STI_FIND_DAMAGED_INDEX] = "damaged archive members",
    [STI_FIND_LIST] = "rows that do not hold",
    [STI_FIND_SKIPPED] = "skipped files",
    [STI_FIND_FOLDER] = "folders within a class",
    [STI_FIND_EXTENSION] = "images named for another format",
    [STI_FIND_CHANNELS] = "images with other channels than the first",
    [STI_FIND_ORIENTATION] = "orientation tags that mean nothing",
    [STI_FIND_SPLIT] = "remarks on splits",
    [STI_FIND_SIZES] = "remarks on sizes",
};

static stint_data_level level_of(int kind)
{
    return kind >= STI_FIND_SKIPPED ? STINT_DATA_NOTE : STINT_DATA_PROBLEM;
}

static void tell(const sti_data_sink *sink, stint_data_level level, const char *text)
{
    if (sink->found)
        sink->found(sink->user, level, text);
    else if (!sink->quiet)
        sti_log(STINT_LOG_INFO, "%s", text);
}

stint_status sti_data_find(sti_data_sink *sink, sti_finding kind, const char *format,
                           ...)
{
    char text[1024];
    const stint_data_level level = level_of((int)kind);
    va_list args;
    va_start(args, format);
    (void)vsnprintf(text, sizeof text, format, args);
    va_end(args);
    if (!sink->found && level == STINT_DATA_PROBLEM)
        return sti_fail(STINT_E_INPUT, "%s", text);
    if (sink->counts[kind]++ < STI_FINDINGS_TOLD)
        tell(sink, level, text);
    return STINT_OK;
}

void sti_data_tell_rest(const sti_data_sink *sink, const char *where)
{
    char text[1024];
    for (int kind = 0; kind < STI_FIND_COUNT; kind++) {
        if (sink->counts[kind] <= STI_FINDINGS_TOLD)
            continue;
        (void)snprintf(text, sizeof text, "... and %" PRId64 " more %s%s",
                       sink->counts[kind] - STI_FINDINGS_TOLD, kind_names[kind], where);
        tell(sink, level_of(kind), text);
    }
}

stint_status sti_data_add_file(stint_data *data, const char *path)
{
    int fd = -1;
    const stint_status st =
        sti_path_is_dir(path) ? sti_folder_open(path, &fd) : sti_file_open(path, &fd);
    if (st != STINT_OK)
        return st;
    data->fds[data->file_count] = fd;
    data->files[data->file_count] = sti_arena_strdup(data->arena, path);
    return data->files[data->file_count++] ? STINT_OK : STINT_E_MEMORY;
}

stint_status sti_data_read_span(const stint_data *data, int64_t index, void *buffer,
                                size_t n_bytes)
{
    const sti_data_sample *sample = &data->samples[index];
    int file = STI_DATA_FILE(sample->where);
    return sti_read_at(data->fds[file], data->files[file],
                       STI_DATA_OFFSET(sample->where), buffer, n_bytes);
}

void sti_data_prefetch_span(const stint_data *data, int64_t index)
{
    const sti_data_sample *sample = &data->samples[index];
    (void)posix_fadvise(data->fds[STI_DATA_FILE(sample->where)],
                        STI_DATA_OFFSET(sample->where), sample->bytes,
                        POSIX_FADV_WILLNEED);
}
