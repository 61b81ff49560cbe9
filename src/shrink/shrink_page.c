/* shrink.html: what was tried, and what each layer takes before and after. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>

#include "base/fail.h"
#include "base/file.h"
#include "base/units.h"
#include "page/chart.h"
#include "page/table.h"
#include "shrink/shrinker.h"

static void add_figures(const stint_shrink_result *r, sti_text *out)
{
    char words[64];
    sti_page_figures_begin(out);
    sti_page_figure(out, sti_bytes_text((size_t)r->bytes), "the whole file");
    snprintf(words, sizeof words, "%.1f x",
             r->bytes > 0 ? (double)r->base_bytes / (double)r->bytes : 0);
    sti_page_figure(out, words, "smaller than float32");
    snprintf(words, sizeof words, "%.2f", 100 * r->accuracy_drop);
    sti_page_figure(out, words, "points lost on the images that judge");
    snprintf(words, sizeof words, "%.2f %%", 100 * r->mismatch_rate);
    sti_page_figure(out, words, "answers changed");
    if (!isnan(r->test_accuracy)) {
        snprintf(words, sizeof words, "%.2f %%", 100 * r->test_accuracy);
        sti_page_figure(out, words, "accuracy on images that report");
    }
    snprintf(words, sizeof words, "%.3g", r->latency_ms);
    sti_page_figure(out, words, "ms a batch");
    sti_page_figures_end(out);
}

/* ---- curves ---- */

typedef double figure_of(const stint_shrink_sample *sample);

static double accuracy_of(const stint_shrink_sample *sample)
{
    return 100 * sample->accuracy;
}

static double kib_of(const stint_shrink_sample *sample)
{
    return (double)sample->bytes / 1024;
}

static double ms_of(const stint_shrink_sample *sample)
{
    return sample->latency_ms;
}

/* The sample of the next larger share (of one share the next seed), or NULL. */
static const stint_shrink_sample *after(const stint_shrink_result *r,
                                        const stint_shrink_sample *last)
{
    const stint_shrink_sample *next = NULL;
    for (int i = 0; i < r->sample_count; i++) {
        const stint_shrink_sample *s = &r->samples[i];
        const bool later = !last || s->sparsity > last->sparsity ||
                           (s->sparsity == last->sparsity && s->seed > last->seed);
        if (later && (!next || s->sparsity < next->sparsity ||
                      (s->sparsity == next->sparsity && s->seed < next->seed)))
            next = s;
    }
    return next;
}

/* A figure of the samples by share, and a level to be held against it from one share to
 * another; NaN: none. */
static void add_curve(const stint_shrink_result *r, const char *title,
                      const char *label, const char *unit, figure_of *figure,
                      const char *level_label, double level, double from, double to,
                      sti_text *out)
{
    sti_series samples, line;
    if (r->sample_count < 2 || !sti_series_init(&samples))
        return;
    if (!sti_series_init(&line)) {
        sti_series_fini(&samples);
        return;
    }
    for (const stint_shrink_sample *s = after(r, NULL); s; s = after(r, s))
        sti_series_add(&samples,
                       &(sti_series_point){.x = s->sparsity, .value = {figure(s)}});
    if (!isnan(level)) {
        sti_series_add(&line, &(sti_series_point){.x = from, .value = {level}});
        sti_series_add(&line, &(sti_series_point){.x = to, .value = {level}});
    }
    const sti_chart_line lines[] = {{.series = &samples,
                                     .x_scale = 1,
                                     .y_scale = 1,
                                     .colour = STI_PAGE_FIRST,
                                     .label = label,
                                     .mark = STI_CHART_DOTTED_CURVE},
                                    {.series = &line,
                                     .x_scale = 1,
                                     .y_scale = 1,
                                     .colour = STI_PAGE_SECOND,
                                     .label = level_label,
                                     .mark = STI_CHART_DOTTED_CURVE}};
    sti_chart_add(out, &(sti_chart){.title = title,
                                    .x_label = "share",
                                    .unit = unit,
                                    .line = lines,
                                    .lines = isnan(level) ? 1 : 2,
                                    .y_max = STI_SERIES_NONE});
    sti_series_fini(&samples);
    sti_series_fini(&line);
}

