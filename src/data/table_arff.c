/* ARFF: "@relation NAME", "@attribute NAME numeric|{word,word}" lines, "@data", then
 * rows "1,2,word" or, without their zeros, "{0 1,2 word}" with attributes counted from
 * 0. Words may be quoted. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/memory.h"
#include "base/number.h"
#include "data/table_priv.h"

#define WORD_BYTES 1024

/* What is known after the head. */
typedef struct arff {
    sti_table_text *text;
    sti_table *table;
    int64_t attributes;
    int64_t label, label_line;              /* which of them; -1: none */
    bool label_named_class, nominal, words; /* of the label: words, not all numbers */
    const char *first_word;                 /* what a sparse row leaves out */
    size_t first_length;
    const char *list, *list_end; /* the label's words, between the braces */
    double *numbers;             /* these, ascending, where all are; or NULL */
    int64_t number_count;
} arff;

/* A word of a line, without its quotes. */
typedef struct word {
    char text[WORD_BYTES];
    size_t length;
    bool quoted;
} word;

sti_table_counts sti_table_count_arff(const char *text, const char *end)
{
    sti_table_counts counts = {0};
    for (const char *at = text; at < end; at++) {
        counts.rows += *at == '\n';
        counts.entries += *at == ',';
    }
    counts.rows += end > text && end[-1] != '\n';
    counts.entries += counts.rows;
    return counts;
}

/* The next line that is neither empty nor a comment. */
static bool next_line(sti_table_text *text, const char **from_out,
                      const char **stop_out)
{
    while (text->at < text->end) {
        const char *newline = memchr(text->at, '\n', (size_t)(text->end - text->at));
        const char *stop = newline ? newline : text->end;
        const char *from = sti_table_skip_blanks(text->at, stop);
        text->at = newline ? newline + 1 : text->end;
        text->line++;
        while (stop > from && sti_table_is_blank(stop[-1]))
            stop--;
        if (from < stop && *from != '%') {
            *from_out = from;
            *stop_out = stop;
            return true;
        }
    }
    return false;
}

/* A word that ends at a blank or one of `ends`, or a quoted one. NULL: recorded. */
static const char *take_word(const sti_table_text *text, const char *at,
                             const char *stop, const char *ends, word *w)
{
    const char quote = at < stop && (*at == '\'' || *at == '"') ? *at : '\0';
    *w = (word){.quoted = quote != '\0'};
    at += w->quoted;
    for (; at < stop; at++) {
        if (w->quoted ? *at == quote
                      : sti_table_is_blank(*at) || (*at && strchr(ends, *at)))
            break;
        if (w->quoted && *at == '\\' && at + 1 < stop)
            at++;
        if (w->length == WORD_BYTES - 1 || *at == '\0') {
            (void)sti_table_fault(text,
                                  "a word of more than %d characters, or with a "
                                  "byte 0",
                                  WORD_BYTES - 1);
            return NULL;
        }
        w->text[w->length++] = *at;
    }
    if (w->quoted && at == stop) {
        (void)sti_table_fault(text, "a quoted word without its second quote");
        return NULL;
    }
    return at + w->quoted;
}

/* ---- the head ---- */

static bool begins(const char *at, const char *stop, const char *key)
{
    const size_t length = strlen(key);
    return (size_t)(stop - at) >= length && strncasecmp(at, key, length) == 0 &&
           ((size_t)(stop - at) == length || sti_table_is_blank(at[length]));
}

/* Is this the label? The attribute named class is, or else a nominal one. */
static stint_status judge_label(arff *a, const word *name, bool nominal,
                                const char *list, const char *list_end)
{
    const bool named = strcasecmp(name->text, "class") == 0;
    if (!named && !nominal)
        return STINT_OK;
    if (a->label >= 0 && (nominal || (named && a->label_named_class)))
        return sti_table_fault(a->text,
                               "attribute '%s' would be a second label after that of "
                               "line %" PRId64 "; one nominal attribute, or one named "
                               "class, was wanted, and numbers else",
                               sti_table_quote(name->text, name->text + name->length),
                               a->label_line);
    if (a->label >= 0)
        return sti_table_fault(a->text,
                               "attribute class is a number, but line %" PRId64
                               " has a nominal attribute; one of them can be "
                               "the label",
                               a->label_line);
    a->label = a->attributes;
    a->label_line = a->text->line;
    a->label_named_class = named;
    a->nominal = nominal;
    a->list = list;
    a->list_end = list_end;
    return STINT_OK;
}

