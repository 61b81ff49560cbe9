#include "serve/answer_times_page.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/fail.h"
#include "base/units.h"
#include "page/chart.h"
#include "page/table.h"

enum { INTERVALS = 60, SHARES = 400 };

/* ---- charts ---- */

static int by_due(const void *pa, const void *pb)
{
    const sti_answer_time *a = pa, *b = pb;
    return (a->due_s > b->due_s) - (a->due_s < b->due_s);
}

static int by_latency(const void *pa, const void *pb)
{
    const sti_answer_time *a = pa, *b = pb;
    return (a->latency_s > b->latency_s) - (a->latency_s < b->latency_s);
}

/* The queries are sorted. */
static double share_of(const sti_answer_time *q, int64_t count, double share)
{
    return q[(int64_t)(share * (double)(count - 1))].latency_s;
}

/* Median, 95 of 100 and the deadline in each interval of the time. */
static void fill_times(sti_answer_time *q, int64_t count, double sla_s, sti_series *out)
{
    qsort(q, (size_t)count, sizeof *q, by_due);
    const double each = (q[count - 1].due_s - q[0].due_s) / INTERVALS;
    int64_t at = 0;
    for (int i = 0; i < INTERVALS; i++) {
        const double end = q[0].due_s + each * (i + 1);
        const int64_t first = at;
        while (at < count && (q[at].due_s < end || i == INTERVALS - 1))
            at++;
        if (at == first)
            continue;
        sti_answer_time *part = q + first;
        qsort(part, (size_t)(at - first), sizeof *part, by_latency);
        const sti_series_point point = {.x = end - each / 2,
                                        .value = {share_of(part, at - first, 0.5),
                                                  share_of(part, at - first, 0.95),
                                                  sla_s}};
        sti_series_add(out, &point);
        qsort(part, (size_t)(at - first), sizeof *part, by_due);
    }
}

static void fill_shares(sti_answer_time *q, int64_t count, double sla_s,
                        sti_series *out)
{
    qsort(q, (size_t)count, sizeof *q, by_latency);
    for (int i = 0; i <= SHARES; i++) {
        const double share = (double)i / SHARES;
        const sti_series_point point = {.x = 100 * share,
                                        .value = {share_of(q, count, share), sla_s}};
        sti_series_add(out, &point);
    }
}

static sti_chart_line line_of(const sti_series *s, int value, sti_page_colour colour,
                              const char *label)
{
    return (sti_chart_line){.series = s,
                            .value = value,
                            .x_scale = 1,
                            .y_scale = 1e3,
                            .colour = colour,
                            .label = label};
}

static void add_charts(const sti_series *times, const sti_series *shares, bool deadline,
                       sti_text *out)
{
    const sti_chart_line over[] = {
        line_of(times, 0, STI_PAGE_FIRST, "half within"),
        line_of(times, 1, STI_PAGE_SECOND, "95 of 100 within"),
        line_of(times, 2, STI_PAGE_FAINT, "deadline")};
    const sti_chart_line curve[] = {line_of(shares, 0, STI_PAGE_FIRST, "latency"),
                                    line_of(shares, 1, STI_PAGE_FAINT, "deadline")};
    sti_page_section(out, "Latencies");
    sti_page_columns_begin(out);
    sti_chart_add(out, &(sti_chart){.title = "over the time that a query was due",
                                    .x_label = "seconds",
                                    .unit = "ms",
                                    .line = over,
                                    .lines = deadline ? 3 : 2,
                                    .from_zero = true,
                                    .y_max = STI_SERIES_NONE});
    sti_chart_add(out, &(sti_chart){.title = "that so many of 100 answers keep",
                                    .x_label = "of 100 answers",
                                    .unit = "ms",
                                    .line = curve,
                                    .lines = deadline ? 2 : 1,
                                    .from_zero = true,
                                    .y_max = STI_SERIES_NONE});
    sti_page_columns_end(out);
    sti_page_note(out, "A latency counts from the time that was drawn for the query, "
                       "whether it could be sent then or not.");
    sti_page_section_end(out);
}

