/* Latency tables: how long a batch of b takes on a partition of k units, for each
 * model. Measured of this machine, or read of one that is not here.
 *
 * The room serve/ answers requests in time. Other rooms use include/stint/serve.h;
 * cli/ also this header, paris.h (how the machine is cut), simulate.h and traffic.h. */
#ifndef STI_SERVE_SERVE_TABLES_H
#define STI_SERVE_SERVE_TABLES_H

#include <stdbool.h>
#include <stddef.h>

#include "base/text.h"
#include "stint/status.h"

enum {
    STI_SERVE_SIZES = 16,   /* of partitions, at most */
    STI_SERVE_BATCH = 256,  /* the largest batch */
    STI_SERVE_MODELS = 16,  /* at most */
    STI_SERVE_UNITS = 1024, /* at most */
    STI_SERVE_NAME = 64
};

/* Half of what may be late is left to chance, half to the largest batches. */
#define STI_SERVE_LATE_OF 0.5

typedef struct sti_serve_model {
    char name[STI_SERVE_NAME];
    double sla_s;  /* a query is to be answered so long after it came */
    double weight; /* of its queries among all; all sum to 1 */
    int batch_most;
    /* [sizes of the tables, batch_most]: seconds of a batch of b at b - 1, the median
     * and the 95th percentile; HUGE_VAL: does not run on that size. */
    double *p50, *p95;
    double *share; /* [batch_most]: of the queries that have b images; sums to 1 */
} sti_serve_model;

typedef struct sti_serve_tables {
    int units; /* that the machine is cut into */
    int cpus;  /* of which those are shares: a partition is a share of one CPU, or whole
                  CPUs (serve_place.c); 0: any partitions that sum up fit */
    bool mig7; /* devices of seven units, cut as an A100 can be */
    int sizes; /* rising */
    int size[STI_SERVE_SIZES]; /* units of a partition */
    double late; /* share of the queries that a cut may leave late; 0 of those read */
    int models;
    sti_serve_model model[STI_SERVE_MODELS];
    int holes; /* times that were interpolated within the range of what was given */
} sti_serve_tables;

/* From JSON: {"format": "stint-serve-tables", "units", "legal": "any" or "mig7",
 * "cpus", "models": [{"name", "sla_s", "sizes", "batches", "p50_s", "p95_s",
 * "share"}]}: a row of times a size, an entry a batch, null where nothing was measured.
 * Batches between those given are interpolated. `path` names it in messages.
 * STINT_E_INPUT: what was seen and wanted; nothing is left to be freed then. */
stint_status sti_serve_tables_parse(const char *text, size_t bytes, const char *path,
                                    sti_serve_tables *tables_out);
stint_status sti_serve_tables_read(const char *path, sti_serve_tables *tables_out);
void sti_serve_tables_write(const sti_serve_tables *tables, sti_text *out);
void sti_serve_tables_fini(sti_serve_tables *tables); /* a zeroed one is fine */

/* Room for a model's times, all HUGE_VAL, and shares, all 0. */
stint_status sti_serve_model_init(sti_serve_model *model, int sizes, int batch_most);

/* Times of a row [batch_most], b from 1 on. */
static inline const double *sti_serve_p50(const sti_serve_model *m, int size)
{
    return m->p50 + size * m->batch_most;
}
static inline const double *sti_serve_p95(const sti_serve_model *m, int size)
{
    return m->p95 + size * m->batch_most;
}

/* Fill what a row between given batches lacks (0: not given), and what is below the
 * first; returns how many inner ones had to be made up. */
int sti_serve_fill_row(double *row, int batch_most);

/* The largest batch that is to be in time: larger ones are no more than `late` of all.
 */
int sti_serve_largest_in_time(const sti_serve_tables *tables, const sti_serve_model *m);

/* The number of a model of a name; -1: none. */
int sti_serve_find_model(const sti_serve_tables *tables, const char *name);

#endif
