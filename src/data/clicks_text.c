/* Click data as text: one line a sample, in four formats. */
#define _GNU_SOURCE /* getline */
#include "data/clicks_text.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/fail.h"
#include "base/number.h"
#include "base/shown.h"
#include "data/clicks_columns.h"
#include "data/table_priv.h"

enum { CRITEO_NUMBERS = 13, CRITEO_IDS = 26 };

const char *sti_clicks_format_name(sti_clicks_format format)
{
    static const char *const names[] = {"criteo", "csv", "libsvm", "libffm"};
    return names[format];
}

/* ---- failures and lines ---- */

static stint_status fault(const sti_click_text *t, const char *column, const char *at,
                          const char *end, const char *wanted)
{
    const sti_table_text where = {.name = t->desc->path, .line = t->number};
    return sti_table_fault(&where, "%s%s'%s'; %s", column, *column ? ": " : "",
                           sti_table_quote(at, end), wanted);
}

/* The next line without its end; false: there is none, or it cannot be read. */
static bool next_line(sti_click_text *t, const char **end_out)
{
    const ssize_t length = getline(&t->line, &t->capacity, t->file);
    if (length < 0)
        return false;
    sti_sha256_add(&t->hash, t->line, (size_t)length);
    char *end = t->line + length;
    while (end > t->line && (end[-1] == '\n' || end[-1] == '\r'))
        end--;
    *end = '\0';
    *end_out = end;
    t->number++;
    return true;
}

static stint_status add_id(sti_click_text *t, int field, const char *at,
                           const char *end)
{
    if (t->id_count == t->id_capacity) {
        const int64_t more = t->id_capacity ? 2 * t->id_capacity : 64;
        sti_click_id *grown =
            sti_realloc(t->id, (size_t)more * sizeof *grown, "clicks.ids");
        if (!grown)
            return STINT_E_MEMORY;
        t->id = grown;
        t->id_capacity = more;
    }
    if (end - at > UINT16_MAX)
        return fault(t, "", at, end, "an id of at most 65535 bytes was wanted");
    t->id[t->id_count++] = (sti_click_id){field, at, (size_t)(end - at)};
    return STINT_OK;
}

/* ln(1 + x) of x >= 0 in plain double arithmetic, so that no library's choice of
 * instructions shows: 1 + x = 2^e m, ln m = 2 artanh((m - 1) / (m + 1)). */
static float log1p_of(double x)
{
    int e;
    double m = frexp(1 + x, &e), sum = 0;
    if (m < 0.70710678118654752440) {
        m *= 2;
        e--;
    }
    const double z = (m - 1) / (m + 1), square = z * z;
    for (int k = 25; k >= 1; k -= 2)
        sum = sum * square + 1.0 / k;
    return (float)(2 * z * sum + e * 0.69314718055994530942);
}

/* ---- csv and criteo ---- */

/* The end of the field at `at`; one in quotes loses them (doubled ones stay one). */
static char *cut_field(char *at, char separator, char **from_out, char **to_out)
{
    if (*at == '"' && separator != '\t') {
        char *to = at, *from = at + 1;
        *from_out = at;
        while (*from && (*from != '"' || from[1] == '"')) {
            from += *from == '"';
            *to++ = *from++;
        }
        *to_out = to;
        from += *from == '"';
        while (*from && *from != separator)
            from++;
        return from;
    }
    char *end = strchr(at, separator);
    if (!end)
        end = at + strlen(at);
    char *to = end;
    while (at < to && (*at == ' ' || (*at == '\t' && separator != '\t')))
        at++;
    while (to > at && (to[-1] == ' ' || (to[-1] == '\t' && separator != '\t')))
        to--;
    *from_out = at;
    *to_out = to;
    return end;
}

static bool compares(const char *how, double value, double threshold)
{
    const bool more = value > threshold, same = value == threshold;
    if (how[0] == '>')
        return more || (how[1] == '=' && same);
    if (how[0] == '<')
        return (!more && !same) || (how[1] == '=' && same);
    return same;
}

static stint_status take_label(sti_click_text *t, const char *column, const char *at,
                               const char *end)
{
    const char *after;
    double value;
    if (!sti_number_read(at, end, &after, &value) || after != end)
        return fault(t, column, at, end,
                     *t->compare ? "a number was wanted for the label"
                                 : "a label of 0 or 1 was wanted");
    if (*t->compare)
        value = compares(t->compare, value, t->threshold);
    else if (value == -1 && t->desc->format >= STI_CLICKS_LIBSVM)
        value = 0;
    if (value != 0 && value != 1)
        return fault(t, column, at, end,
                     "a label of 0 or 1 was wanted; of other numbers make one by a "
                     "comparison, data.label = 'COLUMN>=4'");
    t->label = (float)value;
    return STINT_OK;
}

