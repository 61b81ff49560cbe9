/* The inside of a stint_net, and how ranks find each other. */
#ifndef STI_NET_NET_H
#define STI_NET_NET_H

#include "net/comm_tcp.h"
#include "net/wire.h"
#include "stint/net.h"

/* NULL for NULL. */
sti_comm *sti_net_comm(const stint_net *net);
/* Make a net of a communicator that exists; takes it. */
stint_status sti_net_create(sti_comm *take_comm, stint_net **net_out);

/* What the variables of a launcher (Open MPI, MPICH, Slurm with PMI) say; false: none
 * of them has started this process, or no other one beside it. */
bool sti_launcher_found(int *rank_out, int *ranks_out);

/* SHA-256 of the file that this code was loaded from; "" where it cannot be read. */
void sti_build_hash(char hex_out[WIRE_BUILD + 1]);

/* A meeting at rank 0's address, as an exchange for sti_comm_create_tcp. */
typedef struct sti_root {
    const char *address; /* "host:port", "[::1]:port", "@name" within a host */
    int rank, size;
    int64_t timeout_ns;
} sti_root;
sti_comm_exchange_fn sti_root_exchange; /* user: sti_root */
typedef struct sti_root_place {
    char host[256]; /* or the name, without its '@' */
    int port;       /* 0: a name, which only this host knows */
} sti_root_place;
/* STINT_E_USAGE: no address. */
stint_status sti_root_parse(const char *address, sti_root_place *out);

/* What libstint_mpi.so gives under the name "stint_mpi": MPI is started, tells who is
 * there, passes the addresses round, and is done: later messages are our own, since a
 * rank that dies must not take the others with it. */
typedef struct sti_mpi_plugin {
    int version; /* STI_MPI_PLUGIN */
    /* 0, or an MPI error code with its words. */
    int (*begin)(int *rank_out, int *size_out, char *text_out, int text_bytes);
    int (*exchange)(const void *mine, int n_bytes, void *all_out, char *text_out,
                    int text_bytes);
    void (*end)(void);
} sti_mpi_plugin;
enum { STI_MPI_PLUGIN = 1 };

/* Ranks that mpirun started. */
stint_status sti_mpi_create_comm(int64_t timeout_ns, const stint_net_desc *wanted,
                                 sti_comm **comm_out);

#endif
