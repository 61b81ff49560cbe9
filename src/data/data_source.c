/* What the kinds of sources share: the names of splits, where findings go, and samples
 * that are spans of open files. */
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>

#include "base/file.h"
#include "data/data_priv.h"

const char *sti_data_split_name(stint_data_split split)
{
    return split == STINT_DATA_TRAIN ? "train" : "test";
}

stint_status sti_data_find(sti_data_sink *sink, sti_finding kind, const char *format,
                           ...)
{
    char text[1024];
    stint_data_level level =
        kind >= STI_FIND_SKIPPED ? STINT_DATA_NOTE : STINT_DATA_PROBLEM;
    va_list args;
    va_start(args, format);
    (void)vsnprintf(text, sizeof text, format, args);
    va_end(args);
    if (!sink && level == STINT_DATA_PROBLEM)
        return sti_fail(STINT_E_INPUT, "%s", text);
    if (!sink)
        sti_log(STINT_LOG_INFO, "%s", text);
    else if (sink->counts[kind]++ < 10)
        sink->found(sink->user, level, text);
    return STINT_OK;
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
