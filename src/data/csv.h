/* Inside the data room: lines of comma-separated fields (RFC 4180, but a field ends
 * with its line). */
#ifndef STI_DATA_CSV_H
#define STI_DATA_CSV_H

#include <stddef.h>
#include <stdint.h>

enum { STI_CSV_FIELDS = 64 };

/* A walk over text that is NUL-terminated and is written to. */
typedef struct sti_csv {
    char *next;
    int64_t line;                /* of the fields, counted from 1 */
    char separator;              /* by the first line: a comma, semicolon or tab */
    char *field[STI_CSV_FIELDS]; /* [count], without quotes and blanks around them */
    int count;                   /* fields beyond the bound are passed over */
} sti_csv;

/* Begins at the start of the text, after a byte-order mark. */
void sti_csv_begin(sti_csv *csv, char *text);
/* The next line that is not empty. 1: there is one; 0: the end; -1: a quote is not
 * closed on csv->line. */
int sti_csv_next(sti_csv *csv);

#endif
