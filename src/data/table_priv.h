/* Inside the data room: tables while they are filled. */
#ifndef STI_DATA_TABLE_PRIV_H
#define STI_DATA_TABLE_PRIV_H

#include "base/fail.h"
#include "data/data_table.h"

/* The largest index of a column, and the most different words that label rows. */
#define STI_TABLE_INDEX_MOST INT32_MAX
#define STI_TABLE_NAMES_MOST 10000

/* A text and how far it is read. */
typedef struct sti_table_text {
    const char *name, *at, *end; /* of the file; the line's place; the text's end */
    int64_t line;                /* counted from 1 */
} sti_table_text;

/* At most so many rows and values that are not 0. */
typedef struct sti_table_counts {
    int64_t rows, entries;
} sti_table_counts;

/* Blanks within a line; the first character from `at` on that is none, or `end`. */
static inline bool sti_table_is_blank(char c)
{
    return c == ' ' || c == '\t' || c == '\r';
}

static inline const char *sti_table_skip_blanks(const char *at, const char *end)
{
    while (at < end && sti_table_is_blank(*at))
        at++;
    return at;
}

size_t sti_table_counts_bytes(const sti_table_counts *counts);

/* Arrays for so many; labels: y, too. */
stint_status sti_table_reserve(sti_table *table, const sti_table_counts *counts,
                               bool labels);
/* Append a value to the row that is being filled; zeros are left out. */
void sti_table_add(sti_table *table, int64_t column, double value);
/* The row is complete. */
void sti_table_end_row(sti_table *table);
/* The number of a label that is a word, added when new. */
stint_status sti_table_name(sti_table *table, const char *word, size_t length,
                            double *y_out);
/* STINT_E_INPUT with file and line in front. */
stint_status sti_table_fault(const sti_table_text *text, const char *format, ...)
    STI_PRINTF(2, 3);
/* A piece of the text for a message, cut short; in one of a few buffers. */
const char *sti_table_quote(const char *at, const char *end);

/* "index:value" of LIBSVM text between the two. STINT_E_INPUT with file and line. */
stint_status sti_libsvm_entry(const sti_table_text *text, const char *at,
                              const char *end, int64_t *index_out, double *value_out);

sti_table_counts sti_table_count_libsvm(const char *text, const char *end);
sti_table_counts sti_table_count_arff(const char *text, const char *end);

/* What the first words of lines are. */
typedef enum sti_libsvm_labels {
    STI_LIBSVM_NO_LABELS,
    STI_LIBSVM_NUMBERS,
    STI_LIBSVM_WORDS,
    STI_LIBSVM_PASSED_OVER /* there are some, which are not read */
} sti_libsvm_labels;

/* All rows of LIBSVM text behind those of a table; only the labels of a text whose rows
 * are there. */
stint_status sti_libsvm_rows(sti_table_text *text, sti_libsvm_labels labels,
                             sti_table *table);
stint_status sti_libsvm_labels_read(sti_table_text *text, bool words, sti_table *table);
/* What the labels of a text are. STINT_E_INPUT: on some lines only. */
stint_status sti_libsvm_look_at_labels(const sti_table_text *text,
                                       sti_libsvm_labels *labels_out);

stint_status sti_table_parse_libsvm(sti_table_text *text, int threads,
                                    sti_table *table);
stint_status sti_table_parse_arff(sti_table_text *text, sti_table *table);
stint_status sti_table_read_images(const sti_table_desc *desc, sti_table *table);

#endif
