/* The graph of a tile cut into stages that work side by side, each on a thread, joined
 * by rings of tiles (plan/stream.h, exec/stream_run.h).
 *
 * Stages are stretches of the graph's order with even costs. What one makes and a later
 * one reads goes through the ring between both, so every tile passes all stages in the
 * order of the graph and has the bits of a run in one piece. All that stages and rings
 * work in lies in one block. */
#ifndef STI_FIELD_FIELD_PIPELINE_H
#define STI_FIELD_FIELD_PIPELINE_H

#include "field/field_net.h"
#include "plan/stream.h"

enum { STI_FIELD_STAGES = 16, STI_FIELD_TIMED_TILES = 64 };

typedef struct sti_field_pipeline sti_field_pipeline;

/* Plan for a network of one tile, which is borrowed. list: of its columns.
 * STINT_E_USAGE: more stages than the graph has nodes. */
stint_status sti_field_pipeline_create(const sti_field_net *net,
                                       const sti_derivative_list *list, int stages,
                                       sti_field_pipeline **pipeline_out);
void sti_field_pipeline_destroy(sti_field_pipeline *pipeline); /* NULL is fine */

/* Bytes of the block: rings, and what stages work in. */
size_t sti_field_pipeline_arena_bytes(const sti_field_pipeline *pipeline);
const sti_stream_graph *sti_field_pipeline_streams(const sti_field_pipeline *pipeline);
/* Longest path through the first STI_FIELD_TIMED_TILES tiles, in seconds that are
 * estimated from the operators' costs. */
double sti_field_pipeline_latency_s(const sti_field_pipeline *pipeline);

/* Run it over a stream of points. params: the weights as the network's plan has them.
 * factor [columns]. */
stint_status sti_field_pipeline_run(sti_field_pipeline *pipeline,
                                    const sti_field_stream *stream, const void *params,
                                    const float *factor);

#endif
