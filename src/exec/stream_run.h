/* Processes on a thread each, joined by the rings that plan/stream.h planned.
 *
 * A ring is written in place: begin gives the next free block, waiting until there is
 * one, end hands it on. Should all processes that still run wait, then each waits for
 * another of them for ever; that is noticed at once, and every wait ends with NULL. */
#ifndef STI_EXEC_STREAM_RUN_H
#define STI_EXEC_STREAM_RUN_H

#include "plan/stream.h"

typedef struct sti_rings sti_rings;

/* graph: borrowed, depths as they are now. memory: sti_stream_ring_bytes(graph),
 * 64-byte aligned, borrowed; NULL where blocks have no bytes. */
stint_status sti_rings_create(const sti_stream_graph *graph, void *memory,
                              sti_rings **rings_out);
void sti_rings_destroy(sti_rings *rings); /* NULL is fine */

/* Blocks for the process that writes, or reads, the ring. NULL: the run is over, by a
 * failure or since all wait; return then. */
void *sti_rings_begin_write(sti_rings *rings, int32_t stream);
void sti_rings_end_write(sti_rings *rings, int32_t stream);
const void *sti_rings_begin_read(sti_rings *rings, int32_t stream);
void sti_rings_end_read(sti_rings *rings, int32_t stream);

/* What process p does, from its first event to its last. After NULL its status does not
 * count. */
typedef stint_status sti_process_fn(void *user, int32_t process, sti_rings *rings);
/* Run all processes to their ends. The failure of the first of them that failed, with
 * its words; STINT_E_FAILED: they block, or no thread was to be had. Once a rings. */
stint_status sti_rings_run(sti_rings *rings, sti_process_fn *fn, void *user);
/* Did the run end since all waited for each other? */
bool sti_rings_blocked(const sti_rings *rings);

/* Memory that threads of so many processes take beside the rings. */
size_t sti_rings_thread_bytes(int32_t processes);

#endif
