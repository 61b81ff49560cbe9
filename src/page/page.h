/* Pages: what a report of any room is made of.
 *
 * A page is one HTML file without scripts or outside parts; it follows the reader's
 * light or dark setting and becomes one column on a narrow screen. Every part is a
 * function that appends to a text; whatever words it is given are escaped, unless a
 * parameter is named html. Charts are in page/chart.h and page/strips.h, tables in
 * page/table.h. A text whose memory ran out is `failed`: look once, at the end
 * (sti_page_file_flush does). */
#ifndef STI_PAGE_PAGE_H
#define STI_PAGE_PAGE_H

#include <stdbool.h>
#include <stddef.h>

#include "base/file.h"
#include "base/text.h"
#include "stint/status.h"

/* Colours that mean the same in curves, bars and legends of a page. */
typedef enum sti_page_colour {
    STI_PAGE_PLAIN,  /* a thing that stands alone */
    STI_PAGE_FIRST,  /* the first of two: training, planned */
    STI_PAGE_SECOND, /* the second: test, measured */
    STI_PAGE_FAINT   /* the first again, in the background */
} sti_page_colour;

/* The CSS class of a colour. */
const char *sti_page_colour_class(sti_page_colour colour);

/* ---- the file of a page ---- */

/* A page on its way to a file: what is in `text` has not been written yet. */
typedef struct sti_page_file {
    sti_writer *writer;
    sti_text text;
} sti_page_file;

/* Opens path for a new page; the old file stays until the close. STINT_E_IO. */
stint_status sti_page_file_open(sti_page_file *file, const char *path);
/* Writes what has gathered once that is some 64 KiB, so that a page of many pictures
 * needs little memory. STINT_E_MEMORY when the text had failed; STINT_E_IO. */
stint_status sti_page_file_flush(sti_page_file *file);
/* Ends the page: with STINT_OK the file takes its place at once, with any other status
 * the old file stays. Frees all, also after a failed open. Gives `status` back, or what
 * went wrong meanwhile. */
stint_status sti_page_file_close(sti_page_file *file, stint_status status);

/* ---- frame ---- */

/* Everything up to and with the heading. title: of the window, NULL: as the heading. */
void sti_page_begin(sti_text *out, const char *title, const char *heading);
/* The line under the heading, of HTML that the caller has escaped. */
void sti_page_lead(sti_text *out, const char *html);
/* Everything from the end of the last section; footer NULL: none. */
void sti_page_end(sti_text *out, const char *footer);

/* A part of the page under a heading of its own, up to the section's end. */
void sti_page_section(sti_text *out, const char *heading);
void sti_page_section_end(sti_text *out);
/* A remark in smaller letters. */
void sti_page_note(sti_text *out, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* ---- cards ---- */

/* Cards with one number each, side by side: any number of sti_page_figure between begin
 * and end. */
void sti_page_figures_begin(sti_text *out);
void sti_page_figure(sti_text *out, const char *value, const char *meaning);
void sti_page_figures_end(sti_text *out);

/* A frame around a table, a chart or words. */
void sti_page_card_begin(sti_text *out);
void sti_page_card_end(sti_text *out);
/* Cards side by side where there is room for two: charts, or a recipe and a machine. */
void sti_page_columns_begin(sti_text *out);
void sti_page_columns_end(sti_text *out);

/* Names and values, a line each, between begin and end; no value, no line. */
void sti_page_facts_begin(sti_text *out);
void sti_page_fact(sti_text *out, const char *name, const char *value);
void sti_page_facts_end(sti_text *out);

/* Text as it is, in letters of equal width, in a card. */
void sti_page_preformatted(sti_text *out, const char *words);

/* Shares with their names, in as many columns as there is room for. longest_name: in
 * letters, for the width of the names. percent: 0..100. */
void sti_page_shares_begin(sti_text *out, size_t longest_name);
void sti_page_share(sti_text *out, const char *name, double percent,
                    const char *tooltip);
void sti_page_shares_end(sti_text *out);

/* ---- pictures ---- */

/* A sheet of pictures with captions. Between begin and end: figures, each with any
 * number of images and one caption. */
void sti_page_sheet_begin(sti_text *out);
/* The same with three large pictures beside each other, on any screen. */
void sti_page_large_sheet_begin(sti_text *out);
void sti_page_picture_begin(sti_text *out);
/* One image from the bytes of a PNG file, which become part of the page. */
void sti_page_image(sti_text *out, const void *png, size_t n_bytes,
                    const char *tooltip);
/* Ends the picture with its caption, HTML that the caller has escaped. */
void sti_page_picture_end(sti_text *out, const char *html);
void sti_page_sheet_end(sti_text *out);

#endif
