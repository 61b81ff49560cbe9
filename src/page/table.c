#include "page/table.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>

#include "base/units.h"

enum { NUMBER_BYTES = 256 };

static void add_heads(sti_text *out, const sti_table_column *columns, int count)
{
    sti_text_add(out, "<tr>");
    for (int i = 0; i < count; i++) {
        const sti_table_column *c = &columns[i];
        sti_text_add(out, c->number ? "<th class=\"n\">" : "<th>");
        if (c->key)
            sti_text_printf(out, "<i class=\"key %s\"></i>",
                            sti_page_colour_class(c->colour));
        sti_text_add_html(out, c->name);
        sti_text_add(out, "</th>");
    }
}

void sti_table_begin(sti_text *out, const sti_table_column *columns, int count)
{
    sti_text_add(out, "<div class=\"wide\"><table>");
    add_heads(out, columns, count);
    sti_text_add(out, "</tr>\n");
}

void sti_table_begin_barred(sti_text *out, const sti_table_column columns[3])
{
    sti_text_add(out, "<div class=\"wide\"><table class=\"barred\">");
    add_heads(out, columns, 3);
    sti_text_add(out, "<th class=\"bars\"></th></tr>\n");
}

void sti_table_end(sti_text *out)
{
    sti_text_add(out, "</table></div>\n");
}

void sti_table_row(sti_text *out)
{
    sti_text_add(out, "<tr>");
}

void sti_table_row_sum(sti_text *out)
{
    sti_text_add(out, "<tr class=\"sum\">");
}

void sti_table_row_end(sti_text *out)
{
    sti_text_add(out, "</tr>\n");
}

void sti_table_words(sti_text *out, const char *words, const char *detail)
{
    sti_text_add(out, "<td>");
    sti_text_add_html(out, words);
    if (detail && *detail) {
        sti_text_add(out, "<small>");
        sti_text_add_html(out, detail);
        sti_text_add(out, "</small>");
    }
    sti_text_add(out, "</td>");
}

void sti_table_number(sti_text *out, const char *format, ...)
{
    char words[NUMBER_BYTES];
    va_list args;
    va_start(args, format);
    (void)vsnprintf(words, sizeof words, format, args);
    va_end(args);
    sti_text_add(out, "<td class=\"n\">");
    sti_text_add_html(out, words);
    sti_text_add(out, "</td>");
}

void sti_table_bytes(sti_text *out, double bytes)
{
    sti_table_number(out, "%s",
                     isfinite(bytes) ? sti_bytes_text((size_t)fmax(bytes, 0)) : "");
}

static void add_bar(sti_text *out, double share, sti_page_colour colour)
{
    if (isfinite(share))
        sti_text_printf(out, "<i class=\"bar %s\" style=\"width:%.2f%%\"></i>",
                        sti_page_colour_class(colour), 100 * share);
}

void sti_table_bars(sti_text *out, double first, double second, double whole)
{
    sti_text_add(out, "<td class=\"bars\">");
    add_bar(out, first / whole, STI_PAGE_FIRST);
    add_bar(out, second / whole, STI_PAGE_SECOND);
    sti_text_add(out, "</td>");
}

void sti_table_fold_begin(sti_text *out, const char *summary,
                          const sti_table_column *columns, int count)
{
    sti_text_add(out, "<details><summary>");
    sti_text_add_html(out, summary);
    sti_text_add(out, "</summary>");
    sti_table_begin(out, columns, count);
}

void sti_table_fold_end(sti_text *out)
{
    sti_table_end(out);
    sti_text_add(out, "</details>\n");
}
