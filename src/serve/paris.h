/* How a machine is cut into partitions for the traffic that is expected.
 *
 * After PARIS ("PARIS and ELSA: An Elastic Scheduling Algorithm for Reconfigurable
 * Multi-GPU Inference Servers", Kim, Choi and Rhu, DAC'22; here from its abstract and
 * from what others write of it): for each size of partition the knee of its throughput,
 * the batches up to it as its own, and so many partitions as their share of the traffic
 * takes. A linear programme bounds the rate that any scheduler can keep on a cut, and
 * sti_serve_climb goes on from PARIS's cut to neighbours with a higher bound. */
#ifndef STI_SERVE_PARIS_H
#define STI_SERVE_PARIS_H

#include "serve/serve_tables.h"

enum { STI_MIG7_CUTS = 12 };

typedef struct sti_serve_cut {
    int count[STI_SERVE_SIZES]; /* partitions of each of the tables' sizes */
    int device[STI_MIG7_CUTS];  /* with mig7: devices that have each full cut */
} sti_serve_cut;

typedef struct sti_paris_model {
    int knee[STI_SERVE_SIZES]; /* largest batch of a size's segment, rising; 0: the size
                                  does not run the model */
    /* Seconds of a partition of that size that a query takes in the mean. */
    double demand_s[STI_SERVE_SIZES];
} sti_paris_model;

typedef struct sti_paris {
    sti_paris_model model[STI_SERVE_MODELS];
    double wanted[STI_SERVE_SIZES]; /* partitions, before they are made whole numbers */
} sti_paris;

/* A size's knee is the least batch that has this share of its highest throughput. */
#define STI_PARIS_KNEE 0.8

/* PARIS's cut. STINT_E_BUDGET: a batch that no size answers in time. */
stint_status sti_paris_cut(const sti_serve_tables *tables, double knee,
                           sti_paris *paris_out, sti_serve_cut *cut_out);

/* The most queries a second that the cut can answer, each within its SLA by the median
 * times; 0: some batch never. STINT_E_UNSUPPORTED: no solver of linear programmes. */
stint_status sti_serve_bound(const sti_serve_tables *tables, const sti_serve_cut *cut,
                             double *per_s_out);

/* From a cut to the best of its neighbours by the bound, as long as there is one. */
stint_status sti_serve_climb(const sti_serve_tables *tables, sti_serve_cut *cut,
                             double *per_s_out);

/* Partitions of one size alone, as many as there is room for. False: the machine has no
 * such cut. */
bool sti_serve_cut_equal(const sti_serve_tables *tables, int size, sti_serve_cut *cut);

/* "2" (one of two units), "1,1", "4x1,5x2". STINT_E_USAGE: what is wrong with it. */
stint_status sti_serve_cut_parse(const sti_serve_tables *tables, const char *text,
                                 sti_serve_cut *cut_out);
/* The same way, appended. */
void sti_serve_cut_text(const sti_serve_tables *tables, const sti_serve_cut *cut,
                        sti_text *out);
int sti_serve_cut_partitions(const sti_serve_tables *tables, const sti_serve_cut *cut);

/* Whole CPUs of a partition of so many units; 0: it is a share of one (the units' part
 * of it), or the tables know of no CPUs. */
int sti_serve_size_cpus(const sti_serve_tables *tables, int units);
/* Do the partitions fit side by side? first_cpu_out [partitions, by rising size], if
 * not NULL, gets the first CPU of each, or, where the tables know of no CPUs, unit. */
bool sti_serve_cut_place(const sti_serve_tables *tables, const sti_serve_cut *cut,
                         int *first_cpu_out);

#endif
