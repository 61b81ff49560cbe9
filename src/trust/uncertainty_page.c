#include "trust/uncertainty.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/fail.h"
#include "base/memory.h"
#include "data/data.h"
#include "infer/eval_run.h"
#include "page/chart.h"
#include "page/page.h"
#include "train/report_image.h"

enum { SHOWN = 48, ENTROPY_BINS = 24, SHARES = 50 };

typedef struct page {
    const stint_uncertainty_desc *desc;
    const stint_uncertainty *u;
    stint_data *data;
    sti_data_decoders *decoders;
    uint8_t *pixels;
    int32_t *surest; /* [count]: images, from the least entropy to the most */
    sti_page_file file;
} page;

/* ---- figures ---- */

/* A card of so many decimals, unless nothing is known. */
static void add_figure(sti_text *out, const char *meaning, int decimals, double value,
                       const char *unit)
{
    char words[32];
    if (isnan(value))
        return;
    (void)snprintf(words, sizeof words, "%.*f%s", decimals, value, unit);
    sti_page_figure(out, words, meaning);
}

static void add_figures(page *p)
{
    const stint_uncertainty *u = p->u;
    sti_text *out = &p->file.text;
    sti_page_figures_begin(out);
    add_figure(out, "networks", 0, (double)u->networks, "");
    add_figure(out, "accuracy", 2, 100 * u->eval.accuracy, " %");
    add_figure(out, "loss of the averaged probabilities", 4, u->eval.loss, "");
    add_figure(out, "calibration error", 4, u->ece, "");
    add_figure(out, "entropy, nats", 3, u->entropy, "");
    add_figure(out, "of it from the weights", 3, u->mutual_information, "");
    add_figure(out, "entropy of strangers", 3, u->ood_entropy, "");
    add_figure(out, "strangers told apart (AUROC)", 3, u->ood_auroc, "");
    add_figure(out, "median deviation of a weight", 5, u->sigma[1], "");
    sti_page_figures_end(out);
}

/* ---- charts ---- */

/* A point of one value, or of two. */
static void add_point(sti_series *series, double x, double first, double second)
{
    sti_series_point point = {.x = x};
    for (int v = 0; v < STI_SERIES_VALUES; v++)
        point.value[v] = STI_SERIES_NONE;
    point.value[0] = first;
    point.value[1] = second;
    sti_series_add(series, &point);
}

static stint_status add_calibration(page *p)
{
    const stint_calibration *k = &p->u->calibration;
    sti_series series;
    if (!sti_series_init(&series)) {
        sti_series_fini(&series);
        return STINT_E_MEMORY;
    }
    for (int i = 0; i < STINT_CALIBRATION_BINS; i++) {
        const double n = (double)k->count[i];
        add_point(&series, (i + 0.5) / STINT_CALIBRATION_BINS,
                  n > 0 ? k->confidence[i] / n : STI_SERIES_NONE,
                  n > 0 ? k->right[i] / n : STI_SERIES_NONE);
    }
    const sti_chart_line lines[] = {
        {&series, 0, 100, 100, STI_PAGE_FAINT, "probability claimed", STI_CHART_BARS},
        {&series, 1, 100, 100, STI_PAGE_FIRST, "right", STI_CHART_BARS}};
    sti_chart_add(&p->file.text,
                  &(sti_chart){.title = "Are answers right as often as they say?",
                               .x_label = "probability of the answer, %",
                               .unit = " %",
                               .line = lines,
                               .lines = 2,
                               .from_zero = true,
                               .y_max = 100});
    sti_series_fini(&series);
    return STINT_OK;
}

/* Shares of images by their entropy, in bins up to `most`. */
static void count_entropies(int64_t n, const float *entropy, double most,
                            double share[ENTROPY_BINS])
{
    for (int b = 0; b < ENTROPY_BINS; b++)
        share[b] = n > 0 ? 0 : STI_SERIES_NONE;
    for (int64_t i = 0; i < n; i++) {
        const int bin = (int)((double)entropy[i] / most * ENTROPY_BINS);
        share[bin < ENTROPY_BINS ? bin : ENTROPY_BINS - 1] += 1 / (double)n;
    }
}

