#include "trust/compare_page.h"

#include <inttypes.h>
#include <stdio.h>

#include "base/fail.h"
#include "base/memory.h"
#include "data/data.h"
#include "infer/eval_run.h"
#include "page/page.h"
#include "page/table.h"
#include "train/report_image.h"

enum { SHOWN = 60 };

typedef struct page {
    const stint_compare_desc *desc;
    const stint_fidelity *f;
    stint_data *data;
    sti_data_decoders *decoders;
    uint8_t *pixels;
    sti_page_file file;
} page;

/* A card with a share or with a number of three digits. */
static void add_figure(sti_text *out, const char *meaning, double value, bool percent)
{
    char words[32];
    if (percent)
        (void)snprintf(words, sizeof words, "%.2f %%", 100 * value);
    else
        (void)snprintf(words, sizeof words, "%.3g", value);
    sti_page_figure(out, words, meaning);
}

static void add_figures(page *p)
{
    const stint_fidelity *f = p->f;
    sti_text *out = &p->file.text;
    sti_page_figures_begin(out);
    add_figure(out, "other answers", f->mismatch.rate, true);
    add_figure(out, "right before, wrong now", f->nfr.rate, true);
    add_figure(out, "wrong before, right now", f->pfr.rate, true);
    add_figure(out, "accuracy of the reference", f->reference_accuracy, true);
    add_figure(out, "accuracy of the new model", f->changed_accuracy, true);
    add_figure(out, "chance of so uneven a change (McNemar)", f->mcnemar_p, false);
    if (f->floors > 0)
        add_figure(out, "other answers by chance alone", f->floor_mismatch, true);
    sti_page_figures_end(out);
}

static void add_part(sti_text *out, const stint_fidelity_part *part)
{
    sti_table_row(out);
    sti_table_words(out, part->name, NULL);
    sti_table_number(out, "%" PRId64, part->count);
    sti_table_number(out, "%.1f %%", 100 * part->reference_tpr);
    sti_table_number(out, "%+.1f", 100 * (part->changed_tpr - part->reference_tpr));
    sti_table_number(out, "%.1f %%", 100 * part->mismatch.rate);
    sti_table_number(out, "%.1f to %.1f", 100 * part->mismatch.low,
                     100 * part->mismatch.high);
    sti_table_row_end(out);
}

static void add_parts(page *p, const char *title, const stint_fidelity_part *parts,
                      int64_t count)
{
    static const sti_table_column columns[] = {
        {.name = ""},
        {.name = "inputs", .number = true},
        {.name = "recall", .number = true},
        {.name = "change", .number = true},
        {.name = "other answers", .number = true},
        {.name = "95 % within", .number = true}};
    sti_text *out = &p->file.text;
    sti_page_section(out, title);
    sti_page_card_begin(out);
    sti_table_begin(out, columns, sizeof columns / sizeof columns[0]);
    for (int64_t i = 0; i < count; i++)
        if (parts[i].count > 0)
            add_part(out, &parts[i]);
    sti_table_end(out);
    sti_page_card_end(out);
    sti_page_section_end(out);
}

static void add_caption(const page *p, int64_t i, sti_text *out)
{
    const stint_data_info *info = stint_data_describe(p->data);
    const stint_fidelity *f = p->f;
    sti_text html = {0};
    sti_text_add(&html, "is <b>");
    sti_text_add_html(&html, info->class_names[sti_data_label(p->data, i)]);
    sti_text_add(&html, "</b><br>was taken for ");
    sti_text_add_html(&html, info->class_names[f->reference_answer[i]]);
    sti_text_add(&html, "<br>now for <b class=\"bad\">");
    sti_text_add_html(&html, info->class_names[f->changed_answer[i]]);
    sti_text_add(&html, "</b>");
    sti_page_picture_end(out, html.data ? html.data : "");
    out->failed |= html.failed;
    sti_text_fini(&html);
}

static stint_status add_picture(page *p, int64_t i)
{
    sti_page_picture_begin(&p->file.text);
    stint_status st =
        sti_report_image(p->data, p->decoders, i, NULL, p->pixels, &p->file.text);
    add_caption(p, i, &p->file.text);
    return st == STINT_OK ? sti_page_file_flush(&p->file) : st;
}

/* Those that were right first: they are what a user of the old model loses. */
static stint_status add_sheet(page *p)
{
    const stint_fidelity *f = p->f;
    sti_text *out = &p->file.text;
    stint_status st = STINT_OK;
    int shown = 0;
    sti_page_section(out, "Inputs with another answer");
    sti_page_note(out,
                  "%" PRId64 " of %" PRId64 "; up to %d are shown, first those that "
                  "the reference had right.",
                  f->mismatch.count, f->count, SHOWN);
    sti_page_sheet_begin(out);
    for (int right = 1; right >= 0; right--)
        for (int64_t i = 0; i < f->count && shown < SHOWN && st == STINT_OK; i++) {
            const bool was = f->reference_answer[i] == sti_data_label(p->data, i);
            if (f->reference_answer[i] == f->changed_answer[i] || was != (right == 1))
                continue;
            st = add_picture(p, i);
            shown++;
        }
    sti_page_sheet_end(out);
    sti_page_section_end(out);
    return st;
}

static stint_status open_page(page *p)
{
    stint_model_file *reference = NULL;
    stint_status st = stint_model_open(p->desc->reference, &reference);
    if (st == STINT_OK)
        st = sti_model_open_data(reference, &p->desc->data, &p->data);
    stint_model_close(reference);
    if (st != STINT_OK)
        return st;
    const stint_data_info *info = stint_data_describe(p->data);
    if (info->count != p->f->count)
        return sti_fail(STINT_E_INPUT, "%s has changed meanwhile", info->path);
    p->pixels =
        sti_alloc((size_t)(info->height * info->width * info->channels), "page");
    st =
        p->pixels ? sti_data_decoders_create(p->data, 1, &p->decoders) : STINT_E_MEMORY;
    return st;
}

static void add_lead(const page *p, sti_text *out)
{
    sti_text html = {0};
    sti_text_add_html(&html, p->desc->changed);
    sti_text_add(&html, " beside ");
    sti_text_add_html(&html, p->desc->reference);
    sti_text_printf(&html, ", on %" PRId64 " labelled inputs", p->f->count);
    sti_page_lead(out, html.data ? html.data : "");
    out->failed |= html.failed;
    sti_text_fini(&html);
}

static stint_status build(page *p)
{
    sti_text *out = &p->file.text;
    sti_page_begin(out, "Stint: What changed", "What changed");
    add_lead(p, out);
    add_figures(p);
    add_parts(p, "Classes", p->f->class_part, p->f->classes);
    if (p->f->groups > 0)
        add_parts(p, "Groups", p->f->group_part, p->f->groups);
    stint_status st = add_sheet(p);
    sti_page_end(out, NULL);
    return st;
}

stint_status sti_compare_page(const stint_compare_desc *desc,
                              const stint_fidelity *fidelity, const char *path)
{
    page p = {.desc = desc, .f = fidelity};
    stint_status st = open_page(&p);
    if (st == STINT_OK)
        st = sti_page_file_open(&p.file, path);
    if (st == STINT_OK)
        st = sti_page_file_close(&p.file, build(&p));
    sti_free(p.pixels);
    sti_data_decoders_destroy(p.decoders);
    stint_data_close(p.data);
    return st;
}
