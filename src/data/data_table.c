#include "data/data_table.h"

#include <inttypes.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "base/file.h"
#include "base/units.h"
#include "data/table_priv.h"

sti_table_format sti_table_format_of(const char *path)
{
    const char *ending = sti_path_extension(path);
    /* (Archives are of images, too, whose reader says which folder to give.) */
    if (sti_path_is_dir(path) || strcasecmp(ending, ".tar") == 0)
        return STI_TABLE_IMAGES;
    return strcasecmp(ending, ".arff") == 0 ? STI_TABLE_ARFF : STI_TABLE_LIBSVM;
}

size_t sti_table_text_bytes(const char *text, size_t n_bytes, sti_table_format format)
{
    const char *end = text + n_bytes;
    const sti_table_counts counts = format == STI_TABLE_ARFF
                                        ? sti_table_count_arff(text, end)
                                        : sti_table_count_libsvm(text, end);
    return sti_table_counts_bytes(&counts);
}

static stint_status parse(const char *text, size_t n_bytes, const char *name,
                          sti_table_format format, int threads, sti_table *table_out)
{
    sti_table_text t = {.name = name, .at = text, .end = text + n_bytes};
    *table_out = (sti_table){.format = format};
    stint_status st = format == STI_TABLE_ARFF
                          ? sti_table_parse_arff(&t, table_out)
                          : sti_table_parse_libsvm(&t, threads, table_out);
    if (st == STINT_OK && table_out->x.rows == 0)
        st = sti_fail(STINT_E_INPUT, "%s: holds no rows", name);
    if (st != STINT_OK)
        sti_table_fini(table_out);
    return st;
}

stint_status sti_table_parse(const char *text, size_t n_bytes, const char *name,
                             sti_table_format format, sti_table *table_out)
{
    return parse(text, n_bytes, name, format, 1, table_out);
}

/* ---- files ---- */

static stint_status check_limit(const sti_table_desc *desc, size_t bytes)
{
    if (desc->limit_bytes == 0 || bytes <= desc->limit_bytes)
        return STINT_OK;
    const size_t least = desc->beside_bytes + bytes;
    return sti_fail(STINT_E_BUDGET,
                    "%s: reading it takes %s, of the budget %s are left for that; what "
                    "fits: --memory %s at least",
                    desc->path, sti_bytes_text(bytes),
                    sti_bytes_text(desc->limit_bytes), sti_enough_text(least));
}

/* The whole text; *text_out is the caller's. */
static stint_status read_text(const sti_table_desc *desc, char **text_out,
                              size_t *bytes_out)
{
    int fd = -1;
    char *text = NULL;
    stint_status st;
    STI_TRY(sti_file_open(desc->path, &fd));
    const off_t size = lseek(fd, 0, SEEK_END);
    if (size < 0) {
        st = sti_fail_errno("%s: cannot be measured", desc->path);
        goto out;
    }
    STI_TRY(check_limit(desc, (size_t)size));
    text = sti_alloc((size_t)size + 1, "table.text");
    if (!text) {
        st = STINT_E_MEMORY;
        goto out;
    }
    STI_TRY(sti_read_at(fd, desc->path, 0, text, (size_t)size));
    *bytes_out = (size_t)size;
    *text_out = text;
    text = NULL;
out:
    sti_free(text);
    if (fd >= 0)
        (void)close(fd);
    return st;
}

static stint_status read_file(const sti_table_desc *desc, sti_table_format format,
                              sti_table *table)
{
    char *text = NULL;
    size_t bytes = 0;
    stint_status st;
    STI_TRY(read_text(desc, &text, &bytes));
    const size_t peak = bytes + sti_table_text_bytes(text, bytes, format);
    STI_TRY(check_limit(desc, peak));
    STI_TRY(parse(text, bytes, desc->path, format, desc->threads, table));
    table->peak_bytes = peak;
out:
    sti_free(text);
    return st;
}

stint_status sti_table_read(const sti_table_desc *desc, sti_table *table_out)
{
    const sti_table_format format =
        desc->format == STI_TABLE_AUTO ? sti_table_format_of(desc->path) : desc->format;
    *table_out = (sti_table){.format = format};
    const stint_status st = format == STI_TABLE_IMAGES
                                ? sti_table_read_images(desc, table_out)
                                : read_file(desc, format, table_out);
    if (st != STINT_OK)
        sti_table_fini(table_out);
    return st;
}
