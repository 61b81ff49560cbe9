/* The page of a solve by ranks (solve/report_page.h): rank 0 draws it from what the
 * ranks send. */
#ifndef STI_SOLVE_RANK_REPORT_H
#define STI_SOLVE_RANK_REPORT_H

#include "page/series.h"
#include "solve/rank_system.h"

typedef struct sti_rank_report {
    const char *name; /* of the matrix */
    sti_comm *comm;
    const sti_entry_source *source; /* as the file lies */
    sti_rank_system *system;        /* watched for one more triangular solve */
    bool upper;                     /* the triangle whose levels are shown */
    int threads;                    /* of this rank */
    const sti_residual *residual;   /* on rank 0, as what follows */
    const sti_series *history;
    int64_t iterations;
    double solve_s;
} sti_rank_report;

/* Bytes taken of this rank at most: the matrix is looked at again. */
size_t sti_rank_report_bytes(int64_t n, int64_t entries, int ranks);
/* Collective; rank 0 writes the file. STINT_E_IO; STINT_E_MEMORY; STINT_E_PEER; what a
 * pass meets. */
stint_status sti_rank_report_write(const sti_rank_report *report, const char *path);

#endif