static stint_status take_number(sti_click_text *t, const sti_click_column *c,
                                const char *at, const char *end)
{
    const char *after;
    double value = 0;
    if (at < end && (!sti_number_read(at, end, &after, &value) || after != end))
        return fault(t, c->name, at, end, "a finite number, or nothing, was wanted");
    if (t->desc->format == STI_CLICKS_CRITEO)
        t->number_of[c->index] = value > 0 ? log1p_of(value) : 0;
    else
        t->number_of[c->index] = (float)value;
    if (!isfinite(t->number_of[c->index]))
        return fault(t, c->name, at, end, "a number within float32 was wanted");
    return STINT_OK;
}

/* Ids apart by | or blanks; a bag may be empty. */
static stint_status take_bag(sti_click_text *t, const sti_click_column *c,
                             const char *at, const char *end)
{
    stint_status st = STINT_OK;
    while (at < end && st == STINT_OK) {
        const char *from = at;
        while (at < end && *at != '|' && *at != ' ')
            at++;
        if (at > from)
            st = add_id(t, c->index, from, at);
        at += at < end;
    }
    return st;
}

static stint_status take_field(sti_click_text *t, const sti_click_column *c,
                               const char *at, const char *end)
{
    switch (c->use) {
    case STI_CLICK_LABEL:
        return take_label(t, c->name, at, end);
    case STI_CLICK_NUMBER:
        return take_number(t, c, at, end);
    case STI_CLICK_ID:
        return c->bag ? take_bag(t, c, at, end) : add_id(t, c->index, at, end);
    case STI_CLICK_SKIP:
        break;
    }
    return STINT_OK;
}

static stint_status read_columns(sti_click_text *t, char *at, const char *end)
{
    const sti_table_text where = {.name = t->desc->path, .line = t->number};
    stint_status st = STINT_OK;
    int count = 0;
    t->label = 0;
    for (bool more = true; more && st == STINT_OK; count++) {
        char *from, *to, *stop = cut_field(at, t->separator, &from, &to);
        if (count < t->columns)
            st = take_field(t, &t->column[count], from, to);
        more = stop < end && *stop == t->separator;
        at = stop + 1;
    }
    if (st == STINT_OK && count != t->columns)
        return sti_table_fault(
            &where, "%d fields; %d were wanted, as %s", count, t->columns,
            t->desc->format == STI_CLICKS_CRITEO ? "Criteo's lines have"
                                                 : "the header has");
    return st;
}

/* ---- libsvm and libffm ---- */

/* "index:value", or of libffm "field:index:value". */
static stint_status take_feature(sti_click_text *t, const char *at, const char *end,
                                 int64_t *last)
{
    const sti_table_text where = {.name = t->desc->path, .line = t->number};
    const bool ffm = t->desc->format == STI_CLICKS_LIBFFM;
    int64_t field = 0, index;
    double value;
    const char *id = at, *colon = memchr(at, ':', (size_t)(end - at));
    if (ffm) {
        if (!colon || !memchr(colon + 1, ':', (size_t)(end - colon - 1)) ||
            !sti_digits_read(at, colon, STI_CLICKS_COLUMNS - 1, &field))
            return fault(t, "", at, end,
                         "field:index:value was wanted, the field below 4096");
        id = colon + 1;
    }
    stint_status st = sti_libsvm_entry(&where, id, end, &index, &value);
    if (st == STINT_OK && !ffm && index <= *last)
        return fault(t, "", at, end, "indices that ascend within a line were wanted");
    if (st != STINT_OK)
        return st;
    *last = index;
    const int64_t group = ffm ? field : index;
    if (group < STI_CLICKS_COLUMNS && t->is_dense[group]) {
        const sti_click_column c = {.index = t->column[group].index};
        return take_number(t, &c, strchr(id, ':') + 1, end);
    }
    if (ffm && (field >= t->columns || t->column[field].use != STI_CLICK_ID))
        return fault(t, "", at, end, "a field of the first pass was wanted");
    if (value != 1)
        return fault(t, "", at, end,
                     "an id's value is 1; columns of numbers go into data.dense");
    return add_id(t, ffm ? t->column[field].index : 0, id, strchr(id, ':'));
}

static stint_status read_features(sti_click_text *t, const char *at, const char *end)
{
    int64_t last = -1;
    stint_status st = STINT_OK;
    const char *comment = memchr(at, '#', (size_t)(end - at));
    end = comment ? comment : end;
    for (int k = 0; k < t->dense; k++)
        t->number_of[k] = 0;
    for (bool label = true; st == STINT_OK; label = false) {
        at = sti_table_skip_blanks(at, end);
        const char *from = at;
        while (at < end && !sti_table_is_blank(*at))
            at++;
        if (label)
            st = take_label(t, "label", from, at);
        else if (at == from)
            break;
        else
            st = take_feature(t, from, at, &last);
    }
    return st;
}

