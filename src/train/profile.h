/* Where the time of training steps goes: every operator of the graph, and what is
 * around it. A step engine that is given a profile fills it while it runs
 * (step_engine.h). The parts of a step add up to its wall time: with several lanes each
 * counts 1/lanes, and what a lane waits for the slowest one is a part of its own.
 *
 * Measuring costs two readings of the clock an operator, about 50 ns. Nothing measured
 * here changes a result. One thread at a time, except that each lane writes its own. */
#ifndef STI_TRAIN_PROFILE_H
#define STI_TRAIN_PROFILE_H

#include "base/json.h"
#include "graph/graph.h"
#include "kernel/machine/machine.h"

/* Parts of a step beside the operators, in ns over all steps. */
typedef enum sti_profile_part {
    STI_PROFILE_LOAD, /* decoding, augmentation; summed over lanes, as the next two */
    STI_PROFILE_TREE, /* shard gradients added within a lane */
    STI_PROFILE_WAIT, /* lanes that are done, for the last one */
    STI_PROFILE_JOIN, /* the lanes' sums added */
    STI_PROFILE_NORM, /* of the gradient */
    STI_PROFILE_UPDATE,
    STI_PROFILE_PARTS
} sti_profile_part;

/* All nodes of one operator and direction. Seconds are of all steps and shards; flop
 * and bytes likewise. */
typedef struct sti_profile_row {
    const char *name;
    bool backward;
    int64_t nodes;
    double s, flop, bytes;
    double least_s; /* by the roofline; 0: not known */
} sti_profile_row;

typedef struct sti_profile {
    const stint_graph *graph; /* NULL before begin and after end */
    int lanes, lane_threads;
    int32_t nodes;
    int64_t *node_ns; /* [lanes][nodes] */
    int64_t *lane_ns; /* [lanes][STI_PROFILE_PARTS] */
    int64_t part_ns[STI_PROFILE_PARTS];
    int64_t step_ns, steps, shards; /* wall time; shards a step */
    int64_t runs;                   /* of the graph, which the engine counts */
    int64_t evaluate_ns, evaluations;
    bool with_roofline;
    sti_machine machine;   /* with_roofline */
    sti_profile_row *rows; /* after end, the longest first */
    int row_count;
} sti_profile;

/* Room for the graph's nodes. STINT_E_MEMORY. */
stint_status sti_profile_begin(sti_profile *profile, const stint_graph *graph,
                               int64_t shards, int lanes, int lane_threads);
/* Before its end: how many times as long the operators took as without those that only
 * save memory: what is run again, packing, unpacking, gains of errors. */
double sti_profile_slowdown(const sti_profile *profile);
/* Sums the nodes up in rows; the graph may die afterwards. machine: for the roofline,
 * NULL: none. STINT_E_MEMORY. */
stint_status sti_profile_end(sti_profile *profile, const sti_machine *machine);
void sti_profile_fini(sti_profile *profile); /* a zeroed one is fine */

/* A table, every line of which ends in a newline. */
void sti_profile_words(const sti_profile *profile, sti_text *out);
/* Members "operators" [..] and "parts" [..] of the object that is open. */
void sti_profile_json(const sti_profile *profile, sti_json *j);

#endif
