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

/* Accuracy by share; a point a sample, in the order of the shares. */
static void add_curve(const stint_shrink_result *r, sti_text *out)
{
    sti_series series;
    if (r->sample_count < 2 || !sti_series_init(&series)) {
        return;
    }
    double last = -1;
    for (int k = 0; k < r->sample_count; k++) {
        const stint_shrink_sample *next = NULL;
        for (int i = 0; i < r->sample_count; i++)
            if (r->samples[i].sparsity > last &&
                (!next || r->samples[i].sparsity < next->sparsity))
                next = &r->samples[i];
        if (!next)
            break;
        last = next->sparsity;
        sti_series_add(&series,
                       &(sti_series_point){.x = last, .value = {next->accuracy}});
    }
    const sti_chart_line line = {.series = &series,
                                 .x_scale = 1,
                                 .y_scale = 100,
                                 .colour = STI_PAGE_FIRST,
                                 .label = "accuracy",
                                 .mark = STI_CHART_DOTTED_CURVE};
    sti_chart_add(out, &(sti_chart){.title = "Accuracy by the share removed",
                                    .x_label = "share",
                                    .unit = " %",
                                    .line = &line,
                                    .lines = 1,
                                    .y_max = STI_SERIES_NONE});
    sti_series_fini(&series);
}

static void add_samples(const stint_shrink_result *r, sti_text *out)
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
    add_curve(r, out);
    sti_page_card_begin(out);
    sti_table_begin(out, columns, 7);
    for (int i = 0; i < r->sample_count; i++)
        add_sample(&r->samples[i], out);
    sti_table_end(out);
    sti_page_card_end(out);
    sti_page_columns_end(out);
    sti_page_section_end(out);
}

/* ---- layers ---- */

static void add_layer(const stint_shrink_layer *l, sti_text *out)
{
    sti_table_row(out);
    sti_table_words(out, l->name, l->form);
    sti_table_number(out, "%" PRId64, l->weights);
    sti_table_number(out, "%" PRId64, l->nonzeros);
    sti_table_bytes(out, 4.0 * (double)l->weights);
    sti_table_bytes(out, l->bytes);
    sti_table_number(out, "%.3g ms", l->base_ms);
    sti_table_number(out, "%.3g ms", l->ms);
    sti_table_row_end(out);
}

static void add_layers(const stint_shrink_result *r, sti_text *out)
{
    static const sti_table_column columns[] = {{.name = "layer"},
                                               {.name = "weights", .number = true},
                                               {.name = "not zero", .number = true},
                                               {.name = "float32", .number = true},
                                               {.name = "in the file", .number = true},
                                               {.name = "time before", .number = true},
                                               {.name = "after", .number = true}};
    sti_page_section(out, "Layers");
    sti_page_card_begin(out);
    sti_table_begin(out, columns, 7);
    for (int i = 0; i < r->layer_count; i++)
        add_layer(&r->layers[i], out);
    sti_table_end(out);
    sti_page_card_end(out);
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
    add_samples(r, out);
    add_layers(r, out);
    sti_page_end(out, NULL);
    return sti_page_file_close(&page, sti_page_file_flush(&page));
}
