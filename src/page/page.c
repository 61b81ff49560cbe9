#include "page/page.h"

#include <stdarg.h>
#include <stdio.h>

#include "base/fail.h"
#include "base/memory.h"
#include "page/page_priv.h"

enum { FLUSH_BYTES = 1 << 16, NOTE_BYTES = 1024, NAME_LETTERS_MAX = 16 };

const char *sti_page_colour_class(sti_page_colour colour)
{
    static const char *const classes[] = {"plain", "first", "second", "faint"};
    return classes[colour];
}

/* ---- the file of a page ---- */

stint_status sti_page_file_open(sti_page_file *file, const char *path)
{
    *file = (sti_page_file){0};
    return sti_writer_open(path, &file->writer);
}

static stint_status write_gathered(sti_page_file *file)
{
    sti_text *text = &file->text;
    if (text->failed)
        return sti_fail(STINT_E_MEMORY, "out of memory for the page");
    stint_status st = sti_writer_add(file->writer, text->data, text->length);
    text->length = 0;
    return st;
}

stint_status sti_page_file_flush(sti_page_file *file)
{
    return file->text.failed || file->text.length >= FLUSH_BYTES ? write_gathered(file)
                                                                 : STINT_OK;
}

stint_status sti_page_file_close(sti_page_file *file, stint_status status)
{
    if (status == STINT_OK)
        status = write_gathered(file);
    if (status == STINT_OK)
        status = sti_writer_commit(file->writer);
    else
        sti_writer_abort(file->writer);
    sti_text_fini(&file->text);
    *file = (sti_page_file){0};
    return status;
}

/* ---- frame ---- */

void sti_page_begin(sti_text *out, const char *title, const char *heading)
{
    sti_text_add(out,
                 "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">"
                 "<meta name=\"viewport\" content=\"width=device-width,"
                 "initial-scale=1\">\n<title>");
    sti_text_add_html(out, title ? title : heading);
    sti_text_add(out, "</title>\n<style>\n");
    for (int i = 0; sti_page_style[i]; i++)
        sti_text_add(out, sti_page_style[i]);
    sti_text_add(out, "</style></head>\n<body><main>\n<h1>");
    sti_text_add_html(out, heading);
    sti_text_add(out, "</h1>\n");
}

void sti_page_lead(sti_text *out, const char *html)
{
    sti_text_printf(out, "<p class=\"lead\">%s</p>\n", html);
}

void sti_page_end(sti_text *out, const char *footer)
{
    if (footer) {
        sti_text_add(out, "<footer>");
        sti_text_add_html(out, footer);
        sti_text_add(out, "</footer>\n");
    }
    sti_text_add(out, "</main></body></html>\n");
}

void sti_page_section(sti_text *out, const char *heading)
{
    sti_text_add(out, "<section><h2>");
    sti_text_add_html(out, heading);
    sti_text_add(out, "</h2>\n");
}

void sti_page_section_end(sti_text *out)
{
    sti_text_add(out, "</section>\n");
}

void sti_page_note(sti_text *out, const char *format, ...)
{
    char words[NOTE_BYTES];
    va_list args;
    va_start(args, format);
    (void)vsnprintf(words, sizeof words, format, args);
    va_end(args);
    sti_text_add(out, "<p class=\"note\">");
    sti_text_add_html(out, words);
    sti_text_add(out, "</p>\n");
}

/* ---- cards ---- */

void sti_page_figures_begin(sti_text *out)
{
    sti_text_add(out, "<div class=\"figures\">\n");
}

void sti_page_figure(sti_text *out, const char *value, const char *meaning)
{
    sti_text_add(out, "<div class=\"card\"><b>");
    sti_text_add_html(out, value);
    sti_text_add(out, "</b><span>");
    sti_text_add_html(out, meaning);
    sti_text_add(out, "</span></div>\n");
}

void sti_page_figures_end(sti_text *out)
{
    sti_text_add(out, "</div>\n");
}

void sti_page_card_begin(sti_text *out)
{
    sti_text_add(out, "<div class=\"card\">\n");
}

void sti_page_card_end(sti_text *out)
{
    sti_text_add(out, "</div>\n");
}

void sti_page_columns_begin(sti_text *out)
{
    sti_text_add(out, "<div class=\"columns\">\n");
}

void sti_page_columns_end(sti_text *out)
{
    sti_text_add(out, "</div>\n");
}

void sti_page_facts_begin(sti_text *out)
{
    sti_text_add(out, "<div class=\"card\"><dl>\n");
}

void sti_page_fact(sti_text *out, const char *name, const char *value)
{
    if (!value || !*value)
        return;
    sti_text_add(out, "<dt>");
    sti_text_add_html(out, name);
    sti_text_add(out, "</dt><dd>");
    sti_text_add_html(out, value);
    sti_text_add(out, "</dd>\n");
}

void sti_page_facts_end(sti_text *out)
{
    sti_text_add(out, "</dl></div>\n");
}

void sti_page_preformatted(sti_text *out, const char *words)
{
    sti_text_add(out, "<div class=\"card\"><pre>");
    sti_text_add_html(out, words);
    sti_text_add(out, "</pre></div>\n");
}

void sti_page_shares_begin(sti_text *out, size_t longest_name)
{
    const size_t letters = longest_name < 2                  ? 2
                           : longest_name > NAME_LETTERS_MAX ? NAME_LETTERS_MAX
                                                             : longest_name;
    sti_text_printf(out, "<div class=\"card shares\" style=\"--name:%zuch\">\n",
                    letters);
}

void sti_page_share(sti_text *out, const char *name, double percent,
                    const char *tooltip)
{
    sti_text_add(out, "<div class=\"share\" title=\"");
    sti_text_add_html(out, tooltip);
    sti_text_add(out, "\"><span>");
    sti_text_add_html(out, name);
    sti_text_printf(
        out,
        "</span><span class=\"track\"><i class=\"bar\" "
        "style=\"width:%.1f%%\"></i></span><span>%.1f&nbsp;%%</span></div>\n",
        percent, percent);
}

void sti_page_shares_end(sti_text *out)
{
    sti_text_add(out, "</div>\n");
}

/* ---- pictures ---- */

void sti_page_sheet_begin(sti_text *out)
{
    sti_text_add(out, "<div class=\"sheet\">\n");
}

void sti_page_large_sheet_begin(sti_text *out)
{
    sti_text_add(out, "<div class=\"sheet large\">\n");
}

void sti_page_picture_begin(sti_text *out)
{
    sti_text_add(out, "<figure>");
}

void sti_page_image(sti_text *out, const void *png, size_t n_bytes, const char *tooltip)
{
    sti_text_add(out, "<img title=\"");
    sti_text_add_html(out, tooltip);
    sti_text_add(out, "\" alt=\"\" src=\"data:image/png;base64,");
    sti_text_add_base64(out, png, n_bytes);
    sti_text_add(out, "\">");
}

void sti_page_picture_end(sti_text *out, const char *html)
{
    sti_text_printf(out, "<figcaption>%s</figcaption></figure>\n", html);
}

void sti_page_sheet_end(sti_text *out)
{
    sti_text_add(out, "</div>\n");
}
