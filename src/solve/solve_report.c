#include "solve/solve_report.h"

#include <inttypes.h>
#include <stdio.h>

#include "base/memory.h"
#include "base/units.h"
#include "page/busy_lanes.h"
#include "page/chart.h"
#include "page/pattern.h"

size_t sti_solve_report_bytes(int64_t n)
{
    return (size_t)n * (sizeof(sti_trsv_span) + sizeof(sti_lanes_span) + 24) +
           2 * sizeof(sti_pattern) + ((size_t)4 << 20);
}

/* ---- figures ---- */

static void add_figures(const sti_solve_report *r, sti_text *out)
{
    const sti_system_info *i = sti_system_info_of(r->system);
    char words[32];
    sti_page_figures_begin(out);
    sti_page_figure(out, sti_count_text(r->a->rows), "rows");
    sti_page_figure(out, sti_count_text(r->a->start[r->a->rows]), "entries");
    sti_page_figure(out, sti_matrix_kind_names[i->kind], "kind");
    if (i->method != STI_METHOD_TRSV)
        sti_page_figure(out, sti_count_text(r->iterations), "iterations");
    (void)snprintf(words, sizeof words, "%.2e", r->residual->relative);
    sti_page_figure(out, words, "residual, computed anew");
    (void)snprintf(words, sizeof words, "%.2e", r->residual->backward);
    sti_page_figure(out, words, "backward error");
    sti_page_figure(out, sti_time_text(i->analysis_s + i->factor_s),
                    "analysis and factors");
    sti_page_figure(out, sti_time_text(r->solve_s), "a solve");
    sti_page_figures_end(out);
}

/* ---- the pattern ---- */

/* Rows and columns by `position`; NULL: as they are. */
static void add_picture(const sti_csr *a, const int32_t *position, const char *title,
                        sti_pattern *picture, sti_text *out)
{
    *picture = (sti_pattern){.n = a->rows};
    for (int64_t i = 0; i < a->rows; i++)
        for (int64_t e = a->start[i]; e < a->start[i + 1]; e++) {
            const int32_t j = a->column[e];
            sti_pattern_count(picture, position ? position[i] : i,
                              position ? position[j] : j);
        }
    sti_pattern_add(out, picture, title);
}

/* Rows of a level one after the other, in their order. */
static void place_by_level(int64_t n, const int32_t *level, int64_t *first,
                           int32_t *position)
{
    for (int64_t i = 0; i < n; i++)
        position[i] = (int32_t)first[level[i]]++;
}

static void place_by_order(int64_t n, const int32_t *order, int32_t *position)
{
    for (int64_t p = 0; p < n; p++)
        position[order[p]] = (int32_t)p;
}

/* ---- levels ---- */

static void add_history(const sti_solve_report *r, sti_text *out)
{
    const sti_chart_line line = {
        r->history, 0, 1, 1, STI_PAGE_PLAIN, "log10 of the residual", STI_CHART_CURVE};
    if (r->history->count == 0)
        return;
    sti_chart_add(out,
                  &(sti_chart){.title = "Residual, relative to the right-hand side",
                               .x_label = "iteration",
                               .unit = "",
                               .line = &line,
                               .lines = 1,
                               .y_max = STI_SERIES_NONE});
}

/* Beside them how the residual fell, where there are iterations. */
static stint_status add_levels(const sti_solve_report *r, const int64_t *width,
                               int64_t levels, sti_text *out)
{
    sti_series series;
    if (!sti_series_init(&series))
        return STINT_E_MEMORY;
    for (int64_t l = 0; l < levels; l++)
        sti_series_add(&series, &(sti_series_point){.x = (double)(l + 1),
                                                    .value = {(double)width[l]}});
    const sti_chart_line line = {&series, 0, 1, 1, STI_PAGE_FIRST, "", STI_CHART_CURVE};
    sti_page_section(out, r->history->count > 0 ? "Levels and residual" : "Levels");
    sti_page_note(out,
                  "%" PRId64 " levels: a row's level is the longest way to it through "
                  "rows that it reads, so those of one level can be solved side by "
                  "side.",
                  levels);
    sti_page_columns_begin(out);
    sti_chart_add(out, &(sti_chart){.title = "Rows of a level",
                                    .x_label = "level",
                                    .unit = "",
                                    .line = &line,
                                    .lines = 1,
                                    .from_zero = true,
                                    .y_max = STI_SERIES_NONE});
    add_history(r, out);
    sti_page_columns_end(out);
    sti_page_section_end(out);
    sti_series_fini(&series);
    return STINT_OK;
}

