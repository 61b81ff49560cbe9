#include "kernel/machine/figures.h"

#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "base/cpu.h"
#include "base/fail.h"
#include "base/file.h"
#include "base/memory.h"
#include "base/units.h"

static void write_head(const sti_figures *f, sti_text *out)
{
    sti_text_printf(out, "%s\n%s, %s\n", f->title, sti_cpu_name(),
                    sti_isa_name(sti_isa_now()));
}

void sti_figures_write(const sti_figures *f, const void *values, sti_text *out)
{
    write_head(f, out);
    for (int i = 0; i < f->count; i++) {
        const char *at = (const char *)values + f->figure[i].offset;
        double value;
        int64_t whole;
        memcpy(&value, at, sizeof value);
        memcpy(&whole, at, sizeof whole);
        sti_text_printf(out, "%s %s\n", f->figure[i].name,
                        sti_float_text(f->figure[i].whole ? (double)whole : value));
    }
}

/* "name value" of a line, positive and not absurd. */
static bool parse_figure(const sti_figure *f, const char *line, void *values)
{
    const size_t length = strlen(f->name);
    double value;
    if (strncmp(line, f->name, length) != 0 || line[length] != ' ' ||
        sti_parse_float(line + length + 1, &value) != STINT_OK)
        return false;
    if (!(value > 0 || (f->may_be_zero && value == 0)) || value > 1e18)
        return false;
    const int64_t whole = (int64_t)value;
    if (f->whole && whole < 1)
        return false;
    char *at = (char *)values + f->offset;
    if (f->whole)
        memcpy(at, &whole, sizeof whole);
    else
        memcpy(at, &value, sizeof value);
    return true;
}

bool sti_figures_parse(const sti_figures *f, char *text, void *values_out,
                       const char **why_out)
{
    sti_text head = {0};
    const size_t title = strlen(f->title);
    write_head(f, &head);
    *why_out = NULL;
    if (head.failed || strncmp(text, f->title, title) != 0 || text[title] != '\n')
        *why_out = "it is no measurement of this version";
    else if (strncmp(text, head.data, head.length) != 0)
        *why_out = "it is of another machine or instruction set";
    char *line = *why_out ? text : text + head.length;
    for (int i = 0; !*why_out && i < f->count; i++) {
        char *end = strchr(line, '\n');
        if (end)
            *end = '\0';
        if (!end || !parse_figure(&f->figure[i], line, values_out))
            *why_out = "a figure is missing or impossible";
        else
            line = end + 1;
    }
    sti_text_fini(&head);
    return !*why_out;
}

bool sti_figures_load(const sti_figures *f, void *values_out)
{
    char path[2048];
    void *text;
    size_t bytes;
    const char *why = NULL;
    if (!sti_cache_path(f->file, path, sizeof path) || !sti_path_is_file(path))
        return false;
    if (sti_file_read(path, 65536, &text, &bytes) != STINT_OK) {
        sti_log(STINT_LOG_WARNING, "%s is ignored: %s", path, stint_last_error());
        return false;
    }
    const bool good = sti_figures_parse(f, text, values_out, &why);
    sti_free(text);
    if (!good)
        sti_log(STINT_LOG_WARNING, "%s is ignored: %s; %s measure anew", path, why,
                f->again);
    return good;
}

void sti_figures_keep(const sti_figures *f, const void *values)
{
    char path[2048];
    sti_text text = {0};
    sti_figures_write(f, values, &text);
    if (text.failed || !sti_cache_path(f->file, path, sizeof path)) {
        sti_text_fini(&text);
        return;
    }
    char *slash = strrchr(path, '/');
    *slash = '\0';
    stint_status status = sti_dir_create(path);
    *slash = '/';
    if (status == STINT_OK)
        status = sti_path_check_file(path);
    if (status == STINT_OK)
        status = sti_file_write(path, text.data, text.length);
    if (status != STINT_OK)
        sti_log(STINT_LOG_WARNING, "the measurement of this machine is not kept: %s",
                stint_last_error());
    sti_text_fini(&text);
}
