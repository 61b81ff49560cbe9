/* The room infer/ uses trained networks. Other rooms use: this header; model_use.h, a
 * model file on lanes; evaluate.h, a split on lanes; eval_run.h, a model file over
 * data; and stint/infer.h, stint/generate.h.
 *
 * Lanes run a network which was built for use: each has a flat run of its own over
 * memory of its own, and all share parameters and states.
 *
 * Whoever has the memory lends it: training evaluates in the very blocks that its steps
 * work in. What has none takes a sti_infer, which owns all that a network runs in. */
#ifndef STI_INFER_LANES_H
#define STI_INFER_LANES_H

#include "data/data.h"
#include "exec/exec.h"
#include "model/network.h"

/* Threads inside one lane: with one lane all of them, with several each is a thread. */
int sti_lane_threads(int threads, int lanes);

#define STI_LANE_TEXT 1024

/* How a lane's part of some work went. Errors are recorded a thread, so the words are
 * carried over from it. */
typedef struct sti_lane_status {
    stint_status status;
    char failure[STI_LANE_TEXT];
} sti_lane_status;

/* On the lane's thread: keep a status with the words recorded there. */
void sti_lane_keep(sti_lane_status *lane, stint_status status);
/* On the calling thread: the failure of the lowest of the lanes, recorded, or STINT_OK.
 * each_bytes: from one status to the next, which may be members of something else. */
stint_status sti_lanes_status(const sti_lane_status *first, size_t each_bytes,
                              int lanes);

typedef struct sti_infer_lane {
    sti_exec *exec;
    sti_lane_status status;
} sti_infer_lane;

typedef struct sti_infer_lanes {
    const sti_network *network; /* borrowed */
    sti_team team, lane_team;   /* of all lanes together; inside of one */
    int count;
    sti_infer_lane *lane; /* [count] */
} sti_infer_lanes;

/* network: planned for the threads of a lane. memory [lanes]: of each one's regions,
 * borrowed as the network is for as long as the lanes live. On failure nothing is left
 * to be freed. */
stint_status sti_infer_lanes_init(sti_infer_lanes *lanes, const sti_network *network,
                                  int threads, int count,
                                  const sti_exec_memory *memory);
void sti_infer_lanes_fini(sti_infer_lanes *lanes); /* a zeroed one is fine */

/* Decoders of a set of images, [lanes], each for so many workers. data NULL: of text,
 * and *decoders_out is NULL. */
stint_status sti_lane_decoders_create(const stint_data *data, int lanes, int workers,
                                      sti_data_decoders ***decoders_out);
void sti_lane_decoders_destroy(sti_data_decoders **decoders,
                               int lanes); /* NULL: none */

/* A network in use, with all the memory that it runs in. */
typedef struct sti_infer {
    sti_infer_lanes lanes;
    void *params, *states; /* blocks of the plan's regions, to be filled */
    void *kept;            /* what sti_infer_ready makes of them; lanes share it, too */
    void **own;            /* [own_count]: all that one lane works in, in a block */
    int own_count;
} sti_infer;

/* network: planned for sti_lane_threads(threads, lanes), borrowed. Every page is
 * touched. STINT_E_BUDGET: it is more than the machine has. */
stint_status sti_infer_create(const sti_network *network, int threads, int lanes,
                              sti_infer **infer_out);
/* Once parameters and states are there, and whenever they have changed: what is kept of
 * them (sti_network_keep) is made. No lane may run. */
void sti_infer_ready(sti_infer *infer);
void sti_infer_destroy(sti_infer *infer); /* NULL is fine */

#endif
