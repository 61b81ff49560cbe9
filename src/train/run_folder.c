/* The out folder of a run: whose it is, and what of an earlier run goes. */
#define _GNU_SOURCE /* flock, O_CLOEXEC, O_DIRECTORY */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

#include "base/fail.h"
#include "base/file.h"
#include "train/memory_account.h"
#include "train/run.h"
#include "train/run_section.h"

static const char *const run_files[] = {"log.jsonl",   "model.safetensors",
                                        "errors.json", "answers.npy",
                                        "report.html", "recipe.ini"};

stint_status sti_run_name_files(sti_run *run)
{
    run->arena = sti_arena_create("run");
    if (!run->arena)
        return STINT_E_MEMORY;
    run->out = sti_recipe_out(run->recipe, run->arena);
    if (!run->out)
        return STINT_E_MEMORY;
    run->checkpoints = sti_path_join(run->arena, run->out, "checkpoints");
    run->model_path = sti_path_join(run->arena, run->out, "model.safetensors");
    run->log_path = sti_path_join(run->arena, run->out, "log.jsonl");
    return run->checkpoints && run->model_path && run->log_path ? STINT_OK
                                                                : STINT_E_MEMORY;
}

static stint_status count_checkpoints(const sti_run *run, int64_t *count)
{
    char **names;
    return sti_checkpoint_list(run->arena, run->checkpoints, &names, count);
}

stint_status sti_run_check_folder(const sti_run *run)
{
    int64_t count;
    stint_status st = count_checkpoints(run, &count);
    if (st != STINT_OK || run->desc->resume || run->desc->force)
        return st;
    if (count > 0 || sti_path_is_file(run->model_path) ||
        sti_path_is_file(run->log_path))
        return sti_fail(STINT_E_USAGE,
                        "%s holds a run already; go on with it by --resume, replace it "
                        "by --force, or choose another folder by --out",
                        run->out);
    return STINT_OK;
}

/* The folder itself is the lock: it goes when the process does. */
stint_status sti_run_lock_folder(sti_run *run)
{
    stint_status st = sti_dir_create(run->checkpoints);
    if (st != STINT_OK)
        return st;
    if (access(run->out, W_OK | X_OK) != 0 ||
        access(run->checkpoints, W_OK | X_OK) != 0)
        return sti_fail_errno("%s: cannot be written", run->out);
    run->lock_fd = open(run->out, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (run->lock_fd < 0)
        return sti_fail_errno("%s: cannot be opened", run->out);
    if (flock(run->lock_fd, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK)
        return sti_fail(STINT_E_USAGE,
                        "%s: another process is training there; wait for it, or choose "
                        "another folder by --out",
                        run->out);
    return STINT_OK;
}

static stint_status remove_file(const sti_run *run, const char *folder,
                                const char *name)
{
    char *path = sti_path_join(run->arena, folder, name);
    if (!path)
        return STINT_E_MEMORY;
    if (unlink(path) != 0 && errno != ENOENT)
        return sti_fail_errno("%s: cannot be replaced", path);
    return STINT_OK;
}

stint_status sti_run_remove_leavings(const sti_run *run)
{
    char **names;
    int64_t count;
    stint_status st = sti_dir_list(run->arena, run->checkpoints, &names, &count);
    for (int64_t i = 0; i < count && st == STINT_OK; i++)
        if (strcmp(sti_path_extension(names[i]), ".part") == 0)
            st = remove_file(run, run->checkpoints, names[i]);
    return st;
}

stint_status sti_run_remove_old(const sti_run *run)
{
    char **names;
    int64_t count;
    stint_status st = sti_checkpoint_list(run->arena, run->checkpoints, &names, &count);
    for (int64_t i = 0; i < count && st == STINT_OK; i++)
        st = remove_file(run, run->checkpoints, names[i]);
    for (size_t i = 0; i < sizeof run_files / sizeof run_files[0] && st == STINT_OK;
         i++)
        st = remove_file(run, run->out, run_files[i]);
    return st;
}

/* What a repeat is to use: it looks for no batch, so it has less memory to itself, and
 * chooses the same rewrites. */
stint_status sti_run_write_recipe(const sti_run *run)
{
    sti_text text = {0};
    stint_recipe *repeat = NULL;
    char *path = sti_path_join(run->arena, run->out, "recipe.ini");
    stint_status st = path ? sti_recipe_copy(run->recipe, &repeat) : STINT_E_MEMORY;
    if (st == STINT_OK && sti_run_section_of(run->recipe)->searched) {
        sti_run_values *values = sti_recipe_edit(repeat, &sti_run_section);
        values->memory_bytes -= STI_SEARCH_BYTES;
    }
    if (st == STINT_OK && run->settled_scheme)
        st = stint_recipe_set(repeat, "shrink.scheme", run->settled_scheme);
    if (st == STINT_OK)
        st = sti_recipe_write(repeat, false, &text);
    if (st == STINT_OK)
        st = sti_file_write(path, text.data, text.length);
    sti_text_fini(&text);
    stint_recipe_destroy(repeat);
    return st;
}
