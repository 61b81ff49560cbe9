/* A page of a solve: what the matrix looks like, how wide its levels are, who did what
 * when, and how the residual fell. */
#ifndef STI_SOLVE_SOLVE_REPORT_H
#define STI_SOLVE_SOLVE_REPORT_H

#include "page/series.h"
#include "solve/system.h"

typedef struct sti_solve_report {
    const char *name; /* of the matrix */
    const sti_csr *a;
    bool upper;         /* the triangle whose levels are shown; else the lower one */
    sti_system *system; /* watched for one more triangular solve */
    const sti_residual *residual;
    const sti_series *history; /* log10 of the residual by iteration; or empty */
    int64_t iterations;
    double solve_s;
} sti_solve_report;

/* Bytes taken beside the page's text. */
size_t sti_solve_report_bytes(int64_t n);
/* STINT_E_IO; STINT_E_MEMORY. The old file stays until all is written. */
stint_status sti_solve_report_write(const sti_solve_report *report, const char *path);

#endif
