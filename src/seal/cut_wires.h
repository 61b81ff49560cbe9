/* Results of bootstraps on their way between ranks, while others are computed.
 *
 * A message holds what one rank has made in one wave and another needs. Those of a pair
 * of ranks arrive in their order, so that neither cells nor lengths are told. A
 * receiver waits for one when it needs a result that is in it, or when some waves have
 * gone by. */
#ifndef STI_SEAL_CUT_WIRES_H
#define STI_SEAL_CUT_WIRES_H

#include "net/comm.h"
#include "seal/share.h"

enum { STI_CUT_WIRES_DEPTH = 8 }; /* messages on their way to, and from, each rank */

typedef struct sti_cut_wires sti_cut_wires;

/* slot: ciphertexts [slots][width] at waves->slot, where results come from and go to.
 * All must outlive it. comm NULL (one rank): *out is NULL, which all calls take. */
stint_status sti_cut_wires_create(sti_comm *comm, const sti_share *share,
                                  const sti_waves *waves, int64_t width, uint32_t *slot,
                                  sti_cut_wires **out);
/* Free it. Messages must have been waited for (flush), or the communicator failed. */
void sti_cut_wires_destroy(sti_cut_wires *wires);
/* Bytes of its buffers. */
size_t sti_cut_wires_bytes(int ranks, int64_t most, int64_t width);

/* The wave that waves->cell holds begins: ask for what others make of it. */
stint_status sti_cut_wires_expect(sti_cut_wires *wires);
/* Until the result of this cell is here, if another rank makes it. */
stint_status sti_cut_wires_need(sti_cut_wires *wires, int64_t cell);
/* This rank's part of the wave is done: send what others need. */
stint_status sti_cut_wires_send(sti_cut_wires *wires);
/* Until all messages have come and gone. */
stint_status sti_cut_wires_flush(sti_cut_wires *wires);

#endif