static stint_status read_attribute(arff *a, const char *at, const char *stop)
{
    word name, type;
    at = sti_table_skip_blanks(at, stop);
    at = take_word(a->text, at, stop, "{", &name);
    if (!at)
        return STINT_E_INPUT;
    at = sti_table_skip_blanks(at, stop);
    if (name.length == 0 || at == stop)
        return sti_table_fault(a->text, "'@attribute NAME numeric' or '@attribute NAME "
                                        "{word,word}' was wanted");
    const bool nominal = *at == '{';
    if (nominal && stop[-1] != '}')
        return sti_table_fault(a->text,
                               "the words of a nominal attribute end with '}'");
    if (!nominal) {
        at = take_word(a->text, at, stop, "", &type);
        if (!at)
            return STINT_E_INPUT;
        if (strcasecmp(type.text, "numeric") != 0 &&
            strcasecmp(type.text, "real") != 0 && strcasecmp(type.text, "integer") != 0)
            return sti_table_fault(a->text,
                                   "an attribute of type '%s'; numeric, real, "
                                   "integer or {words} was wanted",
                                   sti_table_quote(type.text, type.text + type.length));
    }
    const stint_status st =
        judge_label(a, &name, nominal, at + 1, stop > at ? stop - 1 : stop);
    if (++a->attributes >= STI_TABLE_INDEX_MOST)
        return sti_table_fault(a->text, "more attributes than can be counted");
    return st;
}

/* One word, which nobody asks for. */
static stint_status read_relation(const arff *a, const char *at, const char *stop)
{
    word name;
    at = take_word(a->text, sti_table_skip_blanks(at, stop), stop, "", &name);
    if (!at)
        return STINT_E_INPUT;
    if ((name.length == 0 && !name.quoted) || sti_table_skip_blanks(at, stop) < stop)
        return sti_table_fault(a->text,
                               "'@relation NAME' was wanted, a NAME of several "
                               "words in quotes");
    return STINT_OK;
}

static stint_status read_head(arff *a)
{
    const char *at, *stop;
    bool relation = false;
    stint_status st = STINT_OK;
    while (st == STINT_OK && next_line(a->text, &at, &stop)) {
        if (begins(at, stop, "@data") && relation && a->attributes > 0)
            return STINT_OK;
        if (begins(at, stop, "@relation") && !relation) {
            relation = true;
            st = read_relation(a, at + strlen("@relation"), stop);
        } else if (begins(at, stop, "@attribute") && relation) {
            st = read_attribute(a, at + strlen("@attribute"), stop);
        } else {
            return sti_table_fault(a->text,
                                   "'%s'; @relation was wanted, then @attribute lines, "
                                   "then @data",
                                   sti_table_quote(at, stop));
        }
    }
    return st != STINT_OK ? st
                          : sti_table_fault(a->text, "the file ends before any @data");
}

/* The words of the label: are all of them numbers? Each is a name otherwise. */
static stint_status read_words(arff *a, bool keep)
{
    const char *at = a->list, *after;
    double value;
    for (int64_t i = 0;; i++) {
        word w;
        at = take_word(a->text, sti_table_skip_blanks(at, a->list_end), a->list_end,
                       ",", &w);
        if (!at)
            return STINT_E_INPUT;
        at = sti_table_skip_blanks(at, a->list_end);
        if (at < a->list_end && *at != ',')
            return sti_table_fault(a->text,
                                   "'%s' after a word of the label; ',' was "
                                   "wanted",
                                   sti_table_quote(at, a->list_end));
        if (w.length == 0 && !w.quoted)
            return sti_table_fault(a->text, "an empty word of the label");
        if (!sti_number_read(w.text, w.text + w.length, &after, &value) ||
            after != w.text + w.length)
            a->words = true;
        else if (!keep)
            a->numbers[a->number_count++] = value;
        if (keep) {
            const int64_t before = a->table->name_count;
            const stint_status st = sti_table_name(a->table, w.text, w.length, &value);
            if (st != STINT_OK)
                return st;
            if (a->table->name_count == before)
                return sti_table_fault(a->text, "the label's word '%s' is there twice",
                                       sti_table_quote(w.text, w.text + w.length));
        }
        if (at == a->list_end)
            return STINT_OK;
        at++;
    }
}