/* ---- the page ---- */

static void add_count(sti_text *out, int64_t count, const char *meaning)
{
    char value[32];
    snprintf(value, sizeof value, "%" PRId64, count);
    sti_page_figure(out, value, meaning);
}

static void add_figures(const sti_serve_result *r, sti_text *out)
{
    char share[32];
    snprintf(share, sizeof share, "%.2f %%", 100 * r->violations);
    sti_page_figures_begin(out);
    add_count(out, r->sent, "sent");
    add_count(out, r->served, "served");
    add_count(out, r->rejected, "rejected at once");
    add_count(out, r->late, "given up as late");
    add_count(out, r->failed, "failed");
    sti_page_figure(out, share, "not served in time");
    if (r->served > 0) {
        sti_page_figure(out, sti_time_text(r->p50_s), "half of the answers within");
        sti_page_figure(out, sti_time_text(r->p95_s), "95 of 100 within");
        sti_page_figure(out, sti_time_text(r->p99_s), "99 of 100 within");
    }
    sti_page_figures_end(out);
}

static void add_partitions(const sti_serve_result *r, sti_text *out)
{
    static const sti_table_column columns[] = {
        {.name = "units", .number = true},
        {.name = "busy", .number = true},
        {.name = "batches", .number = true},
        {.name = "images a batch", .number = true}};
    if (r->partitions == 0)
        return;
    sti_page_section(out, "Partitions");
    sti_page_card_begin(out);
    sti_table_begin(out, columns, 4);
    for (int p = 0; p < r->partitions; p++) {
        const sti_serve_partition *part = &r->partition[p];
        sti_table_row(out);
        sti_table_number(out, "%d", part->units);
        sti_table_number(out, "%.0f %%",
                         r->seconds > 0 ? 100 * part->busy_s / r->seconds : 0);
        sti_table_number(out, "%" PRId64, part->batches);
        sti_table_number(out, "%.2f", part->batches ? part->mean_batch : 0);
        sti_table_row_end(out);
    }
    sti_table_end(out);
    sti_page_card_end(out);
    sti_page_section_end(out);
}

static void add_lead(const sti_serve_result *r, const sti_answer_times_about *about,
                     sti_text *out)
{
    sti_text lead = {0};
    sti_text_add(&lead, *about->kind == 's' ? "Simulated with the tables of "
                                            : "Measured: queries to ");
    sti_text_add_html(&lead, about->subject);
    sti_text_printf(&lead, ", in %s", sti_time_text(r->seconds));
    if (r->sla_s > 0)
        sti_text_printf(&lead, ", each to be answered within %s",
                        sti_time_text(r->sla_s));
    sti_page_lead(out, lead.data ? lead.data : "");
    sti_text_fini(&lead);
}

stint_status sti_answer_times_page(const char *path, sti_answer_times *times,
                                   const sti_serve_result *result,
                                   const sti_answer_times_about *about)
{
    sti_page_file file;
    sti_series over = {0}, shares = {0};
    sti_text *out = &file.text;
    stint_status st = sti_page_file_open(&file, path);
    if (st == STINT_OK && (!sti_series_init(&over) || !sti_series_init(&shares)))
        st = STINT_E_MEMORY;
    if (st == STINT_OK) {
        sti_page_begin(out, "Stint: serving", "How long answers took");
        add_lead(result, about, out);
        add_figures(result, out);
        if (times->count > 0) {
            fill_times(times->query, times->count, result->sla_s, &over);
            fill_shares(times->query, times->count, result->sla_s, &shares);
            add_charts(&over, &shares, result->sla_s > 0, out);
        }
        add_partitions(result, out);
        sti_page_end(out, NULL);
    }
    sti_series_fini(&over);
    sti_series_fini(&shares);
    return sti_page_file_close(&file, st);
}
