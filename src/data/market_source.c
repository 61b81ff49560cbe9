/* The text of a Matrix Market file in windows of whole lines. */
#include <inttypes.h>
#include <sys/stat.h>

#include "base/file.h"
#include "data/market_priv.h"

stint_status sti_market_open(sti_market_source *source)
{
    struct stat info;
    const char *path = source->desc->path;
    const stint_status st = sti_file_open(path, &source->fd);
    if (st != STINT_OK)
        return st;
    if (fstat(source->fd, &info) != 0)
        return sti_fail_errno("cannot read %s", path);
    source->total_bytes = (size_t)info.st_size;
    return STINT_OK;
}

stint_status sti_market_get_window(sti_market_source *source, size_t from,
                                   size_t n_bytes, const char **at_out)
{
    if (source->text) {
        *at_out = source->text + from;
        return STINT_OK;
    }
    *at_out = source->window;
    return sti_read_at(source->fd, source->desc->path, (int64_t)from, source->window,
                       n_bytes);
}

/* Up to the last newline; all of it where the file ends. */
static size_t whole_lines(const char *at, size_t n_bytes, bool last)
{
    if (last)
        return n_bytes;
    while (n_bytes > 0 && at[n_bytes - 1] != '\n')
        n_bytes--;
    return n_bytes;
}

stint_status sti_market_each_window(sti_market_source *source,
                                    const sti_market_head *head, size_t most,
                                    sti_market_lines_fn *fn, void *user)
{
    int64_t line = head->lines + 1, lines;
    source->lines = head->lines;
    for (size_t from = head->bytes; from < source->total_bytes;) {
        const size_t left = source->total_bytes - from;
        size_t count = left < most ? left : most;
        const char *at;
        stint_status st = sti_market_get_window(source, from, count, &at);
        if (st != STINT_OK)
            return st;
        count = whole_lines(at, count, count == left);
        if (count == 0)
            return sti_market_fault(head->name, line, "a line of more than %zu bytes",
                                    most);
        st = fn(user, at, count, line, &lines);
        if (st != STINT_OK)
            return st;
        line += lines;
        source->lines = line - 1;
        from += count;
    }
    return STINT_OK;
}

stint_status sti_market_check_end(const sti_market_source *source,
                                  const sti_market_head *head, int64_t count)
{
    if (count >= head->entries)
        return STINT_OK;
    return sti_market_fault(head->name, source->lines,
                            "the end after %" PRId64 " entries; the header said "
                            "%" PRId64,
                            count, head->entries);
}
