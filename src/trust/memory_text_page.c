#include "trust/memory_text_page.h"

#include <inttypes.h>
#include <stdio.h>

#include "page/page.h"
#include "page/table.h"

static void add_figures(const stint_memory_text *m, sti_text *out)
{
    char words[48];
    sti_page_figures_begin(out);
    (void)snprintf(words, sizeof words, "%" PRId64, m->memorised);
    sti_page_figure(out, words, "memorised passages");
    (void)snprintf(words, sizeof words, "%.1f", m->memorised_chance);
    sti_page_figure(out, words, "expected by chance");
    (void)snprintf(words, sizeof words, "%.4f", m->unseen_loss);
    sti_page_figure(out, words, "nats a token, passages not seen");
    (void)snprintf(words, sizeof words, "%.4f", m->seen_loss);
    sti_page_figure(out, words, "nats a token, passages seen");
    sti_page_figures_end(out);
}

static void add_passages(const stint_memory_text *m, sti_text *out)
{
    static const sti_table_column columns[] = {{.name = "passage"},
                                               {.name = "saved", .number = true},
                                               {.name = "error", .number = true},
                                               {.name = "seen", .number = true},
                                               {.name = "not seen", .number = true}};
    sti_page_section(out, "Remembered most");
    sti_page_card_begin(out);
    sti_table_begin(out, columns, sizeof columns / sizeof columns[0]);
    for (int64_t k = 0; k < m->told; k++) {
        const stint_memory_passage *p = &m->passage[k];
        char place[48];
        (void)snprintf(place, sizeof place, "from token %" PRId64, p->token);
        sti_table_row(out);
        sti_table_words(out, p->text, place);
        sti_table_number(out, "%.3f", p->memorisation);
        sti_table_number(out, "%.3f", p->error);
        sti_table_number(out, "%.3f", p->seen);
        sti_table_number(out, "%.3f", p->unseen);
        sti_table_row_end(out);
    }
    sti_table_end(out);
    sti_page_card_end(out);
    sti_page_section_end(out);
}

stint_status sti_memory_text_page(const stint_memory_text *m, const char *path)
{
    sti_page_file file;
    sti_text lead = {0};
    stint_status st = sti_page_file_open(&file, path);
    if (st != STINT_OK)
        return st;
    sti_text *out = &file.text;
    sti_page_begin(out, "Stint: What was memorised", "What was memorised");
    sti_text_printf(&lead,
                    "%" PRId64 " networks, each trained on %g of %" PRId64
                    " passages of %" PRId64 " tokens; memorised: from %g nats a token "
                    "saved by having seen it",
                    m->runs, m->fraction, m->passages, m->context, m->memorised_from);
    sti_page_lead(out, lead.data ? lead.data : "");
    out->failed |= lead.failed;
    sti_text_fini(&lead);
    add_figures(m, out);
    add_passages(m, out);
    sti_page_end(out, NULL);
    return sti_page_file_close(&file, STINT_OK);
}
