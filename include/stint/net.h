/* Processes that train together, on one host or several.
 *
 * A rank is one of them. Every rank joins, trains (stint_train with the same recipe and
 * data), and leaves. Under mpirun the ranks find each other by themselves; else each is
 * told its rank, how many there are, and the address at which rank 0 waits.
 *
 *   stint_net *net = NULL;
 *   stint_status st = stint_net_join(&(stint_net_desc){0}, &net);
 *   if (st == STINT_OK)
 *       st = stint_train(recipe, &(stint_train_desc){.net = net}, &result);
 *   stint_net_leave(net);
 *
 * The result of a training has the bits of one process, whatever the number of ranks
 * (docs/network.md). Nothing is encrypted: ranks belong on a network of their own. */
#ifndef STINT_NET_H
#define STINT_NET_H

#include <stdbool.h>

#include "stint/status.h"

#ifdef __cplusplus
extern "C" {
#endif

/** This process's place among the others; opaque. It serves one thread at a time. */
typedef struct stint_net stint_net;

/** How to find the others. All zero: ask the launcher (mpirun). */
typedef struct stint_net_desc {
    /* "host:port" of rank 0, on which it listens until all are there, or "@name", which
     * only this host knows. NULL: ask the launcher (MPI). */
    const char *root;
    /* With root: which rank this is, from 0, and how many there are. ranks 0: the
     * launcher's environment variables say both. */
    int rank, ranks;
    /* A rank without a sign of life for so many seconds is lost: 0.1 s to 100 days; 0:
     * 30 s. Long computations are not silence: a thread gives the signs of life. */
    double timeout_s;
    /* Use sockets also between ranks of one host, which otherwise share memory. */
    bool sockets_only;
    /* What the ranks are for, "train": another one's are refused in words. At most 16
     * characters count. NULL: not said, and not compared. */
    const char *purpose;
} stint_net_desc;

/** Join the other ranks. Blocks until all are there.
 *
 * *net_out is NULL, with STINT_OK, where this process is alone: without a root where no
 * launcher started more than one, with a root where there is one rank. Such a NULL may
 * be passed to every call that takes a net. STINT_E_PEER: ranks are missing or cannot
 * be reached, the text says which; STINT_E_USAGE: root, rank, ranks and timeout_s do
 * not go together or are out of range, or others are of another purpose or build;
 * STINT_E_UNSUPPORTED: MPI started this process but its plug-in is not there;
 * STINT_E_MEMORY. The strings of desc are not kept. */
STINT_API stint_status stint_net_join(const stint_net_desc *desc, stint_net **net_out);

/** Which rank this is, from 0. NULL: 0. */
STINT_API int stint_net_rank(const stint_net *net);

/** How many ranks there are. NULL: 1. */
STINT_API int stint_net_ranks(const stint_net *net);

/** Leave and free the net. Never blocks for long; NULL is fine. Calls of other ranks
 * that still wait for this one fail with STINT_E_PEER. */
STINT_API void stint_net_leave(stint_net *net);

#ifdef __cplusplus
}
#endif

#endif
