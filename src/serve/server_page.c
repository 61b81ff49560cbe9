/* The page of a server that serves: what came of requests, latencies of the last five
 * minutes, partitions. */
#include <inttypes.h>

#include "base/memory.h"
#include "base/units.h"
#include "page/chart.h"
#include "page/table.h"
#include "serve/server_texts.h"

static void add_model_row(const sti_server *s, int m, sti_text *out)
{
    const sti_serve_counts *c = &s->counts[m];
    const double n = c->served > 0 ? (double)c->served : 1;
    const int64_t counts[] = {c->served, c->rejected, c->late, c->failed};
    sti_table_row(out);
    sti_table_words(out, s->model[m].name, s->model[m].text ? "text" : "images");
    sti_table_number(out, "%s", sti_time_text(s->tables.model[m].sla_s));
    for (int i = 0; i < 4; i++)
        sti_table_number(out, "%" PRId64, counts[i]);
    sti_table_number(out, "%.2f ms", 1e3 * c->queue_s / n);
    sti_table_number(out, "%.2f ms", 1e3 * c->compute_s / n);
    sti_table_row_end(out);
}

static void add_models(const sti_server *s, sti_text *out)
{
    static const sti_table_column columns[] = {{.name = "model"},
                                               {.name = "deadline", .number = true},
                                               {.name = "served", .number = true},
                                               {.name = "rejected", .number = true},
                                               {.name = "late", .number = true},
                                               {.name = "failed", .number = true},
                                               {.name = "mean wait", .number = true},
                                               {.name = "mean time", .number = true}};
    sti_page_section(out, "Models");
    sti_page_card_begin(out);
    sti_table_begin(out, columns, 8);
    for (int m = 0; m < s->tables.models; m++)
        add_model_row(s, m, out);
    sti_table_end(out);
    sti_page_card_end(out);
    sti_page_section_end(out);
}

/* ---- the last five minutes ---- */

/* Mean and longest latency of each second, and the deadline; requests a second. */
static void fill(const sti_server *s, int m, sti_series *out)
{
    const int64_t now = (int64_t)sti_server_now();
    for (int64_t at = now - STI_SERVE_SECONDS + 1; at < now; at++) {
        const sti_serve_second *one =
            &s->counts[m].second[(at + STI_SERVE_SECONDS) % STI_SERVE_SECONDS];
        const bool is = at >= 0 && one->second == at;
        const double served = is ? one->served : 0;
        const sti_series_point point = {
            .x = (double)(at - now + STI_SERVE_SECONDS),
            .value = {served > 0 ? one->sum_s / served : STI_SERIES_NONE,
                      served > 0 ? one->most_s : STI_SERIES_NONE,
                      s->tables.model[m].sla_s, served, is ? one->other : 0}};
        sti_series_add(out, &point);
    }
}

static sti_chart_line line_of(const sti_series *s, int value, double scale,
                              sti_page_colour colour, const char *label)
{
    return (sti_chart_line){.series = s,
                            .value = value,
                            .x_scale = 1,
                            .y_scale = scale,
                            .colour = colour,
                            .label = label};
}

static void add_charts(const sti_series *s, bool text, sti_text *out)
{
    const sti_chart_line latency[] = {line_of(s, 0, 1e3, STI_PAGE_FIRST, "mean"),
                                      line_of(s, 1, 1e3, STI_PAGE_SECOND, "longest"),
                                      line_of(s, 2, 1e3, STI_PAGE_FAINT, "deadline")};
    const sti_chart_line rate[] = {line_of(s, 3, 1, STI_PAGE_FIRST, "served"),
                                   line_of(s, 4, 1, STI_PAGE_SECOND, "not served")};
    sti_chart_add(out, &(sti_chart){.title = text ? "time to the first token"
                                                  : "time to the answer",
                                    .x_label = "seconds, now at 300",
                                    .unit = "ms",
                                    .line = latency,
                                    .lines = 3,
                                    .from_zero = true,
                                    .y_max = STI_SERIES_NONE});
    sti_chart_add(out, &(sti_chart){.title = "requests a second",
                                    .x_label = "seconds, now at 300",
                                    .unit = "",
                                    .line = rate,
                                    .lines = 2,
                                    .from_zero = true,
                                    .y_max = STI_SERIES_NONE});
}

static void add_latencies(const sti_server *s, sti_text *out)
{
    for (int m = 0; m < s->tables.models; m++) {
        sti_series series;
        if (sti_series_init(&series)) {
            sti_page_section(out, s->model[m].name);
            sti_page_columns_begin(out);
            fill(s, m, &series);
            add_charts(&series, s->model[m].text != NULL, out);
            sti_page_columns_end(out);
            sti_page_section_end(out);
        }
        sti_series_fini(&series);
    }
}

/* ---- partitions ---- */

static void add_partitions(const sti_server *s, sti_text *out)
{
    static const sti_table_column columns[] = {
        {.name = "threads", .number = true},
        {.name = "batches", .number = true},
        {.name = "images or rows a batch", .number = true},
        {.name = "busy", .number = true}};
    sti_page_section(out, "Partitions");
    sti_page_card_begin(out);
    sti_table_begin(out, columns, 4);
    for (int i = 0; i < s->workers; i++) {
        const sti_worker *w = &s->worker[i];
        sti_table_row(out);
        sti_table_number(out, "%d", s->tables.size[w->size]);
        sti_table_number(out, "%" PRId64, w->batches);
        sti_table_number(out, "%.2f",
                         w->batches ? (double)w->images / (double)w->batches : 0);
        sti_table_number(out, "%.1f s", w->busy_s);
        sti_table_row_end(out);
    }
    sti_table_end(out);
    sti_page_card_end(out);
    sti_page_section_end(out);
}

void sti_server_page(sti_server *s, sti_text *out)
{
    sti_page_begin(out, "stint serve", "Serving");
    sti_page_lead(out, "<a href=metrics>metrics</a>, <a href=v2/models>models</a>");
    add_models(s, out);
    add_latencies(s, out);
    add_partitions(s, out);
    sti_page_note(out, "%" PRId64 " waiting, %s resident.",
                  sti_scheduler_waiting(s->scheduler),
                  sti_bytes_text(sti_process_now_bytes()));
    sti_page_end(out, NULL);
}
