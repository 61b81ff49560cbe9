#include "data/csv.h"

#include <stdbool.h>
#include <string.h>

void sti_csv_begin(sti_csv *csv, char *text)
{
    *csv = (sti_csv){.next = text, .separator = ','};
    if (strncmp(text, "\xef\xbb\xbf", 3) == 0)
        csv->next += 3;
    const size_t first = strcspn(csv->next, "\r\n");
    if (memchr(csv->next, ',', first))
        return;
    if (memchr(csv->next, ';', first))
        csv->separator = ';';
    else if (memchr(csv->next, '\t', first))
        csv->separator = '\t';
}

static bool is_blank(char c)
{
    return c == ' ' || c == '\t';
}

/* The text of a quoted field, in place; `at` is after the opening quote. Returns the
 * place after the closing one, or NULL. */
static char *unquote(char *at)
{
    char *to = at;
    for (; *at && *at != '\n' && *at != '\r'; at++) {
        if (*at == '"' && at[1] != '"') {
            /* Before the end is written, which may be the quote's own place. */
            *to = '\0';
            return at + 1;
        }
        at += *at == '"';
        *to++ = *at;
    }
    return NULL;
}

/* One field from csv->next on; what ends it is left in *end_out. */
static bool read_field(sti_csv *csv, char *end_out)
{
    char *at = csv->next, *field;
    while (is_blank(*at) && *at != csv->separator)
        at++;
    const bool quoted = *at == '"';
    field = quoted ? at + 1 : at;
    if (quoted && !(at = unquote(at + 1)))
        return false;
    char *last = at;
    for (; *at && *at != '\n' && *at != '\r' && *at != csv->separator; at++)
        if (!quoted && !is_blank(*at))
            last = at + 1;
    *end_out = *at;
    csv->next = *at ? at + 1 : at;
    if (!quoted)
        *last = '\0';
    if (csv->count < STI_CSV_FIELDS)
        csv->field[csv->count++] = field;
    return true;
}

int sti_csv_next(sti_csv *csv)
{
    while (*csv->next) {
        char end = '\0';
        csv->line++;
        csv->count = 0;
        do {
            if (!read_field(csv, &end))
                return -1;
        } while (end == csv->separator);
        if (end == '\r' && *csv->next == '\n')
            csv->next++;
        if (csv->count > 1 || csv->field[0][0])
            return 1;
    }
    return 0;
}
