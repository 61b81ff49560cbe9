/* Finding and loading the plug-in that knows MPI. The program itself has no MPI in it:
 * it runs where none is installed, and a single process never starts it. */
#include "base/fail.h"
#include "base/plugin.h"
#include "net/comm_priv.h"
#include "net/net.h"

static stint_status load(const sti_mpi_plugin **plugin_out)
{
    static const sti_plugin_desc desc = {
        .name = "libstint_mpi.so",
        .variable = "STINT_MPI_PLUGIN",
        .symbol = "stint_mpi",
        .shares =
            true}; /* Open MPI opens plug-ins of its own, which look for its symbols */
    sti_arena *arena = sti_arena_create("net.plugin");
    if (!arena)
        return STINT_E_MEMORY;
    const char *path, *why;
    const sti_mpi_plugin *plugin = sti_plugin_open(&desc, arena, &path, &why);
    stint_status st = STINT_OK;
    if (!plugin)
        st = sti_fail(STINT_E_UNSUPPORTED,
                      "started by MPI, but %s cannot be used (%s); it is built where "
                      "MPI's headers are (Debian: libopenmpi-dev); or say where ranks "
                      "meet by --net-root HOST:PORT, which needs no MPI",
                      path, why);
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
