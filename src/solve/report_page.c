#include "solve/report_page.h"

#include <inttypes.h>
#include <stdio.h>

#include "base/memory.h"
#include "base/units.h"
#include "page/chart.h"

/* ---- figures ---- */

static void add_figures(const sti_report_page *r, sti_text *out)
{
    const sti_system_info *i = r->info;
    char words[32];
    sti_page_figures_begin(out);
    sti_page_figure(out, sti_count_text(r->n), "rows");
    sti_page_figure(out, sti_count_text(r->entries), "entries");
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
static stint_status add_picture(const sti_report_page *r, const int32_t *position,
                                const char *title, sti_pattern *picture, sti_text *out)
{
    *picture = (sti_pattern){.n = r->n};
    const stint_status st = r->count(r->count_user, position, picture);
    if (st == STINT_OK)
        sti_pattern_add(out, picture, title);
    return st;
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

static void add_history(const sti_report_page *r, sti_text *out)
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
static stint_status add_levels(const sti_report_page *r, const int64_t *width,
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

static stint_status add_patterns(const sti_report_page *r, int64_t *width,
                                 int32_t *position, sti_pattern *picture, sti_text *out)
{
    const int64_t n = r->n;
    sti_page_section(out, "Pattern");
    sti_page_columns_begin(out);
    stint_status st = add_picture(r, NULL, "As the file has it", picture, out);
    for (int64_t i = 0; i < n; i++)
        width[r->level[i] + 1]++;
    for (int64_t l = 0; l < r->levels; l++)
        width[l + 1] += width[l];
    if (r->order)
        place_by_order(n, r->order, position);
    else
        place_by_level(n, r->level, width, position);
    if (st == STINT_OK)
        st = add_picture(r, position,
                         r->order ? "In reverse Cuthill-McKee order"
                                  : "In the order of levels",
                         picture, out);
    sti_page_columns_end(out);
    sti_page_section_end(out);
    return st;
}

/* The pattern before and after its order, and the levels of the triangle. */
static stint_status add_matrix(const sti_report_page *r, sti_text *out)
{
    int32_t *position = sti_alloc_array(r->n, sizeof *position, "solve.report");
    int64_t *width = sti_alloc_array(r->n + 1, sizeof *width, "solve.report");
    sti_pattern *picture = sti_alloc(sizeof *picture, "solve.report");
    stint_status st = position && width && picture ? STINT_OK : STINT_E_MEMORY;
    if (st == STINT_OK)
        st = add_patterns(r, width, position, picture, out);
    for (int64_t l = 0; st == STINT_OK && l <= r->levels; l++)
        width[l] = 0;
    for (int64_t i = 0; st == STINT_OK && i < r->n; i++)
        width[r->level[i]]++;
    if (st == STINT_OK)
        st = add_levels(r, width, r->levels, out);
    sti_free(position);
    sti_free(width);
    sti_free(picture);
    return st;
}

/* ---- tasks ---- */

static double sum_waits(const sti_report_page *r)
{
    double sum = 0;
    for (int64_t t = 0; t < r->spans; t++)
        sum += r->span[t].wait_s;
    return sum;
}

static void add_tasks(const sti_report_page *r, sti_text *out)
{
    const sti_trsv_info *info = &r->info->trsv;
    if (!r->span)
        return; /* no triangle is solved */
    sti_page_section(out, "Tasks");
    if (r->ranks > 1)
        sti_page_note(
            out,
            "One triangular solve, watched: %" PRId64 " task%s on %d ranks of "
            "%d thread%s, which begin together; times are by each rank's own "
            "clock, of all waits together %s. Waits are drawn at the beginning "
            "of their task.",
            r->spans, sti_s(r->spans), r->ranks, r->threads, sti_s(r->threads),
            sti_time_text(sum_waits(r)));
    else
        sti_page_note(
            out,
            "One triangular solve, watched: %" PRId64 " task%s by strategy %s "
            "on %d thread%s; of all waits together %s. Waits are drawn at the "
            "beginning of their task.",
            r->spans, sti_s(r->spans), sti_trsv_strategy_names[info->strategy],
            r->threads, sti_s(r->threads), sti_time_text(sum_waits(r)));
    sti_lanes_add(out, &(sti_lanes){.title = "Tasks over time",
                                    .name = r->ranks > 1 ? "rank" : "thread",
                                    .span = r->span,
                                    .spans = r->spans,
                                    .group = r->ranks > 1 ? r->threads : 0,
                                    .lanes = r->ranks * r->threads});
    sti_page_section_end(out);
}

/* ---- the page ---- */

stint_status sti_report_page_write(const sti_report_page *page, const char *path)
{
    const sti_system_info *info = page->info;
    sti_page_file file;
    stint_status st = sti_page_file_open(&file, path);
    if (st == STINT_OK) {
        sti_text *out = &file.text;
        sti_page_begin(out, NULL, page->name);
        sti_text lead = {0};
        sti_text_printf(
            &lead, "A sparse system solved by %s%s%s", sti_method_names[info->method],
            info->precond != STI_PRECOND_NONE ? " with " : "",
            info->precond != STI_PRECOND_NONE ? sti_precond_names[info->precond] : "");
        sti_page_lead(out, lead.failed ? "" : lead.data);
        sti_text_fini(&lead);
        add_figures(page, out);
        if (page->n > 0)
            st = add_matrix(page, out);
        add_tasks(page, out);
        sti_page_end(out, NULL);
    }
    return sti_page_file_close(&file, st);
}
