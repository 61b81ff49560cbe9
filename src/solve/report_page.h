/* The page of a solve, drawn from what was gathered: what the matrix looks like, how
 * wide its levels are, who did what when, and how the residual fell. */
#ifndef STI_SOLVE_REPORT_PAGE_H
#define STI_SOLVE_REPORT_PAGE_H

#include "page/busy_lanes.h"
#include "page/pattern.h"
#include "page/series.h"
#include "solve/system.h"

/* Count every entry of the matrix, row and column at their positions, [n]; NULL: as
 * they are. */
typedef stint_status sti_report_count_fn(const void *user, const int32_t *position,
                                         sti_pattern *picture);

typedef struct sti_report_page {
    const char *name; /* of the matrix */
    int64_t n, entries;
    const sti_system_info *info;
    sti_report_count_fn *count;
    const void *count_user;
    const int32_t *order; /* [n] old numbers of new rows; NULL: levels' is shown */
    const int32_t *level; /* [n] of the triangle that is shown */
    int64_t levels;
    const sti_lanes_span *span; /* [spans] tasks, lanes by rank; NULL: none */
    int64_t spans;
    int ranks, threads; /* threads: lanes of a rank */
    const sti_residual *residual;
    const sti_series *history; /* log10 of the residual by iteration; or empty */
    int64_t iterations;
    double solve_s;
} sti_report_page;

/* What `count` meets; STINT_E_IO; STINT_E_MEMORY. The old file stays until all is
 * written. */
stint_status sti_report_page_write(const sti_report_page *page, const char *path);

#endif
