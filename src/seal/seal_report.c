#include "seal/seal_report.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/units.h"
#include "page/chart.h"
#include "page/table.h"

/* ---- times ---- */

stint_status sti_level_times_init(const sti_circuit *circuit, sti_level_times *out)
{
    sti_circuit_shape shape;
    *out = (sti_level_times){NULL, NULL, NULL};
    out->level = sti_alloc_array(circuit->cells, sizeof *out->level, "seal.report");
    stint_status st =
        out->level ? sti_circuit_measure(circuit, out->level, &shape) : STINT_E_MEMORY;
    if (st == STINT_OK) {
        out->seconds =
            sti_alloc_array(shape.depth + 1, sizeof *out->seconds, "seal.report");
        out->busy = sti_alloc_array(shape.depth + 1, sizeof *out->busy, "seal.report");
        st = out->seconds && out->busy ? STINT_OK : STINT_E_MEMORY;
    }
    if (st != STINT_OK)
        sti_level_times_fini(out);
    return st;
}

void sti_level_times_add(sti_level_times *times, const int32_t *cell, int64_t cells,
                         double seconds, double worked, int threads)
{
    for (int64_t i = 0; i < cells; i++) {
        const int32_t level = times->level[cell[i]];
        times->seconds[level] += seconds / (double)cells;
        times->busy[level] += worked / (double)cells / threads;
    }
}

void sti_level_times_fini(sti_level_times *times)
{
    sti_free(times->level);
    sti_free(times->seconds);
    sti_free(times->busy);
    *times = (sti_level_times){NULL, NULL, NULL};
}

/* ---- figures ---- */

static void add_figures(const sti_seal_report *r, const sti_circuit_shape *shape,
                        sti_text *out)
{
    char words[64];
    sti_page_figures_begin(out);
    sti_page_figure(out, sti_count_text(r->circuit->cells), "bootstraps");
    sti_page_figure(out, sti_count_text(r->circuit->gates),
                    "gates of two inputs that they do the work of");
    sti_page_figure(out, sti_count_text(shape->depth), "levels");
    sti_page_figure(out, sti_count_text(shape->widest), "in the widest level");
    if (r->run) {
        sti_page_figure(out, sti_time_text(r->run->seconds), "wall time");
        snprintf(words, sizeof words, "%.0f",
                 r->run->seconds > 0 ? (double)r->run->bootstraps / r->run->seconds
                                     : 0);
        sti_page_figure(out, words, "bootstraps a second");
        snprintf(words, sizeof words, "%.0f %%", 100 * r->run->busy);
        sti_page_figure(out, words, "of their time threads had work");
        sti_page_figure(out, sti_bytes_text(r->run->peak_rss_bytes), "peak memory");
    }
    sti_page_figures_end(out);
}

/* ---- levels ---- */

enum { WIDTH, SECONDS, BUSY };

static void add_chart(const sti_series *series, int value, double scale,
                      const char *title, const char *unit, sti_page_colour colour,
                      sti_text *out)
{
    const sti_chart_line line = {.series = series,
                                 .value = value,
                                 .x_scale = 1,
                                 .y_scale = scale,
                                 .colour = colour,
                                 .label = "",
                                 .mark = STI_CHART_CURVE};
    sti_chart_add(out, &(sti_chart){.title = title,
                                    .x_label = "level",
                                    .unit = unit,
                                    .line = &line,
                                    .lines = 1,
                                    .from_zero = true,
                                    .y_max = STI_SERIES_NONE});
}

static void fill_series(const sti_seal_report *r, const int64_t *width, int64_t depth,
                        sti_series *series)
{
    for (int64_t l = 1; l <= depth; l++) {
        sti_series_point p = {.x = (double)l};
        const double seconds = r->times ? r->times->seconds[l] : 0;
        p.value[WIDTH] = (double)width[l];
        p.value[SECONDS] = r->times ? seconds : STI_SERIES_NONE;
        p.value[BUSY] = seconds > 0 ? r->times->busy[l] / seconds : STI_SERIES_NONE;
        sti_series_add(series, &p);
    }
}

static double longest(const sti_level_times *times, int64_t depth)
{
    double most = 0;
    for (int64_t l = 1; l <= depth; l++)
        most = times->seconds[l] > most ? times->seconds[l] : most;
    return most;
}