/* The pattern before and after its order, and the levels of the triangle. */
static stint_status add_matrix(const sti_solve_report *r, sti_text *out)
{
    const int64_t n = r->a->rows;
    const int32_t *order = sti_system_order(r->system);
    int32_t *level = sti_alloc_array(n, sizeof *level, "solve.report");
    int32_t *position = sti_alloc_array(n, sizeof *position, "solve.report");
    int64_t *width = sti_alloc_array(n + 1, sizeof *width, "solve.report"), levels = 0;
    sti_pattern *picture = sti_alloc(sizeof *picture, "solve.report");
    stint_status st = level && position && width && picture ? STINT_OK : STINT_E_MEMORY;
    if (st == STINT_OK)
        st = sti_trsv_row_levels(r->a, r->upper, level, &levels);
    if (st == STINT_OK) {
        sti_page_section(out, "Pattern");
        sti_page_columns_begin(out);
        add_picture(r->a, NULL, "As the file has it", picture, out);
        for (int64_t i = 0; i < n; i++)
            width[level[i] + 1]++;
        for (int64_t l = 0; l < levels; l++)
            width[l + 1] += width[l];
        if (order)
            place_by_order(n, order, position);
        else
            place_by_level(n, level, width, position);
        add_picture(r->a, position,
                    order ? "In reverse Cuthill-McKee order" : "In the order of levels",
                    picture, out);
        sti_page_columns_end(out);
        sti_page_section_end(out);
        for (int64_t l = 0; l <= levels; l++)
            width[l] = 0;
        for (int64_t i = 0; i < n; i++)
            width[level[i]]++;
        st = add_levels(r, width, levels, out);
    }
    sti_free(level);
    sti_free(position);
    sti_free(width);
    sti_free(picture);
    return st;
}

/* ---- tasks ---- */

static double sum_waits(const sti_trsv_span *span, int64_t tasks)
{
    double sum = 0;
    for (int64_t t = 0; t < tasks; t++)
        sum += span[t].wait_s;
    return sum;
}

static void add_lanes(const sti_trsv_info *info, const sti_trsv_span *span,
                      sti_lanes_span *bars, sti_text *out)
{
    for (int64_t t = 0; t < info->tasks; t++)
        bars[t] = (sti_lanes_span){span[t].worker, span[t].from_s, span[t].to_s,
                                   span[t].wait_s};
    sti_page_section(out, "Tasks");
    sti_page_note(out,
                  "One triangular solve, watched: %" PRId64 " task%s by strategy %s on "
                  "%d thread%s; of all waits together %s. Waits are drawn at the "
                  "beginning of their task.",
                  info->tasks, sti_s(info->tasks),
                  sti_trsv_strategy_names[info->strategy], info->threads,
                  sti_s(info->threads), sti_time_text(sum_waits(span, info->tasks)));
    sti_lanes_add(out, &(sti_lanes){.title = "Tasks over time",
                                    .name = "thread",
                                    .span = bars,
                                    .spans = info->tasks,
                                    .lanes = info->threads});
    sti_page_section_end(out);
}

static stint_status add_tasks(const sti_solve_report *r, sti_text *out)
{
    const sti_trsv_info *info = &sti_system_info_of(r->system)->trsv;
    if (info->threads == 0)
        return STINT_OK; /* no triangle is solved */
    sti_trsv_span *span = sti_alloc_array(info->tasks, sizeof *span, "solve.report");
    sti_lanes_span *bars = sti_alloc_array(info->tasks, sizeof *bars, "solve.report");
    const stint_status st = span && bars ? STINT_OK : STINT_E_MEMORY;
    if (st == STINT_OK && sti_system_watch(r->system, span))
        add_lanes(info, span, bars, out);
    sti_free(span);
    sti_free(bars);
    return st;
}

/* ---- the page ---- */

stint_status sti_solve_report_write(const sti_solve_report *report, const char *path)
{
    const sti_system_info *info = sti_system_info_of(report->system);
    sti_page_file file;
    stint_status st = sti_page_file_open(&file, path);
    if (st == STINT_OK) {
        sti_text *out = &file.text;
        sti_page_begin(out, NULL, report->name);
        sti_text lead = {0};
        sti_text_printf(
            &lead, "A sparse system solved by %s%s%s", sti_method_names[info->method],
            info->precond != STI_PRECOND_NONE ? " with " : "",
            info->precond != STI_PRECOND_NONE ? sti_precond_names[info->precond] : "");
        sti_page_lead(out, lead.failed ? "" : lead.data);
        sti_text_fini(&lead);
        add_figures(report, out);
        if (report->a->rows > 0)
            st = add_matrix(report, out);
        if (st == STINT_OK)
            st = add_tasks(report, out);
        sti_page_end(out, NULL);
    }
    return sti_page_file_close(&file, st);
}