static int compare(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* What the label may be. */
static stint_status read_list(arff *a)
{
    int64_t most = 1;
    for (const char *at = a->list; at < a->list_end; at++)
        most += *at == ',';
    a->numbers = sti_alloc_array(most, sizeof *a->numbers, "table.labels");
    if (!a->numbers)
        return STINT_E_MEMORY;
    const stint_status st = read_words(a, false);
    if (st != STINT_OK || a->words)
        return st == STINT_OK ? read_words(a, true) : st;
    qsort(a->numbers, (size_t)a->number_count, sizeof *a->numbers, compare);
    for (int64_t i = 1; i < a->number_count; i++)
        if (a->numbers[i] == a->numbers[i - 1])
            return sti_table_fault(a->text, "the label's number %g is there twice",
                                   a->numbers[i]);
    return STINT_OK;
}

/* ---- rows ---- */

static stint_status label_value(arff *a, const word *w, double *y_out)
{
    const char *end = w->text + w->length, *after;
    if (a->words) {
        const int64_t before = a->table->name_count;
        const stint_status st = sti_table_name(a->table, w->text, w->length, y_out);
        if (st == STINT_OK && a->table->name_count != before)
            return sti_table_fault(a->text,
                                   "label '%s' is none of the words of line "
                                   "%" PRId64,
                                   sti_table_quote(w->text, end), a->label_line);
        return st;
    }
    if (!sti_number_read(w->text, end, &after, y_out) || after != end)
        return sti_table_fault(a->text, "label '%s'; a finite number was wanted",
                               sti_table_quote(w->text, end));
    if (a->nominal && !bsearch(y_out, a->numbers, (size_t)a->number_count,
                               sizeof *a->numbers, compare))
        return sti_table_fault(a->text,
                               "label '%s' is none of the numbers of line %" PRId64,
                               sti_table_quote(w->text, end), a->label_line);
    return STINT_OK;
}

/* A value of attribute `index`; the label's place is left out of the columns. */
static stint_status put_value(arff *a, int64_t index, const word *w)
{
    const char *end = w->text + w->length, *after;
    double value;
    if (index == a->label)
        return label_value(a, w, &a->table->y[a->table->x.rows]);
    if (!sti_number_read(w->text, end, &after, &value) || after != end)
        return sti_table_fault(
            a->text,
            "value '%s' of attribute %" PRId64 "; a finite number was wanted%s",
            sti_table_quote(w->text, end), index + 1,
            strcmp(w->text, "?") == 0 ? ", missing ones are not read" : "");
    sti_table_add(a->table, index + (a->label < 0 || index < a->label), value);
    return STINT_OK;
}

static stint_status read_dense(arff *a, const char *at, const char *stop)
{
    word w;
    for (int64_t i = 0;; i++) {
        at = take_word(a->text, sti_table_skip_blanks(at, stop), stop, ",", &w);
        if (!at)
            return STINT_E_INPUT;
        at = sti_table_skip_blanks(at, stop);
        if (at < stop && *at != ',')
            return sti_table_fault(a->text,
                                   "'%s'; ',' or the end of the line was wanted",
                                   sti_table_quote(at, stop));
        if (i < a->attributes) {
            const stint_status st = put_value(a, i, &w);
            if (st != STINT_OK)
                return st;
        }
        if (at == stop && i + 1 == a->attributes)
            return STINT_OK;
        if (at == stop || i >= a->attributes)
            return sti_table_fault(
                a->text, "%s%" PRId64 " values; there are %" PRId64 " attributes",
                at == stop ? "" : "more than ", i + (at == stop), a->attributes);
        at++;
    }
}

/* The number of an attribute before its value in a sparse row. */
static stint_status read_place(const arff *a, const word *w, int64_t *place)
{
    const int64_t before = *place;
    double value;
    const char *end = w->text + w->length, *after;
    if (!sti_number_read(w->text, end, &after, &value) || after != end ||
        !(value >= 0 && value < (double)a->attributes) ||
        value != (double)(int64_t)value)
        return sti_table_fault(a->text,
                               "'%s'; the number of an attribute, 0 to %" PRId64
                               ", and a value were wanted",
                               sti_table_quote(w->text, end), a->attributes - 1);
    *place = (int64_t)value;
    if (*place <= before)
        return sti_table_fault(a->text,
                               "attribute %" PRId64 " comes after %" PRId64
                               "; they must ascend within a row",
                               *place, before);
    return STINT_OK;
}

/* Between the braces. */
static stint_status read_sparse(arff *a, const char *at, const char *stop)
{
    int64_t place = -1;
    word w;
    stint_status st = STINT_OK;
    if (a->label >= 0) {
        word first = {.length = a->first_length};
        memcpy(first.text, a->first_word, a->first_length);
        STI_TRY(label_value(a, &first, &a->table->y[a->table->x.rows]));
    }
    at = sti_table_skip_blanks(at, stop);
    while (at < stop) {
        st = STINT_E_INPUT;
        if (!(at = take_word(a->text, at, stop, ",", &w)))
            goto out;
        STI_TRY(read_place(a, &w, &place));
        st = STINT_E_INPUT;
        if (!(at = take_word(a->text, sti_table_skip_blanks(at, stop), stop, ",", &w)))
            goto out;
        STI_TRY(put_value(a, place, &w));
        at = sti_table_skip_blanks(at, stop);
        if (at < stop && *at != ',')
            return sti_table_fault(a->text, "'%s'; ',' or '}' was wanted",
                                   sti_table_quote(at, stop));
        at = at < stop ? sti_table_skip_blanks(at + 1, stop) : at;
    }
out:
    return st;
}

static stint_status read_rows(arff *a)
{
    const char *at, *stop;
    stint_status st = STINT_OK;
    while (st == STINT_OK && next_line(a->text, &at, &stop)) {
        if (*at != '{')
            st = read_dense(a, at, stop);
        else if (stop[-1] == '}' && stop - at >= 2)
            st = read_sparse(a, at + 1, stop - 1);
        else
            st = sti_table_fault(a->text, "a sparse row ends with '}'");
        if (st == STINT_OK)
            sti_table_end_row(a->table);
    }
    return st;
}

/* The first word of a nominal label, or 0. */
static stint_status find_first(arff *a, word *first)
{
    *first = (word){.text = "0", .length = 1};
    if (a->nominal && !take_word(a->text, sti_table_skip_blanks(a->list, a->list_end),
                                 a->list_end, ",", first))
        return STINT_E_INPUT;
    a->first_word = first->text;
    a->first_length = first->length;
    return STINT_OK;
}

stint_status sti_table_parse_arff(sti_table_text *text, sti_table *table)
{
    const sti_table_counts counts = sti_table_count_arff(text->at, text->end);
    arff a = {.text = text, .table = table, .label = -1};
    word first;
    stint_status st;
    STI_TRY(read_head(&a));
    STI_TRY(sti_table_reserve(table, &counts, a.label >= 0));
    STI_TRY(find_first(&a, &first));
    const int64_t line = text->line;
    if (a.nominal) { /* complaints name the line that has the words */
        text->line = a.label_line;
        STI_TRY(read_list(&a));
        text->line = line;
    }
    STI_TRY(read_rows(&a));
    table->x.columns = 1 + a.attributes - (a.label >= 0);
out:
    sti_free(a.numbers);
    return st;
}
