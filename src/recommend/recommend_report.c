/* report.html of a training of clicks, from its log. */
#define _GNU_SOURCE /* getline */
#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/fail.h"
#include "base/file.h"
#include "base/units.h"
#include "page/chart.h"
#include "page/table.h"
#include "stint/embed.h"

/* Values of a point of the curves. */
enum { LOSS, HITS, RATE };

typedef struct embed_report {
    sti_arena *arena;
    const char *folder;
    json_t *begin, *step, *end; /* the last of each */
    sti_series curve;           /* over steps */
} embed_report;

/* ---- reading ---- */

static double number(const json_t *event, const char *key)
{
    const json_t *value = json_object_get(event, key);
    return json_is_number(value) ? json_number_value(value) : (double)NAN;
}

static void keep(json_t **place, json_t *event)
{
    json_decref(*place);
    *place = json_incref(event);
}

static void take_step(embed_report *r, json_t *event)
{
    const double touched = number(event, "rows_touched");
    const double missed = number(event, "rows_missed");
    sti_series_point point = {
        .x = number(event, "step"),
        .value = {[LOSS] = number(event, "loss"),
                  [HITS] = touched > 0 ? 100 * (1 - missed / touched) : STI_SERIES_NONE,
                  [RATE] = number(event, "examples_per_s")}};
    for (int i = RATE + 1; i < STI_SERIES_VALUES; i++)
        point.value[i] = STI_SERIES_NONE;
    if (isfinite(point.x))
        sti_series_add(&r->curve, &point);
    keep(&r->step, event);
}

static void take_line(embed_report *r, const char *line, size_t length)
{
    json_t *event = json_loadb(line, length, 0, NULL);
    const char *name = json_string_value(json_object_get(event, "event"));
    if (name && strcmp(name, "begin") == 0)
        keep(&r->begin, event);
    else if (name && strcmp(name, "step") == 0)
        take_step(r, event);
    else if (name && strcmp(name, "end") == 0)
        keep(&r->end, event);
    json_decref(event);
}

static stint_status read_log(embed_report *r)
{
    const char *path = sti_path_join(r->arena, r->folder, "log.jsonl");
    FILE *file = NULL;
    char *line = NULL;
    size_t capacity = 0;
    ssize_t length;
    stint_status st = path ? sti_file_open_stream(path, &file) : STINT_E_MEMORY;
    if (st != STINT_OK)
        return st;
    while ((length = getline(&line, &capacity, file)) > 0)
        if (line[length - 1] == '\n')
            take_line(r, line, (size_t)length);
    free(line);
    fclose(file);
    if (!r->begin || !isfinite(number(r->begin, "cache_rows")))
        return sti_fail(STINT_E_INPUT, "%s: is no log of a training of clicks", path);
    return STINT_OK;
}

/* ---- writing ---- */

static void figure(sti_text *out, double value, int digits, const char *meaning)
{
    char words[64];
    if (!isfinite(value))
        return;
    snprintf(words, sizeof words, "%.*f", digits, value);
    sti_page_figure(out, words, meaning);
}

static void add_head(const embed_report *r, sti_text *out)
{
    sti_text lead = {0};
    const json_t *b = r->begin;
    sti_page_begin(out, NULL, "dlrm on clicks");
    sti_text_printf(&lead, "%s samples, ",
                    sti_count_text((int64_t)number(b, "samples")));
    sti_text_printf(&lead, "%.0f numbers, %.0f fields, ", number(b, "numbers"),
                    number(b, "fields"));
    sti_text_printf(&lead, "%s rows of %.0f, ",
                    sti_count_text((int64_t)number(b, "rows")), number(b, "width"));
    sti_text_printf(&lead, "%s in memory",
                    sti_count_text((int64_t)number(b, "cache_rows")));
    sti_page_lead(out, lead.data ? lead.data : "");
    sti_text_fini(&lead);
}

