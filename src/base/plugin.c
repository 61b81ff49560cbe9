#include "base/plugin.h"

#include <dlfcn.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/file.h"

/* Beside the program, or where it was installed, seen from there. */
static char *path_beside(sti_arena *arena, const char *name, const char *of)
{
    static const char *const places[] = {".", STINT_PLUGIN_FOLDER};
    const char *folder = sti_path_folder(arena, of);
    for (size_t i = 0; folder && i < sizeof places / sizeof places[0]; i++) {
        char *path = sti_arena_printf(arena, "%s/%s/%s", folder, places[i], name);
        if (path && sti_path_is_file(path))
            return path;
    }
    return NULL;
}

static const char *find(const sti_plugin_desc *desc, sti_arena *arena)
{
    char exe[4096];
    const char *set = getenv(desc->variable);
    if (set && *set)
        return set;
    const ssize_t length = readlink("/proc/self/exe", exe, sizeof exe - 1);
    char *path = NULL;
    if (length > 0) {
        exe[length] = '\0';
        path = path_beside(arena, desc->name, exe);
    }
    return path ? path : desc->name; /* the loader's own search */
}

void *sti_plugin_open(const sti_plugin_desc *desc, sti_arena *arena,
                      const char **path_out, const char **why_out)
{
    *path_out = find(desc, arena);
    void *library =
        dlopen(*path_out, RTLD_NOW | (desc->shares ? RTLD_GLOBAL : RTLD_LOCAL));
    void *object = library ? dlsym(library, desc->symbol) : NULL;
    *why_out = object ? NULL : dlerror();
    return object;
}
