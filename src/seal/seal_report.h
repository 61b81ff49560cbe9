/* The page about a circuit, and about a run of it: width and time by level, how busy
 * threads were, and which lines of the source the bootstraps come from. */
#ifndef STI_SEAL_SEAL_REPORT_H
#define STI_SEAL_SEAL_REPORT_H

#include "base/text.h"
#include "seal/circuit.h"
#include "stint/seal.h"

/* By level, [depth + 1] from 1: wall time, and the share of it in which threads had
 * work. A wave's time counts to the levels of its cells. */
typedef struct sti_level_times {
    int32_t *level; /* [cells] */
    double *seconds, *busy;
} sti_level_times;

stint_status sti_level_times_init(const sti_circuit *circuit, sti_level_times *out);
/* These cells took so long, on all threads together `worked`, of `threads`. */
void sti_level_times_add(sti_level_times *times, const int32_t *cell, int64_t cells,
                         double seconds, double worked, int threads);
void sti_level_times_fini(sti_level_times *times);

typedef struct sti_seal_report {
    const sti_circuit *circuit;
    const char *name;                 /* of the circuit's file */
    const char *source;               /* text of the C file, NULL: not at hand */
    const stint_seal_run_result *run; /* NULL: it has not run */
    const sti_level_times *times;     /* of the run */
} sti_seal_report;

/* STINT_E_IO; STINT_E_MEMORY. The old file stays until all is written. */
stint_status sti_seal_report_write(const sti_seal_report *report, const char *path);

#endif
