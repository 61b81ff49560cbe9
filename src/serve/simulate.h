/* The server without a machine: arrivals, the scheduler that serves for real, and
 * service times out of the tables, by discrete events. */
#ifndef STI_SERVE_SIMULATE_H
#define STI_SERVE_SIMULATE_H

#include "serve/answer_times.h"
#include "serve/elsa.h"
#include "serve/traffic.h"

typedef struct sti_simulate_desc {
    sti_scheduler_desc scheduler;
    const sti_traffic *traffic; /* of one model */
    int model;
    bool exponential;    /* service times drawn with the tables' as mean */
    int64_t queries;     /* 0: by time */
    double duration_s;   /* of arrivals; 0: by queries */
    int64_t most_missed; /* end where more queries were not served in time; 0: go on */
    sti_answer_times *times; /* gets every answer; NULL: none is kept */
} sti_simulate_desc;

typedef struct sti_serve_partition {
    int units;
    int64_t batches, images;
    double busy_s;
    double mean_batch; /* queries' batches, in the mean; NaN: none */
} sti_serve_partition;

/* What came of all queries that were sent: served + rejected + late + failed. */
typedef struct sti_serve_result {
    int64_t sent, served, rejected, late, failed;
    int64_t in_time;                /* of those served */
    double p50_s, p95_s, p99_s;     /* latencies of those served; NaN: none */
    double wait_mean_s;             /* from arrival to begin */
    double violations;              /* share of all sent that was not served in time */
    double sla_s;                   /* by which that was judged; 0: by none */
    double seconds;                 /* from the first arrival to the last answer */
    sti_serve_partition *partition; /* [partitions] */
    int partitions;
} sti_serve_result;

/* The latencies [count] are sorted. */
void sti_serve_quantiles(double *latency_s, int64_t count, sti_serve_result *result);

stint_status sti_simulate(const sti_simulate_desc *desc, sti_serve_result *result_out);
void sti_serve_result_fini(sti_serve_result *result); /* a zeroed one is fine */

/* The highest Poisson rate at which at least `quantile` of all queries are answered in
 * time, to 1 %, below most_per_s, and what happens at it. 0: none. */
stint_status sti_simulate_rate(const sti_simulate_desc *desc, double quantile,
                               double most_per_s, double *per_s_out,
                               sti_serve_result *result_out);

#endif
