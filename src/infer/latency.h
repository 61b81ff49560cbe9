/* How long networks take on this machine, measured in turns so that what else the
 * machine does falls on all of them alike. Measurements steer choices of time, never a
 * result.
 *
 * A measurement is kept as a line of "latency.txt" in the folder of machine.txt, by the
 * CPU's name, the instruction set, threads, the build and the graph (operators, shapes,
 * batch), the newest 1000 of them. */
#ifndef STI_INFER_LATENCY_H
#define STI_INFER_LATENCY_H

#include "infer/lanes.h"

/* One node of the network. */
typedef struct sti_latency_layer {
    const char *name, *form; /* its scope, its operator; the graph's */
    double ms;               /* median over the rounds */
} sti_latency_layer;

typedef struct sti_latency {
    /* Time of one run of the network: the median, and the ends of an interval that
     * holds it in 95 of 100 cases if rounds are alike. */
    double ms, low_ms, high_ms;
    sti_latency_layer *layers; /* [layer_count], in the order they run */
    int layer_count;
} sti_latency;

/* Networks in use, of one lane each and with their weights, run one after another,
 * `rounds` times each (5 to 10000) after one to warm up; then once more in as many
 * rounds, operator by operator. Inputs are noise. *ratio_out: the median over the
 * rounds of the last one's time over the first one's. latency_out [count], to be freed
 * by sti_latency_fini also after a failure. STINT_E_MEMORY; STINT_E_INTERRUPTED and
 * STINT_E_TERMINATED after stint_stop(). */
stint_status sti_latency_measure(sti_infer *const *networks, int count, int rounds,
                                 sti_latency *latency_out, double *ratio_out);
void sti_latency_fini(sti_latency *latency); /* a zeroed one is fine */

/* What was kept of such a network; without layers. */
bool sti_latency_kept(const sti_network *network, int threads,
                      sti_latency *latency_out);
/* Keep a measurement. A folder that cannot be written is no error: it is logged. */
void sti_latency_keep(const sti_network *network, int threads,
                      const sti_latency *latency);

#endif
