#include "base/plugin.h"

#include <dlfcn.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/fail.h"
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

static stint_status load_cuda(sti_arena *arena, const char *symbol, int version,
                              const void **object_out)
{
    const sti_plugin_desc desc = {
        .name = "libstint_cuda.so", .variable = "STINT_CUDA_PLUGIN", .symbol = symbol};
    const char *path, *why;
    const int *object = sti_plugin_open(&desc, arena, &path, &why);
    if (!object)
        return sti_fail(STINT_E_UNSUPPORTED,
                        "--device cuda: %s cannot be used (%s); it is built where nvcc "
                        "is; --device cpu gives the same bits",
                        path, why);
    if (*object != version)
        return sti_fail(STINT_E_UNSUPPORTED,
                        "%s is of another version of Stint (%d, this one wants %d)",
                        path, *object, version);
    *object_out = object;
    return STINT_OK;
}

stint_status sti_plugin_open_cuda(const char *symbol, int version,
                                  const void **object_out)
{
    sti_arena *arena = sti_arena_create("plugin");
    const stint_status st =
        arena ? load_cuda(arena, symbol, version, object_out) : STINT_E_MEMORY;
    sti_arena_destroy(arena);
    return st;
}
