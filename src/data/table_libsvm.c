/* LIBSVM text: "label index:value index:value ..." a line. */
#include <inttypes.h>
#include <string.h>

#include "base/number.h"
#include "data/table_priv.h"

sti_table_counts sti_table_count_libsvm(const char *text, const char *end)
{
    sti_table_counts counts = {0};
    for (const char *at = text; at < end; at++) {
        counts.rows += *at == '\n';
        counts.entries += *at == ':';
    }
    counts.rows += end > text && end[-1] != '\n';
    return counts;
}

static const char *word_end(const char *at, const char *end)
{
    while (at < end && !sti_table_is_blank(*at))
        at++;
    return at;
}

/* The end of what counts of the line at `at`: the newline, or a comment before it. */
static const char *line_end(const char *at, const char *end, const char **next_out)
{
    const char *newline = memchr(at, '\n', (size_t)(end - at));
    const char *stop = newline ? newline : end;
    *next_out = newline ? newline + 1 : end;
    const char *comment = memchr(at, '#', (size_t)(stop - at));
    return comment ? comment : stop;
}

/* The first word of the next row; false: there is none. A line that holds a comment
 * alone is passed over. */
static bool next_row(sti_table_text *text, const char **from_out, const char **stop_out)
{
    while (text->at < text->end) {
        const char *next, *begin = text->at;
        const char *stop = line_end(begin, text->end, &next);
        const char *from = sti_table_skip_blanks(begin, stop);
        text->at = next;
        text->line++;
        if (from == stop && (*stop_out = stop, stop < text->end && *stop == '#'))
            continue;
        *from_out = from;
        *stop_out = stop;
        return true;
    }
    return false;
}

/* What the first words of all lines are. */
typedef struct labels_seen {
    bool any, none, words; /* a line with, a line without; one that is no number */
    int64_t with_line, without_line;
} labels_seen;

static labels_seen look_at_labels(sti_table_text text)
{
    labels_seen seen = {0};
    const char *from, *stop, *after;
    double value;
    while (next_row(&text, &from, &stop)) {
        const char *end = word_end(from, stop);
        if (from == stop)
            continue;
        if (memchr(from, ':', (size_t)(end - from))) {
            seen.without_line = seen.none ? seen.without_line : text.line;
            seen.none = true;
            continue;
        }
        seen.with_line = seen.any ? seen.with_line : text.line;
        seen.any = true;
        if (!sti_number_read(from, end, &after, &value) || after != end)
            seen.words = true;
    }
    return seen;
}

static bool is_not_a_number(const char *at, const char *end)
{
    static const char *const words[] = {"nan", "inf", "infinity"};
    at += at < end && (*at == '-' || *at == '+');
    for (int i = 0; i < 3; i++) {
        const size_t length = strlen(words[i]);
        size_t same = 0;
        while (same < length && at + same < end && (at[same] | 32) == words[i][same])
            same++;
        if (same == length && at + same == end)
            return true;
    }
    return false;
}

static stint_status read_label(const sti_table_text *text, const char *at,
                               const char *end, bool words, sti_table *table)
{
    double *y = &table->y[table->x.rows];
    const char *after;
    if (is_not_a_number(at, end))
        return sti_table_fault(text,
                               "the label is %s; a finite number or a word was "
                               "wanted",
                               sti_table_quote(at, end));
    if (words)
        return sti_table_name(table, at, (size_t)(end - at), y);
    (void)sti_number_read(at, end, &after, y);
    return STINT_OK;
}

stint_status sti_libsvm_entry(const sti_table_text *text, const char *at,
                              const char *end, int64_t *index_out, double *value_out)
{
    const char *colon = memchr(at, ':', (size_t)(end - at)), *after;
    if (!colon || !sti_digits_read(at, colon, STI_TABLE_INDEX_MOST - 1, index_out))
        return sti_table_fault(text,
                               "'%s': index:value was wanted, the index a whole "
                               "number from 1 (or 0) to %d",
                               sti_table_quote(at, end), STI_TABLE_INDEX_MOST - 1);
    if (!sti_number_read(colon + 1, end, &after, value_out) || after != end)
        return sti_table_fault(
            text, "value '%s' of index %" PRId64 "; a finite number was wanted",
            sti_table_quote(colon + 1, end), *index_out);
    return STINT_OK;
}

/* "index:value" between the two, into the row. */
static stint_status read_entry(const sti_table_text *text, const char *at,
                               const char *end, int64_t *last, sti_table *table)
{
    const int64_t before = *last;
    double value;
    const stint_status st = sti_libsvm_entry(text, at, end, last, &value);
    if (st != STINT_OK)
        return st;
    if (*last <= before)
        return sti_table_fault(text,
                               "index %" PRId64 " comes after %" PRId64
                               "; indices must ascend within a line",
                               *last, before);
    if (*last == 0)
        table->first = 0;
    sti_table_add(table, *last, value);
    return STINT_OK;
}

/* A row's entries, its label passed over where there is one. */
static stint_status read_entries(const sti_table_text *text, const char *at,
                                 const char *stop, bool labelled, sti_table *table)
{
    int64_t last = -1;
    stint_status st = STINT_OK;
    if (labelled)
        at = sti_table_skip_blanks(word_end(at, stop), stop);
    while (at < stop) {
        const char *end = word_end(at, stop);
        STI_TRY(read_entry(text, at, end, &last, table));
        at = sti_table_skip_blanks(end, stop);
    }
    sti_table_end_row(table);
out:
    return st;
}

stint_status sti_libsvm_rows(sti_table_text *text, sti_libsvm_labels labels,
                             sti_table *table)
{
    const char *from, *stop;
    stint_status st = STINT_OK;
    while (st == STINT_OK && next_row(text, &from, &stop)) {
        if (from == stop)
            return sti_table_fault(text, "an empty line; every line is a row");
        if (labels == STI_LIBSVM_NUMBERS || labels == STI_LIBSVM_WORDS)
            st = read_label(text, from, word_end(from, stop),
                            labels == STI_LIBSVM_WORDS, table);
        if (st == STINT_OK)
            st = read_entries(text, from, stop, labels != STI_LIBSVM_NO_LABELS, table);
    }
    return st;
}

stint_status sti_libsvm_labels_read(sti_table_text *text, bool words, sti_table *table)
{
    const char *from, *stop;
    stint_status st = STINT_OK;
    for (table->x.rows = 0; st == STINT_OK && next_row(text, &from, &stop);
         table->x.rows++)
        st = read_label(text, from, word_end(from, stop), words, table);
    return st;
}

stint_status sti_libsvm_look_at_labels(const sti_table_text *text,
                                       sti_libsvm_labels *labels_out)
{
    const labels_seen seen = look_at_labels(*text);
    sti_table_text at = *text;
    *labels_out = !seen.any    ? STI_LIBSVM_NO_LABELS
                  : seen.words ? STI_LIBSVM_WORDS
                               : STI_LIBSVM_NUMBERS;
    at.line = seen.without_line;
    return seen.any && seen.none
               ? sti_table_fault(&at,
                                 "no label, but line %" PRId64
                                 " has one; all lines have a label or none does",
                                 seen.with_line)
               : STINT_OK;
}
