/* The order in which a circuit's cells run, and the slots that their results lie in.
 *
 * Cells come in waves of at most `width`, each of which needs only what is there: a
 * plan walks through the same waves as a run, so that it knows how many slots are in
 * use at most, and how many calls of eight there are. */
#ifndef STI_SEAL_WAVES_H
#define STI_SEAL_WAVES_H

#include "base/ready.h"
#include "seal/circuit.h"

typedef struct sti_waves {
    const sti_circuit *circuit;
    sti_ready *ready;
    int64_t *first; /* of the ready list's graph */
    int32_t *next;
    int32_t *uses; /* [wires]: cells and outputs that still need it */
    int32_t *slot; /* [wires]: -1: none */
    int32_t *free_slot;
    int64_t free_slots, slots; /* slots: all that were ever in use at once */
    int64_t width;
    int32_t *cell; /* [width]: the wave */
    int64_t cells;
} sti_waves;

/* Input wires, and wire 0, have their slots already: slot i of wire i. */
stint_status sti_waves_begin(const sti_circuit *circuit, int64_t width, bool by_levels,
                             sti_waves *out);
/* The next wave in waves->cell, with slots for its results; false: all is done. */
bool sti_waves_next(sti_waves *waves);
/* The wave has run: slots that nothing needs any more are free. */
void sti_waves_done(sti_waves *waves);
void sti_waves_fini(sti_waves *waves);

#endif
