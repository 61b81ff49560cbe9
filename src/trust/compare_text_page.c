#include "trust/compare_text_page.h"

#include <inttypes.h>
#include <stdio.h>

#include "page/page.h"
#include "page/table.h"

static void add_percent(sti_text *out, const char *meaning, double share)
{
    char words[32];
    (void)snprintf(words, sizeof words, "%.2f %%", 100 * share);
    sti_page_figure(out, words, meaning);
}

static void add_nats(sti_text *out, const char *meaning, double nats)
{
    char words[32];
    (void)snprintf(words, sizeof words, "%.4f", nats);
    sti_page_figure(out, words, meaning);
}

static void add_figures(const stint_text_fidelity *f, sti_text *out)
{
    sti_page_figures_begin(out);
    add_percent(out, "other next tokens", f->mismatch.rate);
    add_percent(out, "right before, wrong now", f->nfr.rate);
    add_percent(out, "wrong before, right now", f->pfr.rate);
    add_nats(out, "nats between probabilities (KL)", f->kl);
    add_nats(out, "loss of the reference, nats a token", f->reference_loss);
    add_nats(out, "difference of loss", f->loss_difference);
    sti_page_figures_end(out);
}

static void add_parts(sti_text *out, const char *title, const stint_text_part *part,
                      int count)
{
    static const sti_table_column columns[] = {
        {.name = ""},
        {.name = "tokens", .number = true},
        {.name = "other answers", .number = true},
        {.name = "95 % within", .number = true},
        {.name = "loss", .number = true},
        {.name = "change", .number = true}};
    sti_page_section(out, title);
    sti_page_card_begin(out);
    sti_table_begin(out, columns, sizeof columns / sizeof columns[0]);
    for (int i = 0; i < count; i++) {
        const stint_text_part *p = &part[i];
        if (p->mismatch.n == 0)
            continue;
        sti_table_row(out);
        sti_table_words(out, p->name, NULL);
        sti_table_number(out, "%" PRId64, p->mismatch.n);
        sti_table_number(out, "%.2f %%", 100 * p->mismatch.rate);
        sti_table_number(out, "%.2f to %.2f", 100 * p->mismatch.low,
                         100 * p->mismatch.high);
        sti_table_number(out, "%.4f", p->reference_loss);
        sti_table_number(out, "%+.4f", p->changed_loss - p->reference_loss);
        sti_table_row_end(out);
    }
    sti_table_end(out);
    sti_page_card_end(out);
    sti_page_section_end(out);
}

static void add_answer(sti_text *out, const char *token, double p)
{
    char share[32];
    (void)snprintf(share, sizeof share, "%.1f %%", 100 * p);
    sti_table_words(out, token, share);
}

static void add_changes(const stint_text_fidelity *f, sti_text *out)
{
    static const sti_table_column columns[] = {{.name = "what stands before"},
                                               {.name = "follows"},
                                               {.name = "reference"},
                                               {.name = "new"},
                                               {.name = "nats", .number = true}};
    sti_page_section(out, "Where probabilities moved farthest");
    sti_page_card_begin(out);
    sti_table_begin(out, columns, sizeof columns / sizeof columns[0]);
    for (int64_t i = 0; i < f->changes; i++) {
        const stint_text_change *c = &f->change[i];
        char place[48];
        (void)snprintf(place, sizeof place, "token %" PRId64, c->at);
        sti_table_row(out);
        sti_table_words(out, c->before, place);
        sti_table_words(out, c->label_text, NULL);
        add_answer(out, c->reference_text, c->reference_p);
        add_answer(out, c->changed_text, c->changed_p);
        sti_table_number(out, "%.3g", c->kl);
        sti_table_row_end(out);
    }
    sti_table_end(out);
    sti_page_card_end(out);
    sti_page_section_end(out);
}

static void add_lead(const stint_compare_desc *d, const stint_text_fidelity *f,
                     sti_text *out)
{
    sti_text html = {0};
    sti_text_add_html(&html, d->changed);
    sti_text_add(&html, " beside ");
    sti_text_add_html(&html, d->reference);
    sti_text_printf(&html, ", on %" PRId64 " next tokens of ", f->tokens);
    sti_text_add_html(&html, d->data.path);
    if (f->windows > 1)
        sti_text_printf(&html,
                        "; the difference of loss is within %+.4f and %+.4f (95 %%, "
                        "%" PRId64 " windows)",
                        f->loss_low, f->loss_high, f->windows);
    sti_page_lead(out, html.data ? html.data : "");
    out->failed |= html.failed;
    sti_text_fini(&html);
}

stint_status sti_compare_text_page(const stint_compare_desc *desc,
                                   const stint_text_fidelity *f, const char *path)
{
    sti_page_file file;
    stint_status st = sti_page_file_open(&file, path);
    if (st != STINT_OK)
        return st;
    sti_text *out = &file.text;
    sti_page_begin(out, "Stint: What changed", "What changed");
    add_lead(desc, f, out);
    add_figures(f, out);
    add_parts(out, "By place in the window", f->position, STINT_TEXT_POSITIONS);
    add_parts(out, "By how often the next token is seen", f->frequency,
              STINT_TEXT_FREQUENCIES);
    add_changes(f, out);
    sti_page_end(out, NULL);
    return sti_page_file_close(&file, STINT_OK);
}
