/* Processes that hand blocks to each other through bounded rings: will they run, how
 * long do they take, and how deep must each ring be?
 *
 * A process is a list of events in a fixed order: it reads a block, writes a block, or
 * works for a while. Every event is a node of one graph, with an edge to the next event
 * of its process, from the k-th write of a ring to the k-th read, and from the k-th
 * read to write k + depth, whose place that read makes free. The processes block for
 * ever if and only if this graph has a cycle; else the time of an event is the longest
 * path to it, and the latency that of the last one. After the model of W. Abi-Karam et
 * al., "INR-Arch" (2023).
 *
 * exec/stream.h runs what was planned here. Nothing in it knows about fields. */
#ifndef STI_PLAN_STREAM_H
#define STI_PLAN_STREAM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/text.h"
#include "stint/status.h"

typedef enum sti_event_kind {
    STI_EVENT_READ,
    STI_EVENT_WRITE,
    STI_EVENT_WORK
} sti_event_kind;

typedef struct sti_event {
    sti_event_kind kind;
    int32_t stream; /* of a read or write */
    double time;    /* of work */
} sti_event;

/* All of the events, `repeat` times over. Borrowed. */
typedef struct sti_process {
    const char *name;
    const sti_event *event; /* [count] */
    int64_t count, repeat;
} sti_process;

/* A ring with one writer and one reader, of depth blocks. */
typedef struct sti_stream_ring {
    const char *name; /* borrowed */
    int32_t from, to; /* processes */
    int64_t depth;
    size_t block_bytes;
} sti_stream_ring;

typedef struct sti_stream_graph {
    const sti_process *process; /* [processes] */
    int32_t processes;
    sti_stream_ring *stream; /* [streams] */
    int32_t streams;
    /* From a write to its read, in rings of up to 2 blocks and in deeper ones, and from
     * a read to the write that it lets go on. */
    double hop, deep_hop, back_hop;
} sti_stream_graph;

typedef struct sti_stream_timing {
    bool blocks;    /* a cycle: the processes wait for each other for ever */
    double latency; /* of all events; where it blocks, of those that are reached */
    int64_t events; /* that are reached */
} sti_stream_timing;

/* STINT_E_INPUT: a ring that is written and read unequally often, or by other processes
 * than it says; STINT_E_MEMORY. Time and memory grow with the events. */
stint_status sti_stream_time(const sti_stream_graph *graph,
                             sti_stream_timing *timing_out);

/* Set the depth of each ring: from as deep as it has blocks down to what it needs, each
 * by bisection, the largest saving of bytes first, so long as the latency stays within
 * `slack` (1: none, INFINITY: as long as it runs) times that of the deep rings. Of any
 * one ring, a block less would then block or take longer. STINT_E_INPUT: it blocks at
 * any depth. */
stint_status sti_stream_set_depths(sti_stream_graph *graph, double slack,
                                   sti_stream_timing *timing_out);

/* Bytes of all rings, each block rounded up to 64. */
size_t sti_stream_ring_bytes(const sti_stream_graph *graph);
/* Processes as boxes and rings as edges, in Graphviz's language. */
void sti_stream_print_dot(const sti_stream_graph *graph, sti_text *out);

#endif