static void add_curves(const sti_shrinker *s, const stint_shrink_result *r,
                       sti_text *out)
{
    const stint_shrink_desc *d = s->desc;
    const bool bracket = d->limits_drop && r->bracket[1] > r->bracket[0];
    const double floor =
        d->limits_drop ? 100 * (r->base_accuracy - d->accuracy_drop) : (double)NAN;
    const double limit = d->latency_s > 0       ? 1000 * d->latency_s
                         : d->latency_share > 0 ? d->latency_share * r->base_ms
                                                : (double)NAN;
    add_curve(r, "Accuracy by the share removed", "accuracy", " %", accuracy_of,
              bracket ? "limit, where the bracket is" : "limit", floor,
              bracket ? r->bracket[0] : 0, bracket ? r->bracket[1] : 1, out);
    add_curve(r, "Size of the file", "size", " KiB", kib_of, "limit",
              d->size_bytes > 0 ? (double)d->size_bytes / 1024 : (double)NAN, 0, 1,
              out);
    if (sti_shrink_times(d))
        add_curve(r, "Time of a batch", "time", " ms", ms_of, "limit", limit, 0, 1,
                  out);
}

/* ---- samples ---- */

static void add_sample(const stint_shrink_sample *sample, sti_text *out)
{
    sti_table_row(out);
    sti_table_number(out, "%.4f", sample->sparsity);
    sti_table_number(out, "%" PRIu64, sample->seed);
    sti_table_number(out, "%.2f %%", 100 * sample->accuracy);
    sti_table_number(out, "%.2f %%", 100 * sample->mismatch_rate);
    sti_table_bytes(out, (double)sample->bytes);
    if (isnan(sample->latency_ms))
        sti_table_words(out, "", NULL);
    else
        sti_table_number(out, "%.3g ms", sample->latency_ms);
    sti_table_words(out, sample->met ? "keeps every limit" : "", NULL);
    sti_table_row_end(out);
}

static void add_samples(const sti_shrinker *s, const stint_shrink_result *r,
                        sti_text *out)
{
    static const sti_table_column columns[] = {{.name = "share", .number = true},
                                               {.name = "seed", .number = true},
                                               {.name = "accuracy", .number = true},
                                               {.name = "changed", .number = true},
                                               {.name = "bytes", .number = true},
                                               {.name = "time", .number = true},
                                               {.name = ""}};
    sti_page_section(out, "Samples");
    if (r->bracket[1] > 0)
        sti_page_note(out,
                      "The search ended between %.4f, which keeps the answers, and "
                      "%.4f, which does not or was not tried.",
                      r->bracket[0], r->bracket[1]);
    sti_page_columns_begin(out);
    add_curves(s, r, out);
    sti_page_columns_end(out);
    sti_page_card_begin(out);
    sti_table_begin(out, columns, 7);
    for (int i = 0; i < r->sample_count; i++)
        add_sample(&r->samples[i], out);
    sti_table_end(out);
    sti_page_card_end(out);
    sti_page_section_end(out);
}

/* ---- layers ---- */

static double largest(double a, double b)
{
    return isnan(a) || b > a ? b : a;
}

/* Bars of every layer before and after, beside one another. */
static void add_bytes(const stint_shrink_result *r, sti_text *out)
{
    static const sti_table_column columns[3] = {
        {.name = "layer"},
        {.name = "float32", .number = true, .key = true, .colour = STI_PAGE_FIRST},
        {.name = "file", .number = true, .key = true, .colour = STI_PAGE_SECOND}};
    double most = 0;
    for (int i = 0; i < r->layer_count; i++)
        most = largest(most, 4.0 * (double)r->layers[i].weights);
    sti_page_card_begin(out);
    sti_table_begin_barred(out, columns);
    for (int i = 0; i < r->layer_count; i++) {
        const stint_shrink_layer *l = &r->layers[i];
        sti_table_row(out);
        sti_table_words(out, l->name, NULL);
        sti_table_bytes(out, 4.0 * (double)l->weights);
        sti_table_bytes(out, l->bytes);
        sti_table_bars(out, 4.0 * (double)l->weights, l->bytes, most);
        sti_table_row_end(out);
    }
    sti_table_end(out);
    sti_page_card_end(out);
}

