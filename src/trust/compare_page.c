#include "trust/compare_page.h"

#include <inttypes.h>

#include "base/fail.h"
#include "base/file.h"
#include "base/memory.h"
#include "base/text.h"
#include "data/data.h"
#include "infer/eval_run.h"
#include "trust/page.h"

enum { SHOWN = 60 };

typedef struct page {
    const stint_compare_desc *desc;
    const stint_fidelity *f;
    stint_data *data;
    sti_data_decoders *decoders;
    uint8_t *pixels;
    sti_text out;
} page;

static void add_figures(page *p)
{
    const stint_fidelity *f = p->f;
    sti_text *out = &p->out;
    sti_text_add(out, "<div class=\"figures\">\n");
    sti_page_figure(out, "other answers", f->mismatch.rate, true);
    sti_page_figure(out, "right before, wrong now", f->nfr.rate, true);
    sti_page_figure(out, "wrong before, right now", f->pfr.rate, true);
    sti_page_figure(out, "accuracy of the reference", f->reference_accuracy, true);
    sti_page_figure(out, "accuracy of the new model", f->changed_accuracy, true);
    sti_page_figure(out, "chance of so uneven a change (McNemar)", f->mcnemar_p, false);
    if (f->floors > 0)
        sti_page_figure(out, "other answers by chance alone", f->floor_mismatch, true);
    sti_text_add(&p->out, "</div>\n");
}

static void add_part(page *p, const stint_fidelity_part *part)
{
    sti_text_add(&p->out, "<tr><td>");
    sti_text_add_html(&p->out, part->name);
    sti_text_printf(
        &p->out,
        "</td><td class=\"n\">%" PRId64 "</td><td class=\"n\">%.1f&nbsp;%%</td><td "
        "class=\"n\">%+.1f</td><td class=\"n\">%.1f&nbsp;%% "
        "<small>%.1f to %.1f</small></td></tr>\n",
        part->count, 100 * part->reference_tpr,
        100 * (part->changed_tpr - part->reference_tpr), 100 * part->mismatch.rate,
        100 * part->mismatch.low, 100 * part->mismatch.high);
}

static void add_parts(page *p, const char *title, const stint_fidelity_part *parts,
                      int64_t count)
{
    sti_text_printf(
        &p->out,
        "<h2>%s</h2><div class=\"card\"><table class=\"memory\"><tr><th></th>"
        "<th class=\"n\">inputs</th><th class=\"n\">recall</th><th "
        "class=\"n\">change</th><th class=\"n\">other answers, 95 %%</th>"
        "</tr>\n",
        title);
    for (int64_t i = 0; i < count; i++)
        if (parts[i].count > 0)
            add_part(p, &parts[i]);
    sti_text_add(&p->out, "</table></div>\n");
}

static stint_status add_picture(page *p, int64_t i)
{
    const stint_data_info *info = stint_data_describe(p->data);
    const stint_fidelity *f = p->f;
    sti_text_add(&p->out, "<figure>");
    stint_status st = sti_page_image(p->data, p->decoders, i, p->pixels, &p->out);
    sti_text_add(&p->out, "<figcaption>is <b>");
    sti_text_add_html(&p->out, info->class_names[sti_data_label(p->data, i)]);
    sti_text_add(&p->out, "</b><br>was taken for ");
    sti_text_add_html(&p->out, info->class_names[f->reference_answer[i]]);
    sti_text_add(&p->out, "<br>now for <b class=\"bad\">");
    sti_text_add_html(&p->out, info->class_names[f->changed_answer[i]]);
    sti_text_add(&p->out, "</b></figcaption></figure>\n");
    return st;
}

/* Those that were right first: they are what a user of the old model loses. */
static stint_status add_sheet(page *p)
{
    const stint_fidelity *f = p->f;
    stint_status st = STINT_OK;
    int shown = 0;
    sti_text_printf(&p->out,
                    "<h2>Inputs with another answer</h2><p class=\"note\">%" PRId64
                    " of %" PRId64
                    "; up to %d are shown, first those that the reference "
                    "had right.</p><div class=\"sheet\">\n",
                    f->mismatch.count, f->count, SHOWN);
    for (int right = 1; right >= 0; right--)
        for (int64_t i = 0; i < f->count && shown < SHOWN && st == STINT_OK; i++) {
            const bool was = f->reference_answer[i] == sti_data_label(p->data, i);
            if (f->reference_answer[i] == f->changed_answer[i] || was != (right == 1))
                continue;
            st = add_picture(p, i);
            shown++;
        }
    sti_text_add(&p->out, "</div>\n");
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

static stint_status build(page *p)
{
    sti_text *out = &p->out;
    sti_page_begin(out, "What changed");
    sti_text_add(out, "<p class=\"lead\">");
    sti_text_add_html(out, p->desc->changed);
    sti_text_add(out, " beside ");
    sti_text_add_html(out, p->desc->reference);
    sti_text_printf(out, ", on %" PRId64 " labelled inputs</p>\n", p->f->count);
    add_figures(p);
    add_parts(p, "Classes", p->f->class_part, p->f->classes);
    if (p->f->groups > 0)
        add_parts(p, "Groups", p->f->group_part, p->f->groups);
    stint_status st = add_sheet(p);
    sti_text_add(out, "</main></html>\n");
    return st == STINT_OK && out->failed ? STINT_E_MEMORY : st;
}

stint_status sti_compare_page(const stint_compare_desc *desc,
                              const stint_fidelity *fidelity, const char *path)
{
    page p = {.desc = desc, .f = fidelity};
    stint_status st = open_page(&p);
    if (st == STINT_OK)
        st = build(&p);
    if (st == STINT_OK)
        st = sti_file_write(path, p.out.data, p.out.length);
    sti_text_fini(&p.out);
    sti_free(p.pixels);
    sti_data_decoders_destroy(p.decoders);
    stint_data_close(p.data);
    return st;
}
