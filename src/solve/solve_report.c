#include "solve/solve_report.h"

#include "base/memory.h"
#include "solve/report_page.h"

size_t sti_solve_report_bytes(int64_t n)
{
    return (size_t)n * (sizeof(sti_trsv_span) + sizeof(sti_lanes_span) + 24) +
           2 * sizeof(sti_pattern) + ((size_t)4 << 20);
}

static stint_status count_entries(const void *user, const int32_t *position,
                                  sti_pattern *picture)
{
    const sti_csr *a = user;
    for (int64_t i = 0; i < a->rows; i++)
        for (int64_t e = a->start[i]; e < a->start[i + 1]; e++) {
            const int32_t j = a->column[e];
            sti_pattern_count(picture, position ? position[i] : i,
                              position ? position[j] : j);
        }
    return STINT_OK;
}

/* One solve watched: *bars_out NULL where no triangle is solved, or memory is short. */
static void watch(const sti_solve_report *r, sti_lanes_span **bars_out)
{
    const int64_t tasks = sti_system_info_of(r->system)->trsv.tasks;
    sti_trsv_span *span = sti_alloc_array(tasks, sizeof *span, "solve.report");
    sti_lanes_span *bars = sti_alloc_array(tasks, sizeof *bars, "solve.report");
    if (span && bars && sti_system_watch(r->system, span)) {
        for (int64_t t = 0; t < tasks; t++)
            bars[t] = (sti_lanes_span){span[t].worker, span[t].from_s, span[t].to_s,
                                       span[t].wait_s};
        *bars_out = bars;
        bars = NULL;
    }
    sti_free(span);
    sti_free(bars);
}

stint_status sti_solve_report_write(const sti_solve_report *report, const char *path)
{
    const sti_csr *a = report->a;
    const sti_system_info *info = sti_system_info_of(report->system);
    int32_t *level = sti_alloc_array(a->rows, sizeof *level, "solve.report");
    sti_lanes_span *bars = NULL;
    int64_t levels = 0;
    stint_status st = level ? STINT_OK : STINT_E_MEMORY;
    if (st == STINT_OK)
        st = sti_trsv_row_levels(a, report->upper, level, &levels);
    if (st == STINT_OK && info->trsv.threads > 0)
        watch(report, &bars);
    if (st == STINT_OK)
        st = sti_report_page_write(
            &(sti_report_page){.name = report->name,
                               .n = a->rows,
                               .entries = a->start[a->rows],
                               .info = info,
                               .count = count_entries,
                               .count_user = a,
                               .order = sti_system_order(report->system),
                               .level = level,
                               .levels = levels,
                               .span = bars,
                               .spans = info->trsv.tasks,
                               .ranks = 1,
                               .threads = info->trsv.threads,
                               .residual = report->residual,
                               .history = report->history,
                               .iterations = report->iterations,
                               .solve_s = report->solve_s},
            path);
    sti_free(level);
    sti_free(bars);
    return st;
}
