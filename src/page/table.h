/* Tables of a page. A table is begun with its columns, filled row by row, cell by cell,
 * and ended; on a narrow screen it can be pushed sideways in its frame. */
#ifndef STI_PAGE_TABLE_H
#define STI_PAGE_TABLE_H

#include "page/page.h"

typedef struct sti_table_column {
    const char *name;
    bool number; /* right-aligned, in digits of one width */
    bool key;    /* with a dash of `colour` before the name */
    sti_page_colour colour;
} sti_table_column;

/* A table of these columns, to be followed by rows. */
void sti_table_begin(sti_text *out, const sti_table_column *columns, int count);
void sti_table_end(sti_text *out);

/* A table whose rows end in a cell of bars (sti_table_bars): on a narrow screen the
 * bars get a line of their own under two numbers. columns: [3], without the bars. */
void sti_table_begin_barred(sti_text *out, const sti_table_column columns[3]);

void sti_table_row(sti_text *out);
/* The last row of a sum. */
void sti_table_row_sum(sti_text *out);
void sti_table_row_end(sti_text *out);

/* A cell of words; detail, in small letters below them, may be NULL or empty. */
void sti_table_words(sti_text *out, const char *words, const char *detail);
/* A cell of a number and its unit, right-aligned. */
void sti_table_number(sti_text *out, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
/* A size like "1.5 MiB"; an empty cell for NaN. */
void sti_table_bytes(sti_text *out, double bytes);
/* Two bars, the colours FIRST and SECOND, as shares of `whole`; NaN: no such bar. */
void sti_table_bars(sti_text *out, double first, double second, double whole);

/* Rows that are shown only when the reader opens them: a table with a summary line. */
void sti_table_fold_begin(sti_text *out, const char *summary,
                          const sti_table_column *columns, int count);
void sti_table_fold_end(sti_text *out);

#endif