static stint_status add_levels(const sti_seal_report *r, sti_text *out)
{
    sti_circuit_shape shape;
    sti_series series = {0};
    int32_t *level = sti_alloc_array(r->circuit->cells, sizeof *level, "seal.report");
    int64_t *width = NULL;
    stint_status st =
        level ? sti_circuit_measure(r->circuit, level, &shape) : STINT_E_MEMORY;
    if (st == STINT_OK)
        width = sti_alloc_array(shape.depth + 1, sizeof *width, "seal.report");
    if (!width || !sti_series_init(&series)) {
        st = STINT_E_MEMORY;
        goto out;
    }
    for (int64_t i = 0; i < r->circuit->cells; i++)
        width[level[i]]++;
    add_figures(r, &shape, out);
    fill_series(r, width, shape.depth, &series);
    sti_page_section(out, "Levels");
    sti_page_note(out, "A gate's level is the longest way to it from the inputs: those "
                       "of a level can run side by side.");
    sti_page_columns_begin(out);
    add_chart(&series, WIDTH, 1, "Gates of a level", "", STI_PAGE_FIRST, out);
    if (r->times) {
        const bool long_ones = longest(r->times, shape.depth) >= 0.5;
        add_chart(&series, SECONDS, long_ones ? 1 : 1e3, "Time of a level",
                  long_ones ? " s" : " ms", STI_PAGE_SECOND, out);
        add_chart(&series, BUSY, 100, "Threads that had work", " %", STI_PAGE_PLAIN,
                  out);
    }
    sti_page_columns_end(out);
    sti_page_section_end(out);
out:
    sti_series_fini(&series);
    sti_free(level);
    sti_free(width);
    return st;
}

/* ---- source ---- */

enum { LINES_SHOWN = 40, LINE_LETTERS = 100 };

typedef struct line_cost {
    int32_t line;
    int64_t bootstraps;
} line_cost;

static int by_cost(const void *a, const void *b)
{
    const line_cost *x = a, *y = b;
    if (x->bootstraps != y->bootstraps)
        return x->bootstraps < y->bootstraps ? 1 : -1;
    return (x->line > y->line) - (x->line < y->line);
}

/* Text of a line, without what it begins with; cut where it is long. */
static void copy_line(const char *source, int32_t line, char out[LINE_LETTERS + 1])
{
    const char *at = source;
    *out = '\0';
    for (int32_t i = 1; at && i < line; i++)
        at = strchr(at, '\n') ? strchr(at, '\n') + 1 : NULL;
    if (!at)
        return;
    at += strspn(at, " \t");
    const size_t length = strcspn(at, "\r\n");
    snprintf(out, LINE_LETTERS + 1, "%.*s",
             (int)(length < LINE_LETTERS ? length : LINE_LETTERS), at);
}

static void add_line(const sti_seal_report *r, const line_cost *cost, sti_text *out)
{
    char words[64], text[LINE_LETTERS + 1] = "";
    if (r->source)
        copy_line(r->source, cost->line, text);
    snprintf(words, sizeof words, "line %" PRId32, cost->line);
    sti_table_row(out);
    sti_table_words(out, words, text);
    sti_table_number(out, "%" PRId64, cost->bootstraps);
    sti_table_number(out, "%.1f %%",
                     100 * (double)cost->bootstraps / (double)r->circuit->cells);
    sti_table_row_end(out);
}

static stint_status add_source(const sti_seal_report *r, sti_text *out)
{
    static const sti_table_column columns[] = {{.name = "source"},
                                               {.name = "bootstraps", .number = true},
                                               {.name = "of all", .number = true}};
    const sti_circuit *c = r->circuit;
    int32_t last = 0;
    int64_t lines = 0, rest = c->cells;
    for (int64_t i = 0; i < c->cells; i++)
        last = c->cell[i].line > last ? c->cell[i].line : last;
    if (last == 0)
        return STINT_OK; /* of another tool: it has no lines */
    line_cost *cost = sti_alloc_array((int64_t)last + 1, sizeof *cost, "seal.report");
    if (!cost)
        return STINT_E_MEMORY;
    for (int32_t l = 0; l <= last; l++)
        cost[l].line = l;
    for (int64_t i = 0; i < c->cells; i++)
        cost[c->cell[i].line].bootstraps++;
    qsort(cost, (size_t)last + 1, sizeof *cost, by_cost);
    sti_page_section(out, "Source");
    sti_page_card_begin(out);
    sti_table_begin(out, columns, 3);
    for (; lines <= last && lines < LINES_SHOWN && cost[lines].bootstraps > 0;
         lines++) {
        add_line(r, &cost[lines], out);
        rest -= cost[lines].bootstraps;
    }
    sti_table_end(out);
    sti_page_card_end(out);
    if (rest > 0)
        sti_page_note(out, "Lines with fewer have %" PRId64 " together.", rest);
    sti_page_section_end(out);
    sti_free(cost);
    return STINT_OK;
}

stint_status sti_seal_report_write(const sti_seal_report *report, const char *path)
{
    sti_page_file file;
    stint_status st = sti_page_file_open(&file, path);
    if (st == STINT_OK) {
        sti_page_begin(&file.text, NULL, report->name);
        sti_page_lead(&file.text, report->run ? "A run on encrypted bits."
                                              : "A circuit for encrypted bits.");
        st = add_levels(report, &file.text);
        if (st == STINT_OK)
            st = add_source(report, &file.text);
        sti_page_end(&file.text, NULL);
    }
    return sti_page_file_close(&file, st);
}
