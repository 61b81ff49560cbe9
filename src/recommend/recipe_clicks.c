#define _GNU_SOURCE /* getline */
#include "recommend/recipe_clicks.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/fail.h"
#include "base/file.h"
#include "data/data_section.h"
#include "train/run_section.h"

static const struct {
    const char *extension;
    sti_clicks_format format;
} extensions[] = {
    {".csv", STI_CLICKS_CSV},    {".tsv", STI_CLICKS_CSV},
    {".inter", STI_CLICKS_CSV},  {".libsvm", STI_CLICKS_LIBSVM},
    {".svm", STI_CLICKS_LIBSVM}, {".libffm", STI_CLICKS_LIBFFM},
    {".ffm", STI_CLICKS_LIBFFM}, {".criteo", STI_CLICKS_CRITEO},
};

/* Forty fields and tabs are Criteo's; two colons in the second word are libffm's. */
static sti_clicks_format format_of_line(const char *line)
{
    int tabs = 0;
    for (const char *at = line; *at; at++)
        tabs += *at == '\t';
    if (tabs == 39)
        return STI_CLICKS_CRITEO;
    const char *word = strpbrk(line, " \t");
    const size_t digits = word ? strspn(word + 1, "0123456789") : 0;
    if (digits == 0 || word[1 + digits] != ':')
        return STI_CLICKS_CSV;
    const char *rest = word + 2 + digits;
    return rest[strspn(rest, "0123456789")] == ':' ? STI_CLICKS_LIBFFM
                                                   : STI_CLICKS_LIBSVM;
}

stint_status sti_clicks_find_format(const char *path, sti_clicks_format *format_out)
{
    const char *extension = sti_path_extension(path);
    FILE *file = NULL;
    char *line = NULL;
    size_t capacity = 0;
    for (size_t i = 0; i < sizeof extensions / sizeof *extensions; i++)
        if (strcasecmp(extension, extensions[i].extension) == 0) {
            *format_out = extensions[i].format;
            return STINT_OK;
        }
    const stint_status st = sti_file_open_stream(path, &file);
    if (st != STINT_OK)
        return st;
    *format_out =
        getline(&line, &capacity, file) > 0 ? format_of_line(line) : STI_CLICKS_CSV;
    free(line);
    fclose(file);
    return STINT_OK;
}

stint_status sti_recipe_clicks(const stint_recipe *recipe, const char *path,
                               sti_clicks_desc *desc_out)
{
    const sti_data_values *d = sti_data_section_of(recipe);
    const size_t budget = sti_run_section_of(recipe)->memory_bytes;
    *desc_out = (sti_clicks_desc){.path = path ? path : d->path,
                                  .separator = d->separator,
                                  .label = d->label,
                                  .dense = d->dense,
                                  .categorical = d->categorical,
                                  .bags = d->bags,
                                  .min_count = d->min_count,
                                  .hash = d->hash,
                                  .validation = d->validation,
                                  .memory_bytes = budget / 2};
    switch (d->format) {
    case STI_DATA_FORMAT_CSV:
        desc_out->format = STI_CLICKS_CSV;
        return STINT_OK;
    case STI_DATA_FORMAT_CRITEO:
        desc_out->format = STI_CLICKS_CRITEO;
        return STINT_OK;
    case STI_DATA_FORMAT_LIBSVM:
        desc_out->format = STI_CLICKS_LIBSVM;
        return STINT_OK;
    case STI_DATA_FORMAT_LIBFFM:
        desc_out->format = STI_CLICKS_LIBFFM;
        return STINT_OK;
    default:
        return sti_clicks_find_format(desc_out->path, &desc_out->format);
    }
}

stint_status sti_recipe_ranks(const stint_recipe *recipe, char path_out[1024])
{
    const char *path = sti_data_section_of(recipe)->path;
    sti_clicks_counted counted;
    sti_clicks_desc desc;
    if (sti_clicks_is_old(path))
        sti_log(STINT_LOG_WARNING,
                "%s: is of a version without checksums of samples and ids; `stint data "
                "rank` makes one that has them",
                path);
    if (sti_clicks_is_ranks(path)) {
        snprintf(path_out, 1024, "%s", path);
        return STINT_OK;
    }
    stint_status st = sti_recipe_clicks(recipe, NULL, &desc);
    if (st == STINT_OK)
        st = sti_clicks_rank(&desc, NULL, &counted);
    if (st == STINT_OK)
        snprintf(path_out, 1024, "%s", counted.path);
    return st;
}
