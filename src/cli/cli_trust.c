#define _GNU_SOURCE /* readlink */
#include "cli/cli_trust.h"

#include <string.h>
#include <unistd.h>

#include "base/fail.h"
#include "base/file.h"
#include "train/run_section.h"

#define GROUPS_MAX_BYTES ((size_t)1 << 28)

stint_status sti_cli_program(sti_cli_call *call, const char **path_out)
{
    char path[4096];
    ssize_t length = readlink("/proc/self/exe", path, sizeof path - 1);
    if (length <= 0)
        return sti_fail_errno("/proc/self/exe: cannot find this program");
    path[length] = '\0';
    *path_out = sti_arena_strdup(call->arena, path);
    return *path_out ? STINT_OK : STINT_E_MEMORY;
}

static bool out_was_given(const sti_cli_call *call)
{
    const sti_recipe_table *recipe = sti_recipe_table_get();
    for (int i = 0; i < recipe->count; i++)
        if (recipe->section_of[i] == &sti_run_section &&
            strcmp(recipe->row[i].name, "out") == 0)
            return call->set.origin[i] == STI_FROM_COMMAND;
    return false;
}

char *sti_cli_trust_out(sti_cli_call *call, const char *ending)
{
    char *out = sti_recipe_out(call->recipe, call->arena);
    if (!out || out_was_given(call))
        return out;
    return sti_arena_printf(call->arena, "%s%s", out, ending);
}

/* The line without spaces around it, such as the return that some editors leave. */
static const char *trimmed(char *line)
{
    static const char blank[] = " \t\r";
    line += strspn(line, blank);
    size_t length = strlen(line);
    while (length > 0 && strchr(blank, line[length - 1]))
        line[--length] = '\0';
    return line;
}

stint_status sti_cli_read_groups(sti_cli_call *call, const char *path, void **held_out,
                                 const char *const **name_out, int64_t *count_out)
{
    size_t n_bytes;
    int64_t lines = 0, count = 0;
    stint_status st = sti_file_read(path, GROUPS_MAX_BYTES, held_out, &n_bytes);
    if (st != STINT_OK)
        return st;
    char *text = *held_out;
    for (size_t i = 0; i < n_bytes; i++)
        lines += text[i] == '\n' || i + 1 == n_bytes;
    const char **names =
        sti_arena_alloc(call->arena, (size_t)(lines + 1) * sizeof *names);
    if (!names)
        return STINT_E_MEMORY;
    for (size_t at = 0; at < n_bytes;) {
        char *end = memchr(text + at, '\n', n_bytes - at);
        if (end)
            *end = '\0';
        names[count++] = trimmed(text + at);
        at = end ? (size_t)(end - text) + 1 : n_bytes;
    }
    *name_out = names;
    *count_out = count;
    return STINT_OK;
}

void sti_cli_share_json(sti_json *j, const char *name, const stint_share *s)
{
    sti_json_begin_object(j, name);
    sti_json_int(j, "count", s->count);
    sti_json_float(j, "rate", s->rate);
    sti_json_float(j, "low", s->low);
    sti_json_float(j, "high", s->high);
    sti_json_end_object(j);
}

void sti_cli_trust_progress(void *user, const char *what, int64_t done, int64_t total)
{
    sti_cli_trust_view *view = user;
    if (!view->begun) {
        sti_progress_begin(&view->bar, view->title, "runs", total, view->quiet);
        view->bar.from = done; /* by an earlier call, or before the first word */
        view->begun = true;
    }
    sti_progress_update(&view->bar, done, what);
}