/* ---- opening ---- */

static stint_status open_criteo(sti_click_text *t)
{
    t->separator = '\t';
    t->columns = 1 + CRITEO_NUMBERS + CRITEO_IDS;
    t->dense = CRITEO_NUMBERS;
    t->fields = CRITEO_IDS;
    t->column = sti_alloc_array(t->columns, sizeof *t->column, "clicks.columns");
    if (!t->column)
        return STINT_E_MEMORY;
    for (int i = 0; i < t->columns; i++) {
        sti_click_column *c = &t->column[i];
        const bool number = i <= CRITEO_NUMBERS;
        c->use = i == 0 ? STI_CLICK_LABEL : number ? STI_CLICK_NUMBER : STI_CLICK_ID;
        c->index = i == 0 ? 0 : number ? i - 1 : i - 1 - CRITEO_NUMBERS;
        snprintf(c->name, sizeof c->name, "%s%d",
                 i == 0   ? "label"
                 : number ? "I"
                          : "C",
                 i == 0 ? 0 : c->index + 1);
    }
    snprintf(t->column[0].name, sizeof t->column[0].name, "label");
    return STINT_OK;
}

static bool is_tab(const char *given)
{
    return strcasecmp(given, "tab") == 0 || strcmp(given, "\\t") == 0;
}

static char separator_of(const char *given, const char *line)
{
    static const char usual[] = "\t,;|";
    if (given)
        return is_tab(given) ? '\t' : *given;
    for (const char *s = usual; *s; s++)
        if (strchr(line, *s))
            return *s;
    return ',';
}

/* The header's columns by name; "user_id:token", as RecBole writes, is user_id. */
static stint_status open_csv(sti_click_text *t)
{
    const char *end, *given = t->desc->separator;
    if (given && strlen(given) > 1 && !is_tab(given))
        return sti_fail(STINT_E_USAGE,
                        "data.separator: '%s'; one character, or tab, was wanted",
                        sti_shown(given));
    if (!next_line(t, &end))
        return sti_fail(STINT_E_INPUT,
                        "%s: is empty; a header of column names was "
                        "wanted",
                        t->desc->path);
    t->separator = separator_of(t->desc->separator, t->line);
    t->column =
        sti_alloc_array(STI_CLICKS_COLUMNS, sizeof *t->column, "clicks.columns");
    if (!t->column)
        return STINT_E_MEMORY;
    char *at = t->line;
    if (strncmp(at, "\xef\xbb\xbf", 3) == 0)
        at += 3;
    for (bool more = true; more && t->columns < STI_CLICKS_COLUMNS; t->columns++) {
        char *from, *to, *stop = cut_field(at, t->separator, &from, &to);
        const char *type = memchr(from, ':', (size_t)(to - from));
        snprintf(t->column[t->columns].name, STI_CLICKS_NAME, "%.*s",
                 (int)((type ? type : to) - from), from);
        more = stop < end && *stop == t->separator;
        at = stop + 1;
    }
    return sti_click_columns_choose(t);
}

stint_status sti_click_text_open(const sti_clicks_desc *desc, sti_click_text *text)
{
    *text = (sti_click_text){.desc = desc};
    sti_sha256_init(&text->hash);
    stint_status st = sti_file_open_stream(desc->path, &text->file);
    if (st == STINT_OK)
        st = sti_click_label_parse(text);
    if (st == STINT_OK)
        st = desc->format == STI_CLICKS_CRITEO ? open_criteo(text)
             : desc->format == STI_CLICKS_CSV  ? open_csv(text)
                                               : sti_click_features_choose(text);
    if (st == STINT_OK) {
        text->number_of =
            sti_alloc_array(text->dense + 1, sizeof *text->number_of, "clicks.numbers");
        st = text->number_of ? STINT_OK : STINT_E_MEMORY;
    }
    return st;
}

stint_status sti_click_text_next(sti_click_text *text, bool *more_out)
{
    const char *end = NULL;
    *more_out = false;
    text->id_count = 0;
    do
        if (!next_line(text, &end))
            return ferror(text->file)
                       ? sti_fail_errno("%s: cannot be read", text->desc->path)
                       : STINT_OK;
    while (end == text->line);
    *more_out = true;
    return text->desc->format <= STI_CLICKS_CSV ? read_columns(text, text->line, end)
                                                : read_features(text, text->line, end);
}

void sti_click_text_close(sti_click_text *text)
{
    if (text->file)
        fclose(text->file);
    free(text->line);
    sti_free(text->column);
    sti_free(text->is_dense);
    sti_free(text->number_of);
    sti_free(text->id);
    *text = (sti_click_text){.desc = NULL};
}