static void add_figures(const embed_report *r, sti_text *out)
{
    const json_t *e = r->end;
    sti_page_figures_begin(out);
    figure(out, number(e, "test_auc"), 4, "area under the ROC curve, test part");
    figure(out, number(e, "test_log_loss"), 4, "log loss, test part");
    figure(out, number(e, "test_calibration"), 3,
           "mean prediction over share of clicks");
    figure(out, number(e, "train_loss"), 4, "loss of the last 100 steps");
    figure(out, number(e, "examples_per_s"), 0, "samples a second");
    sti_page_figures_end(out);
}

static void add_chart(sti_text *out, const embed_report *r, int value,
                      const char *title, const char *label, const char *unit)
{
    const sti_chart_line line = {&r->curve, value,          1, 1, STI_PAGE_PLAIN,
                                 label,     STI_CHART_CURVE};
    sti_page_card_begin(out);
    sti_chart_add(out, &(sti_chart){.title = title,
                                    .x_label = "step",
                                    .unit = unit,
                                    .line = &line,
                                    .lines = 1,
                                    .y_max = STI_SERIES_NONE});
    sti_page_card_end(out);
}

static void add_curves(const embed_report *r, sti_text *out)
{
    sti_page_section(out, "How it learnt");
    sti_page_columns_begin(out);
    add_chart(out, r, LOSS, "Loss", "loss of a batch", "");
    add_chart(out, r, HITS, "Rows that were in memory", "share so far", " %");
    add_chart(out, r, RATE, "Samples a second", "samples a second", "");
    sti_page_columns_end(out);
    sti_page_section_end(out);
}

static void add_row(sti_text *out, const char *name, double planned, double measured,
                    bool bytes)
{
    sti_table_row(out);
    sti_table_words(out, name, NULL);
    if (bytes)
        sti_table_bytes(out, planned);
    else
        sti_table_number(out, "%.0f", planned);
    if (bytes)
        sti_table_bytes(out, measured);
    else
        sti_table_number(out, "%.0f", measured);
    sti_table_row_end(out);
}

static void add_planned(const embed_report *r, sti_text *out)
{
    static const sti_table_column columns[] = {{.name = ""},
                                               {.name = "planned", .number = true},
                                               {.name = "measured", .number = true}};
    const json_t *e = r->end;
    const double page = number(e, "page_bytes");
    if (!e)
        return;
    sti_page_section(out, "Planned and measured");
    sti_table_begin(out, columns, 3);
    add_row(out, "rows that were not in memory", number(e, "rows_missed_planned"),
            number(e, "rows_missed"), false);
    add_row(out, "peak memory", number(e, "planned_peak_bytes"),
            number(e, "peak_rss_bytes"), true);
    add_row(out, "read from the table", (double)NAN, number(e, "pages_read") * page,
            true);
    add_row(out, "written to the table", (double)NAN, number(e, "pages_written") * page,
            true);
    sti_table_end(out);
    sti_page_section_end(out);
}

static stint_status write_page(const embed_report *r, sti_page_file *page)
{
    sti_text *out = &page->text;
    add_head(r, out);
    if (r->end)
        add_figures(r, out);
    add_curves(r, out);
    add_planned(r, out);
    sti_page_end(out,
                 "The same recipe, data and seed give the same weights, however few "
                 "rows are in memory.");
    return STINT_OK;
}

stint_status stint_embed_report(const char *run)
{
    embed_report r = {.arena = sti_arena_create("report"), .folder = run};
    sti_page_file page;
    stint_status st = r.arena && sti_series_init(&r.curve) ? STINT_OK : STINT_E_MEMORY;
    if (st == STINT_OK)
        st = read_log(&r);
    if (st == STINT_OK) {
        const char *path = sti_path_join(r.arena, run, "report.html");
        st = path ? sti_page_file_open(&page, path) : STINT_E_MEMORY;
        if (st == STINT_OK)
            st = sti_page_file_close(&page, write_page(&r, &page));
    }
    json_decref(r.begin);
    json_decref(r.step);
    json_decref(r.end);
    sti_series_fini(&r.curve);
    sti_arena_destroy(r.arena);
    return st;
}