static stint_status add_entropies(page *p)
{
    const stint_uncertainty *u = p->u;
    const double most = log((double)u->eval.classes);
    double known[ENTROPY_BINS], strange[ENTROPY_BINS];
    sti_series series;
    if (!sti_series_init(&series)) {
        sti_series_fini(&series);
        return STINT_E_MEMORY;
    }
    count_entropies(u->eval.count, u->image_entropy, most, known);
    count_entropies(u->ood_count, u->ood_image_entropy, most, strange);
    for (int b = 0; b < ENTROPY_BINS; b++)
        add_point(&series, (b + 0.5) / ENTROPY_BINS * most, known[b], strange[b]);
    const sti_chart_line lines[] = {
        {&series, 0, 1, 100, STI_PAGE_FIRST, "images of the split", STI_CHART_BARS},
        {&series, 1, 1, 100, STI_PAGE_SECOND, "strangers", STI_CHART_BARS}};
    sti_chart_add(&p->file.text, &(sti_chart){.title = "How uncertain the answers are",
                                              .x_label = "entropy, nats",
                                              .unit = " %",
                                              .line = lines,
                                              .lines = u->ood_count > 0 ? 2 : 1,
                                              .from_zero = true,
                                              .y_max = STI_SERIES_NONE});
    sti_series_fini(&series);
    return STINT_OK;
}

/* Accuracy where the least sure answers are withheld. */
static stint_status add_withheld(page *p)
{
    const stint_uncertainty *u = p->u;
    int64_t right = 0, answered = 0;
    sti_series series;
    if (!sti_series_init(&series)) {
        sti_series_fini(&series);
        return STINT_E_MEMORY;
    }
    for (int k = 1; k <= SHARES; k++) {
        for (; answered < u->eval.count * k / SHARES; answered++) {
            const int32_t i = p->surest[answered];
            right += u->answer[i] == sti_data_label(p->data, i);
        }
        if (answered > 0)
            add_point(&series, (double)k / SHARES, (double)right / (double)answered,
                      STI_SERIES_NONE);
    }
    const sti_chart_line line = {
        &series,        0, 100, 100, STI_PAGE_FIRST, "accuracy of the surest",
        STI_CHART_CURVE};
    sti_chart_add(&p->file.text,
                  &(sti_chart){.title = "What withholding doubtful answers gains",
                               .x_label = "images answered, the surest first, %",
                               .unit = " %",
                               .line = &line,
                               .lines = 1,
                               .y_max = 100});
    sti_series_fini(&series);
    return STINT_OK;
}

static stint_status add_charts(page *p)
{
    stint_status st;
    sti_page_section(&p->file.text, "How sure, and how right");
    sti_page_columns_begin(&p->file.text);
    STI_TRY(add_calibration(p));
    STI_TRY(add_entropies(p));
    STI_TRY(add_withheld(p));
    sti_page_columns_end(&p->file.text);
    sti_page_section_end(&p->file.text);
out:
    return st;
}

/* ---- pictures ---- */

static void add_caption(page *p, int32_t i)
{
    const stint_data_info *info = stint_data_describe(p->data);
    const stint_uncertainty *u = p->u;
    sti_text html = {0};
    const bool right = u->answer[i] == sti_data_label(p->data, i);
    sti_text_add(&html, right ? "<b>" : "<b class=\"bad\">");
    sti_text_add_html(&html, info->class_names[u->answer[i]]);
    sti_text_printf(&html, "</b> %.0f %%", 100 * (double)u->confidence[i]);
    if (!right) {
        sti_text_add(&html, "<br>is ");
        sti_text_add_html(&html, info->class_names[sti_data_label(p->data, i)]);
    }
    sti_text_printf(&html, "<br>%.2f nats", (double)u->image_entropy[i]);
    sti_page_picture_end(&p->file.text, html.data ? html.data : "");
    p->file.text.failed |= html.failed;
    sti_text_fini(&html);
}

