/* The stored measurement: a title, the machine it is of, and a figure a line. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cpu.h"
#include "base/fail.h"
#include "base/file.h"
#include "base/text.h"
#include "base/units.h"
#include "kernel/machine/machine.h"

#define TITLE "stint machine 3\n"

typedef struct figure {
    const char *name;
    size_t offset;
    bool whole, may_be_zero;
} figure;

#define FIGURE(field, ...)                                                  \
    {                                                                       \
        .name = #field, .offset = offsetof(sti_machine, field), __VA_ARGS__ \
    }

static const figure figures[] = {
    FIGURE(f32_flop_per_s, .whole = false),
    FIGURE(bf16_flop_per_s, .may_be_zero = true),
    FIGURE(int8_op_per_s, .may_be_zero = true),
    FIGURE(l1_bytes_per_s, .whole = false),
    FIGURE(l2_bytes_per_s, .whole = false),
    FIGURE(llc_bytes_per_s, .whole = false),
    FIGURE(dram_bytes_per_s, .whole = false),
    FIGURE(dram_all_bytes_per_s, .whole = false),
    FIGURE(fork_s, .whole = false),
    FIGURE(tile_flop_per_s, .whole = false),
    FIGURE(tile_s, .whole = false),
    FIGURE(pack_bytes_per_s, .whole = false),
    FIGURE(l1_bytes, .whole = true),
    FIGURE(l2_bytes, .whole = true),
    FIGURE(llc_bytes, .whole = true),
    FIGURE(threads, .whole = true),
};

enum { FIGURES = sizeof figures / sizeof figures[0] };

static void write_head(sti_text *out)
{
    sti_text_printf(out, TITLE "%s, %s\n", sti_cpu_name(), sti_isa_name(sti_isa_now()));
}

void sti_machine_write(const sti_machine *machine, sti_text *out)
{
    write_head(out);
    for (int i = 0; i < FIGURES; i++) {
        const char *at = (const char *)machine + figures[i].offset;
        double value;
        int64_t whole;
        memcpy(&value, at, sizeof value);
        memcpy(&whole, at, sizeof whole);
        sti_text_printf(out, "%s %s\n", figures[i].name,
                        sti_float_text(figures[i].whole ? (double)whole : value));
    }
}

/* "name value" of a line, positive and not absurd. */
static bool parse_figure(const figure *f, const char *line, sti_machine *machine)
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
    char *at = (char *)machine + f->offset;
    if (f->whole)
        memcpy(at, &whole, sizeof whole);
    else
        memcpy(at, &value, sizeof value);
    return true;
}

bool sti_machine_parse(char *text, sti_machine *machine_out, const char **why_out)
{
    sti_text head = {0};
    sti_machine machine = {0};
    write_head(&head);
    *why_out = NULL;
    if (head.failed || strncmp(text, TITLE, strlen(TITLE)) != 0)
        *why_out = "it is no measurement of this version";
    else if (strncmp(text, head.data, head.length) != 0)
        *why_out = "it is of another machine or instruction set";
    char *line = *why_out ? text : text + head.length;
    for (int i = 0; !*why_out && i < FIGURES; i++) {
        char *end = strchr(line, '\n');
        if (end)
            *end = '\0';
        if (!end || !parse_figure(&figures[i], line, &machine))
            *why_out = "a figure is missing or impossible";
        else
            line = end + 1;
    }
    sti_text_fini(&head);
    if (!*why_out)
        *machine_out = machine;
    return !*why_out;
}

bool sti_machine_stored(sti_machine *machine_out)
{
    char path[2048];
    void *text;
    size_t bytes;
    const char *why = NULL;
    if (!sti_cache_path("machine.txt", path, sizeof path) || !sti_path_is_file(path))
        return false;
    if (sti_file_read(path, 65536, &text, &bytes) != STINT_OK) {
        sti_log(STINT_LOG_WARNING, "%s is ignored: %s", path, stint_last_error());
        return false;
    }
    const bool good = sti_machine_parse(text, machine_out, &why);
    sti_free(text);
    if (!good)
        sti_log(STINT_LOG_WARNING,
                "%s is ignored: %s; stint bench step and stint tune measure anew", path,
                why);
    return good;
}

/* A folder that cannot be written is no error: the machine is measured again. */
static void store(const sti_machine *machine)
{
    char path[2048];
    sti_text text = {0};
    sti_machine_write(machine, &text);
    if (text.failed || !sti_cache_path("machine.txt", path, sizeof path)) {
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

stint_status sti_machine_now(sti_machine *machine_out)
{
    if (sti_machine_stored(machine_out))
        return STINT_OK;
    sti_log(STINT_LOG_INFO, "measuring this machine, once, for about two seconds");
    const stint_status status = sti_machine_measure(machine_out);
    if (status == STINT_OK)
        store(machine_out);
    return status;
}