static void add_times(const stint_shrink_result *r, sti_text *out)
{
    static const sti_table_column columns[3] = {
        {.name = "layer"},
        {.name = "before", .number = true, .key = true, .colour = STI_PAGE_FIRST},
        {.name = "after", .number = true, .key = true, .colour = STI_PAGE_SECOND}};
    double most = 0;
    for (int i = 0; i < r->layer_count; i++)
        most = largest(largest(most, r->layers[i].base_ms), r->layers[i].ms);
    sti_page_card_begin(out);
    sti_table_begin_barred(out, columns);
    for (int i = 0; i < r->layer_count; i++) {
        const stint_shrink_layer *l = &r->layers[i];
        sti_table_row(out);
        sti_table_words(out, l->name, NULL);
        sti_table_number(out, "%.3g ms", l->base_ms);
        sti_table_number(out, "%.3g ms", l->ms);
        sti_table_bars(out, l->base_ms, l->ms, most);
        sti_table_row_end(out);
    }
    sti_table_end(out);
    sti_page_card_end(out);
}

static void add_forms(const stint_shrink_result *r, sti_text *out)
{
    static const sti_table_column columns[] = {{.name = "layer"},
                                               {.name = "weights", .number = true},
                                               {.name = "not zero", .number = true},
                                               {.name = "of 100", .number = true}};
    sti_page_card_begin(out);
    sti_table_begin(out, columns, 4);
    for (int i = 0; i < r->layer_count; i++) {
        const stint_shrink_layer *l = &r->layers[i];
        sti_table_row(out);
        sti_table_words(out, l->name, l->form);
        sti_table_number(out, "%" PRId64, l->weights);
        sti_table_number(out, "%" PRId64, l->nonzeros);
        sti_table_number(out, "%.1f",
                         l->weights > 0 ? 100 * (double)l->nonzeros / (double)l->weights
                                        : 0);
        sti_table_row_end(out);
    }
    sti_table_end(out);
    sti_page_card_end(out);
}

static void add_layers(const stint_shrink_result *r, sti_text *out)
{
    sti_page_section(out, "Layers: bytes, and time of a batch");
    sti_page_columns_begin(out);
    add_bytes(r, out);
    add_times(r, out);
    sti_page_columns_end(out);
    add_forms(r, out);
    sti_page_section_end(out);
}

stint_status sti_shrink_write_page(const sti_shrinker *s, const stint_shrink_result *r)
{
    char *path = sti_path_join(s->arena, s->out, "shrink.html");
    sti_page_file page = {.writer = NULL};
    sti_text *out = &page.text;
    char lead[256];
    if (!path)
        return STINT_E_MEMORY;
    stint_status st = sti_page_file_open(&page, path);
    if (st != STINT_OK)
        return sti_page_file_close(&page, st);
    snprintf(lead, sizeof lead,
             "judged by %" PRId64 " images (%s), on which the model has %.2f %%",
             r->judged, r->judged_by, 100 * r->base_accuracy);
    sti_page_begin(out, "Stint: a smaller model", r->scheme);
    sti_page_lead(out, lead);
    add_figures(r, out);
    add_samples(s, r, out);
    add_layers(r, out);
    sti_shrink_add_shapes(&s->shapes, out);
    st = sti_shrink_add_changed(s, &page);
    sti_page_end(out, NULL);
    return sti_page_file_close(&page, st == STINT_OK ? sti_page_file_flush(&page) : st);
}
