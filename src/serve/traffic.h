/* Queries to come: when, and of how many images. Arrivals never wait for answers (an
 * open loop), so that a stall shows in the latencies of all that it held up. */
#ifndef STI_SERVE_TRAFFIC_H
#define STI_SERVE_TRAFFIC_H

#include <stdint.h>

#include "serve/serve_tables.h"

typedef struct sti_traffic {
    double rate_per_s; /* of a Poisson process; 0: the trace */
    double *time_s;    /* of a trace [count] */
    int *batch;        /* likewise */
    int64_t count;
    /* Cumulated shares of batches from 1 to batch_most, the last 1: what the batch of a
     * query is drawn from where no trace says it. */
    double share[STI_SERVE_BATCH];
    int batch_most;
    uint64_t seed;
} sti_traffic;

/* "poisson:RATE" or "trace:FILE.csv" (lines of seconds and images, or seconds alone; a
 * first line of words is a heading). STINT_E_USAGE, STINT_E_INPUT: what is wrong. */
stint_status sti_traffic_arrivals(const char *text, sti_traffic *traffic);
/* The lines of such a file. */
stint_status sti_traffic_parse(const char *text, const char *path,
                               sti_traffic *traffic);
/* "4", "lognormal:MU,SIGMA" (rounded, from 1 to most) or "dist:1=0.4,2=0.6". */
stint_status sti_traffic_batches(const char *text, int most, sti_traffic *traffic);
void sti_traffic_fini(sti_traffic *traffic); /* a zeroed one is fine */

/* Shares of batches [batch_most] as the traffic has them: drawn, or the trace's. */
void sti_traffic_shares(const sti_traffic *traffic, int batch_most, double *share_out);

/* Query number i, after one that came at before_s (0 for the first). False: the trace
 * has ended. */
bool sti_traffic_next(const sti_traffic *traffic, int64_t i, double before_s,
                      double *at_s_out, int *batch_out);

#endif
