#include "net/net.h"

#include <stdlib.h>

#include "base/fail.h"
#include "base/memory.h"
#include "base/units.h"

/* Signs of life come every fourth of it. */
#define LEAST_TIMEOUT_S 0.1
#define MAX_TIMEOUT_S   (100 * 86400.0)

struct stint_net {
    sti_comm *comm;
};

sti_comm *sti_net_comm(const stint_net *net)
{
    return net ? net->comm : NULL;
}

stint_status sti_net_create(sti_comm *take_comm, stint_net **net_out)
{
    stint_net *net = sti_alloc(sizeof *net, "net");
    if (!net) {
        sti_comm_destroy(take_comm);
        return STINT_E_MEMORY;
    }
    net->comm = take_comm;
    *net_out = net;
    return STINT_OK;
}

int stint_net_rank(const stint_net *net)
{
    return net ? sti_comm_rank(net->comm) : 0;
}

int stint_net_ranks(const stint_net *net)
{
    return net ? sti_comm_size(net->comm) : 1;
}

void stint_net_leave(stint_net *net)
{
    if (!net)
        return;
    sti_comm_destroy(net->comm);
    sti_free(net);
}

static bool number(const char *name, int *out)
{
    const char *text = getenv(name);
    int64_t value;
    if (!text || sti_parse_int(text, &value) != STINT_OK || value < 0 ||
        value > WIRE_RANKS)
        return false;
    *out = (int)value;
    return true;
}

bool sti_launcher_found(int *rank_out, int *ranks_out)
{
    static const char *const names[][2] = {
        {"OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"}, {"PMI_RANK", "PMI_SIZE"}};
    for (int i = 0; i < 2; i++)
        if (number(names[i][0], rank_out) && number(names[i][1], ranks_out))
            return *ranks_out > 1;
    return false;
}

static stint_status check_desc(const stint_net_desc *desc, sti_root *root)
{
    sti_root_place place;
    stint_status st = sti_root_parse(desc->root, &place);
    if (st != STINT_OK)
        return st;
    root->rank = desc->rank;
    root->size = desc->ranks;
    if (desc->ranks == 0 && !sti_launcher_found(&root->rank, &root->size))
        return sti_fail(STINT_E_USAGE,
                        "net-root: how many processes are there, and which is this? "
                        "Say --net-ranks N --net-rank R (0 to N-1), or start all by "
                        "mpirun");
    if (root->size < 1 || root->rank < 0 || root->rank >= root->size)
        return sti_fail(STINT_E_USAGE,
                        "net-rank: %d is not from 0 to %d, as --net-ranks %d has it",
                        root->rank, root->size - 1, root->size);
    return STINT_OK;
}

static stint_status join_root(const stint_net_desc *desc, int64_t timeout_ns,
                              sti_comm **comm_out)
{
    sti_root root = {.address = desc->root, .timeout_ns = timeout_ns};
    char build[WIRE_BUILD + 1];
    stint_status st = check_desc(desc, &root);
    if (st != STINT_OK || root.size == 1)
        return st;
    sti_build_hash(build);
    return sti_comm_create_tcp(&(sti_comm_tcp_desc){.rank = root.rank,
                                                    .size = root.size,
                                                    .timeout_ns = timeout_ns,
                                                    .sockets_only = desc->sockets_only,
                                                    .build = build,
                                                    .purpose = desc->purpose,
                                                    .exchange = sti_root_exchange,
                                                    .user = &root},
                               comm_out);
}

stint_status stint_net_join(const stint_net_desc *desc, stint_net **net_out)
{
    const double seconds = desc->timeout_s == 0 ? 30 : desc->timeout_s;
    sti_comm *comm = NULL;
    int rank, ranks;
    stint_status st = STINT_OK;
    *net_out = NULL;
    if (!(seconds >= LEAST_TIMEOUT_S && seconds <= MAX_TIMEOUT_S))
        return sti_fail(STINT_E_USAGE,
                        "net-timeout: %g s is out of range, must be from %g s to %g "
                        "days",
                        seconds, LEAST_TIMEOUT_S, MAX_TIMEOUT_S / 86400);
    const int64_t timeout_ns = (int64_t)(seconds * 1e9);
    if (desc->root)
        st = join_root(desc, timeout_ns, &comm);
    else if (desc->ranks > 1)
        st =
            sti_fail(STINT_E_USAGE,
                     "net-ranks: where do the ranks meet? Say --net-root HOST:PORT, an "
                     "address of rank 0's host, or @NAME if all are on this host");
    else if (sti_launcher_found(&rank, &ranks))
        st = sti_mpi_create_comm(timeout_ns, desc, &comm);
    return st == STINT_OK && comm ? sti_net_create(comm, net_out) : st;
}