static stint_status add_sheet(page *p)
{
    sti_text *out = &p->file.text;
    const int64_t count = p->u->eval.count;
    stint_status st = STINT_OK;
    sti_page_section(out, "The images that the networks are least sure of");
    sti_page_sheet_begin(out);
    for (int64_t k = count - 1; k >= 0 && k >= count - SHOWN && st == STINT_OK; k--) {
        sti_page_picture_begin(out);
        st = sti_report_image(p->data, p->decoders, p->surest[k], NULL, p->pixels, out);
        add_caption(p, p->surest[k]);
        if (st == STINT_OK)
            st = sti_page_file_flush(&p->file);
    }
    sti_page_sheet_end(out);
    sti_page_section_end(out);
    return st;
}

/* ---- all ---- */

typedef struct placed {
    float entropy;
    int32_t index;
} placed;

static int compare_placed(const void *a_, const void *b_)
{
    const placed *a = a_, *b = b_;
    if (a->entropy != b->entropy)
        return a->entropy < b->entropy ? -1 : 1;
    return a->index < b->index ? -1 : a->index > b->index;
}

static stint_status sort_images(page *p)
{
    const int64_t count = p->u->eval.count;
    placed *all = sti_alloc_array(count, sizeof *all, "page");
    p->surest = sti_alloc_array(count, sizeof *p->surest, "page");
    if (all && p->surest) {
        for (int64_t i = 0; i < count; i++)
            all[i] = (placed){p->u->image_entropy[i], (int32_t)i};
        qsort(all, (size_t)count, sizeof *all, compare_placed);
        for (int64_t i = 0; i < count; i++)
            p->surest[i] = all[i].index;
    }
    const bool made = all && p->surest;
    sti_free(all);
    return made ? STINT_OK : STINT_E_MEMORY;
}

static stint_status open_page(page *p)
{
    stint_model_file *model = NULL;
    stint_data_desc quiet = p->desc->data;
    quiet.quiet = true;
    stint_status st = stint_model_open(p->desc->model, &model);
    if (st == STINT_OK)
        st = sti_model_open_data(model, &quiet, &p->data);
    stint_model_close(model);
    if (st != STINT_OK)
        return st;
    const stint_data_info *info = stint_data_describe(p->data);
    if (info->count != p->u->eval.count)
        return sti_fail(STINT_E_INPUT, "%s has changed meanwhile", info->path);
    p->pixels =
        sti_alloc((size_t)(info->height * info->width * info->channels), "page");
    st =
        p->pixels ? sti_data_decoders_create(p->data, 1, &p->decoders) : STINT_E_MEMORY;
    return st == STINT_OK ? sort_images(p) : st;
}

static void add_lead(page *p)
{
    const stint_uncertainty *u = p->u;
    sti_text html = {0};
    sti_text_add_html(&html, p->desc->model);
    if (p->desc->ensemble_count > 0)
        sti_text_printf(&html, " and %" PRId64 " more", p->desc->ensemble_count);
    sti_text_printf(&html, ", %" PRId64 " networks on %" PRId64 " labelled images",
                    u->networks, u->eval.count);
    if (u->ood_count > 0)
        sti_text_printf(&html, " and %" PRId64 " strangers", u->ood_count);
    sti_page_lead(&p->file.text, html.data ? html.data : "");
    p->file.text.failed |= html.failed;
    sti_text_fini(&html);
}

static stint_status build(page *p)
{
    sti_text *out = &p->file.text;
    stint_status st;
    sti_page_begin(out, "Stint: How sure", "How sure the answers are");
    add_lead(p);
    add_figures(p);
    STI_TRY(add_charts(p));
    STI_TRY(add_sheet(p));
    sti_page_end(out, NULL);
out:
    return st;
}

stint_status sti_uncertainty_page(const stint_uncertainty_desc *desc,
                                  const stint_uncertainty *uncertainty,
                                  const char *path)
{
    page p = {.desc = desc, .u = uncertainty};
    stint_status st = open_page(&p);
    if (st == STINT_OK)
        st = sti_page_file_open(&p.file, path);
    if (st == STINT_OK)
        st = sti_page_file_close(&p.file, build(&p));
    sti_free(p.surest);
    sti_free(p.pixels);
    sti_data_decoders_destroy(p.decoders);
    stint_data_close(p.data);
    return st;
}
