/* Finding and loading the plug-in that knows MPI. The program itself has no MPI in it:
 * it runs where none is installed, and a single process never starts it. */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/fail.h"
#include "base/file.h"
#include "net/comm_priv.h"
#include "net/net.h"

#define PLUGIN_NAME "libstint_mpi.so"

/* Beside the program, or where it was installed, seen from there. */
static char *plugin_path(sti_arena *arena, const char *of)
{
    static const char *const places[] = {".", STINT_PLUGIN_FOLDER};
    const char *folder = sti_path_folder(arena, of);
    for (size_t i = 0; folder && i < sizeof places / sizeof places[0]; i++) {
        char *path =
            sti_arena_printf(arena, "%s/%s/%s", folder, places[i], PLUGIN_NAME);
        if (path && sti_path_is_file(path))
            return path;
    }
    return NULL;
}

static const char *find_plugin(sti_arena *arena)
{
    static char exe[4096];
    const char *set = getenv("STINT_MPI_PLUGIN");
    if (set && *set)
        return set;
    ssize_t length = readlink("/proc/self/exe", exe, sizeof exe - 1);
    char *path = NULL;
    if (length > 0) {
        exe[length] = '\0';
        path = plugin_path(arena, exe);
    }
    return path ? path : PLUGIN_NAME; /* the loader's own search */
}

static stint_status load(const sti_mpi_plugin **plugin_out)
{
    sti_arena *arena = sti_arena_create("net.plugin");
    const char *path = arena ? find_plugin(arena) : NULL;
    stint_status st = STINT_OK;
    if (!path) {
        sti_arena_destroy(arena);
        return STINT_E_MEMORY;
    }
    /* Open MPI opens plug-ins of its own, which look for its symbols. */
    void *library = dlopen(path, RTLD_NOW | RTLD_GLOBAL);
    const sti_mpi_plugin *plugin = library ? dlsym(library, "stint_mpi") : NULL;
    if (!plugin)
        st = sti_fail(STINT_E_UNSUPPORTED,
                      "started by MPI, but %s cannot be used (%s); it is built where "
                      "MPI's headers are (Debian: libopenmpi-dev); or say where ranks "
                      "meet by --net-root HOST:PORT, which needs no MPI",
                      path, dlerror());
    else if (plugin->version != STI_MPI_PLUGIN)
        st = sti_fail(STINT_E_UNSUPPORTED,
                      "%s is of another version of Stint (%d, this one wants %d)", path,
                      plugin->version, STI_MPI_PLUGIN);
    else
        *plugin_out = plugin;
    sti_arena_destroy(arena);
    return st;
}

static stint_status exchange(void *user, const void *mine, size_t n_bytes,
                             void *all_out)
{
    const sti_mpi_plugin *plugin = user;
    char text[512];
    int error = plugin->exchange(mine, (int)n_bytes, all_out, text, sizeof text);
    return error ? sti_fail(STINT_E_PEER, "MPI could not pass the addresses round: %s",
                            text)
                 : STINT_OK;
}

stint_status sti_mpi_create_comm(int64_t timeout_ns, const stint_net_desc *wanted,
                                 sti_comm **comm_out)
{
    const sti_mpi_plugin *plugin = NULL;
    char text[512], build[WIRE_BUILD + 1];
    sti_comm_tcp_desc desc = {.timeout_ns = timeout_ns,
                              .exchange = exchange,
                              .sockets_only = wanted->sockets_only,
                              .purpose = wanted->purpose,
                              .build = build};
    stint_status st = load(&plugin);
    if (st != STINT_OK)
        return st;
    union {
        const void *const_plugin;
        void *user;
    } u = {plugin};
    desc.user = u.user;
    sti_build_hash(build);
    if (plugin->begin(&desc.rank, &desc.size, text, sizeof text) != 0)
        return sti_fail(STINT_E_PEER, "MPI could not be started: %s", text);
    if (desc.size > 1)
        st = sti_comm_create_tcp(&desc, comm_out);
    plugin->end();
    if (st == STINT_OK && *comm_out)
        (*comm_out)->start_peak_bytes = sti_process_peak_bytes();
    return st;
}
