/* Processes that train together, on one host or several.
 *
 * A rank is one of them; every rank joins, trains (stint_train with the same recipe and
 * data), and leaves. How they find each other: under mpirun by themselves; else each is
 * told its rank, how many there are, and the address at which rank 0 waits. */
#ifndef STINT_NET_H
#define STINT_NET_H

#include <stdbool.h>

#include "stint/status.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct stint_net stint_net;

typedef struct stint_net_desc {
    const char *root; /* "host:port" of rank 0, on which it listens until all are there,
                         or "@name" that only this host knows; NULL: ask the launcher
                         (MPI) */
    int rank, ranks;  /* with root; ranks 0: the launcher's variables say both */
    double timeout_s; /* a peer that gives no sign of life for so long is lost, from
                         0.1 to 100 days; 0: 30 */
    bool
        sockets_only; /* also between ranks of one host, which otherwise share memory */
} stint_net_desc;

/** Join the other ranks; blocks until all are there. *net_out NULL with STINT_OK: no
 *  root, and no launcher started more than this one process. STINT_E_PEER: who is
 *  missing, or cannot be reached; STINT_E_USAGE: root, rank and ranks do not go
 *  together; STINT_E_UNSUPPORTED: started by MPI, but the plug-in for it is not there.
 */
STINT_API stint_status stint_net_join(const stint_net_desc *desc, stint_net **net_out);
STINT_API int stint_net_rank(const stint_net *net);  /* NULL: 0 */
STINT_API int stint_net_ranks(const stint_net *net); /* NULL: 1 */
/** Never blocks for long; NULL is fine. Ranks that still wait for this one fail. */
STINT_API void stint_net_leave(stint_net *net);

#ifdef __cplusplus
}
#endif

#endif
