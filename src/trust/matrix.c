#define _GNU_SOURCE /* flock, O_DIRECTORY */
#include "trust/matrix.h"

#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

#include "base/fail.h"
#include "base/file.h"
#include "base/text.h"
#include "train/error_section.h"

static stint_status take_folder(sti_matrix *m)
{
    stint_status st = sti_dir_create(m->out);
    if (st != STINT_OK)
        return st;
    const char *log = sti_path_join(m->arena, m->out, "log.jsonl");
    if (!log)
        return STINT_E_MEMORY;
    if (sti_path_is_file(log))
        return sti_fail(STINT_E_USAGE,
                        "%s holds a run, whose recipe would be overwritten; choose "
                        "another folder by --out",
                        m->out);
    m->lock_fd = open(m->out, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (m->lock_fd < 0)
        return sti_fail_errno("%s: cannot be opened", m->out);
    if (flock(m->lock_fd, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK)
        return sti_fail(STINT_E_USAGE,
                        "%s: another process is at work there; wait for it, or choose "
                        "another folder by --out",
                        m->out);
    return STINT_OK;
}

stint_status sti_matrix_write_recipe(const sti_matrix *m)
{
    sti_text text = {0};
    stint_status st = sti_recipe_write(m->recipe, false, &text);
    if (st == STINT_OK)
        st = sti_file_write(m->recipe_path, text.data, text.length);
    sti_text_fini(&text);
    return st;
}

stint_status sti_matrix_open(sti_matrix *m, const stint_recipe *recipe,
                             const char *program, const char *out)
{
    *m = (sti_matrix){.recipe = recipe,
                      .program = program,
                      .arena = sti_arena_create("matrix"),
                      .lock_fd = -1};
    if (!m->arena)
        return STINT_E_MEMORY;
    m->out = sti_path_absolute(m->arena, out);
    m->recipe_path = m->out ? sti_path_join(m->arena, m->out, "recipe.ini") : NULL;
    if (!m->recipe_path)
        return STINT_E_MEMORY;
    return take_folder(m);
}

void sti_matrix_close(sti_matrix *m)
{
    if (m->lock_fd >= 0)
        close(m->lock_fd);
    if (m->arena)
        sti_arena_destroy(m->arena);
    *m = (sti_matrix){.lock_fd = -1};
}

/* Nothing lossy unless the recipe asks for all that there is: what a run may lose
 * depends on its budget. */
static void add_settings(const sti_matrix *m, sti_command *c, int threads)
{
    sti_command_add(c, "%s", m->recipe_path);
    sti_command_add(c, "--json");
    sti_command_add(c, "--quiet");
    sti_command_add(c, "--threads=%d", threads);
    sti_command_add(c, "--set=run.lanes=0");
    sti_command_add(c, "--memory=auto");
    if (sti_error_section_of(m->recipe)->pack == STI_PACK_AUTO)
        sti_command_add(c, "--error=0");
}

static sti_command *new_command(sti_matrix *m, const char *word, const char *name)
{
    sti_command *c = sti_arena_alloc(m->arena, sizeof *c);
    if (!c)
        return NULL;
    *c = (sti_command){.arena = m->arena};
    sti_command_add(c, "%s", m->program);
    sti_command_add(c, "%s", word);
    c->stderr_path = sti_arena_printf(m->arena, "%s/%s.txt", m->out, name);
    return c->stderr_path ? c : NULL;
}

sti_command *sti_matrix_command(sti_matrix *m, const char *name, int threads)
{
    sti_command *c = new_command(m, "train", name);
    if (!c)
        return NULL;
    add_settings(m, c, threads);
    sti_command_add(c, "--out=%s/%s", m->out, name);
    sti_command_add(c, "--set=run.tensorboard=");
    return c;
}

static stint_status read_plan(const char *path, size_t *peak, size_t *smallest)
{
    json_t *plan = json_load_file(path, 0, NULL);
    const json_t *a = json_object_get(plan, "peak_bytes");
    const json_t *b = json_object_get(plan, "smallest_bytes");
    stint_status st = STINT_OK;
    if (json_is_integer(a) && json_is_integer(b)) {
        *peak = (size_t)json_integer_value(a);
        *smallest = (size_t)json_integer_value(b);
    } else {
        st = sti_fail(STINT_E_BUG, "%s: is no plan", path);
    }
    json_decref(plan);
    return st;
}

stint_status sti_matrix_plan(sti_matrix *m, int threads, size_t *peak_out,
                             size_t *smallest_out)
{
    sti_command *c = new_command(m, "plan", "plan");
    char *path = sti_path_join(m->arena, m->out, "plan.json");
    if (!c || !path)
        return STINT_E_MEMORY;
    add_settings(m, c, threads);
    c->stdout_path = path;
    stint_status st = sti_child_run(c);
    return st == STINT_OK ? read_plan(path, peak_out, smallest_out) : st;
}
