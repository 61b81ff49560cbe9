/* Values of an option table: reading, bounds, storing and writing back. */
#include "base/option.h"

#include <assert.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "base/file.h"
#include "base/option_priv.h"
#include "base/units.h"

/* ---- choices ---- */

#define CHOICES_MAX 64

typedef struct choice_list {
    char words[1024];
    const char *names[CHOICES_MAX];
    int count;
} choice_list;

static void split_choices(const char *choices, choice_list *list)
{
    size_t length = strlen(choices);
    assert(length < sizeof list->words);
    memcpy(list->words, choices, length + 1);
    list->count = 0;
    for (char *word = list->words; word && list->count < CHOICES_MAX;) {
        list->names[list->count++] = word;
        word = strchr(word, '|');
        if (word)
            *word++ = '\0';
    }
}

static int find_choice(const choice_list *list, const char *word)
{
    for (int i = 0; i < list->count; i++)
        if (strcasecmp(list->names[i], word) == 0)
            return i;
    return -1;
}

void sti_option_add_choices(const sti_option *row, sti_text *out)
{
    choice_list list;
    split_choices(row->choices, &list);
    for (int i = 0; i < list.count; i++) {
        if (i > 0)
            sti_text_add(out, i == list.count - 1 ? " or " : ", ");
        sti_text_add(out, list.names[i]);
    }
}

static stint_status fail_choice(const sti_option *row, const choice_list *list,
                                const char *word)
{
    sti_text known = {0};
    sti_option_add_choices(row, &known);
    const char *near = sti_text_nearest(word, list->names, list->count);
    stint_status st =
        sti_fail(STINT_E_USAGE, "'%s' is not known, but must be %s%s%s%s", word,
                 known.data ? known.data : row->choices, near ? "; did you mean '" : "",
                 near ? near : "", near ? "'?" : "");
    sti_text_fini(&known);
    return st;
}

/* ---- bounds ---- */

static bool has_bounds(const sti_option *row)
{
    return (row->type == STI_OPTION_INT || row->type == STI_OPTION_FLOAT) &&
           row->min <= row->max;
}

void sti_option_add_range(const sti_option *row, sti_text *out)
{
    if (!has_bounds(row))
        return;
    if (isinf(row->max))
        sti_text_printf(out, "at least %s", sti_float_text(row->min));
    else if (isinf(row->min))
        sti_text_printf(out, "at most %s", sti_float_text(row->max));
    else
        sti_text_printf(out, "from %s to %s", sti_float_text(row->min),
                        sti_float_text(row->max));
}

static stint_status check_range(const sti_option *row, double value, const char *text)
{
    if (!has_bounds(row) || (value >= row->min && value <= row->max))
        return STINT_OK;
    sti_text range = {0};
    sti_option_add_range(row, &range);
    stint_status st = sti_fail(STINT_E_USAGE, "%s is out of range, must be %s", text,
                               range.data ? range.data : "within its bounds");
    sti_text_fini(&range);
    return st;
}

/* ---- reading a value ---- */

typedef union option_value {
    bool truth;
    int64_t whole;
    double number;
    size_t bytes;
    const char *text;
    int choice;
} option_value;

static stint_status parse_whole(const sti_option *row, const char *text,
                                option_value *value)
{
    value->whole = 0;
    if (row->automatic && strcmp(text, "auto") == 0)
        return STINT_OK;
    stint_status st = sti_parse_int(text, &value->whole);
    return st == STINT_OK ? check_range(row, (double)value->whole, text) : st;
}

static stint_status parse_number(const sti_option *row, const char *text,
                                 option_value *value)
{
    stint_status st = sti_parse_float(text, &value->number);
    return st == STINT_OK ? check_range(row, value->number, text) : st;
}

static stint_status parse_truth(const char *text, option_value *value)
{
    int truth;
    stint_status st = sti_parse_bool(text, &truth);
    if (st == STINT_OK)
        value->truth = truth != 0;
    return st;
}

static stint_status parse_size(const char *text, option_value *value)
{
    value->bytes = 0;
    return strcmp(text, "auto") == 0 ? STINT_OK : sti_parse_bytes(text, &value->bytes);
}

static stint_status parse_choice(const sti_option *row, const char *text,
                                 option_value *value)
{
    choice_list list;
    split_choices(row->choices, &list);
    value->choice = find_choice(&list, text);
    return value->choice >= 0 ? STINT_OK : fail_choice(row, &list, text);
}

/* What an INI line could not hold is refused everywhere, so that resolved recipes read
 * back to the same values. */
static stint_status parse_text(const char *text, sti_arena *arena, const char *folder,
                               bool verbatim, option_value *value)
{
    for (const char *c = text; *c && !verbatim; c++)
        if ((unsigned char)*c < 0x20 && *c != '\t')
            return sti_fail(STINT_E_USAGE,
                            "the text has a line break or another control "
                            "character; leave it out");
    value->text = NULL;
    if (!*text)
        return STINT_OK;
    value->text =
        folder ? sti_path_join(arena, folder, text) : sti_arena_strdup(arena, text);
    return value->text ? STINT_OK : STINT_E_MEMORY;
}

/* Words between commas, blanks around them dropped, each one of the choices. */
static stint_status parse_list(const sti_option *row, const char *text,
                               sti_arena *arena, option_value *value)
{
    choice_list list = {.count = 0};
    sti_text words = {0};
    stint_status st = STINT_OK;
    if (row->choices)
        split_choices(row->choices, &list);
    for (const char *at = text; *text && at && st == STINT_OK;) {
        size_t length = strcspn(at, ",");
        const char *next = at[length] ? at + length + 1 : NULL;
        for (; length > 0 && *at == ' '; length--)
            at++;
        while (length > 0 && at[length - 1] == ' ')
            length--;
        size_t begin = words.length + (words.length > 0);
        sti_text_printf(&words, "%s%.*s", words.length ? "," : "", (int)length, at);
        if (words.failed)
            st = STINT_E_MEMORY;
        else if (length == 0)
            st = sti_fail(STINT_E_USAGE, "'%s' has an empty word between its commas",
                          text);
        else if (row->choices && find_choice(&list, words.data + begin) < 0)
            st = fail_choice(row, &list, words.data + begin);
        at = next;
    }
    if (st == STINT_OK)
        st = parse_text(words.data ? words.data : "", arena, NULL, false, value);
    sti_text_fini(&words);
    return st;
}

static stint_status parse_value(const sti_option *row, const char *text,
                                sti_arena *arena, const char *folder,
                                option_value *value)
{
    bool wordy = row->type == STI_OPTION_TEXT || row->type == STI_OPTION_PATH ||
                 row->type == STI_OPTION_LIST;
    if (!*text && !wordy)
        return sti_fail(STINT_E_USAGE, "has no value");
    switch (row->type) {
    case STI_OPTION_BOOL:
        return parse_truth(text, value);
    case STI_OPTION_INT:
        return parse_whole(row, text, value);
    case STI_OPTION_FLOAT:
        return parse_number(row, text, value);
    case STI_OPTION_BYTES:
        return parse_size(text, value);
    case STI_OPTION_TIME:
        return sti_parse_time(text, &value->number);
    case STI_OPTION_TEXT:
        return parse_text(text, arena, NULL, row->verbatim, value);
    case STI_OPTION_PATH:
        return parse_text(text, arena, folder, false, value);
    case STI_OPTION_CHOICE:
        return parse_choice(row, text, value);
    case STI_OPTION_LIST:
        return parse_list(row, text, arena, value);
    }
    return sti_fail(STINT_E_BUG, "option '%s' has no type", row->name);
}

stint_status sti_option_split(sti_arena *arena, const char *list,
                              const char ***words_out, int64_t *count_out)
{
    int64_t count = 0;
    char *at = list ? sti_arena_strdup(arena, list) : NULL;
    const char **words = sti_arena_alloc(arena, (list ? strlen(list) + 1 : 1) *
                                                    sizeof *words); /* at the most */
    if (!words || (list && !at))
        return STINT_E_MEMORY;
    while (at) {
        char *comma = strchr(at, ',');
        words[count++] = at;
        if (comma)
            *comma++ = '\0';
        at = comma;
    }
    *words_out = words;
    *count_out = count;
    return STINT_OK;
}

/* ---- fields of the target ---- */

static void *field_of(const sti_option_set *set, int row)
{
    return (char *)set->target + set->rows[row].offset;
}

static void write_field(sti_option_set *set, int row, const option_value *value)
{
    void *field = field_of(set, row);
    switch (set->rows[row].type) {
    case STI_OPTION_BOOL:
        *(bool *)field = value->truth;
        break;
    case STI_OPTION_INT:
        *(int64_t *)field = value->whole;
        break;
    case STI_OPTION_FLOAT:
    case STI_OPTION_TIME:
        *(double *)field = value->number;
        break;
    case STI_OPTION_BYTES:
        *(size_t *)field = value->bytes;
        break;
    case STI_OPTION_TEXT:
    case STI_OPTION_PATH:
    case STI_OPTION_LIST:
        *(const char **)field = value->text;
        break;
    case STI_OPTION_CHOICE:
        *(int *)field = value->choice;
        break;
    }
}

/* "recipe.ini:3: batch: ", "--batch: ", "STINT_BATCH: " or "train.batch: ". */
static stint_status name_row(stint_status st, const sti_option *row, sti_origin origin,
                             const char *where)
{
    if (!where)
        return sti_fail_context(st, "%s%s%s", row->section ? row->section : "",
                                row->section ? "." : "", row->name);
    if (origin == STI_FROM_RECIPE)
        return sti_fail_context(st, "%s: %s", where, row->name);
    return sti_fail_context(st, "%s", where);
}

stint_status sti_option_store(sti_option_set *set, int row, const char *value,
                              sti_origin origin, const char *where, const char *folder)
{
    option_value parsed;
    const sti_option *o = &set->rows[row];
    stint_status st = parse_value(o, value, set->arena, folder, &parsed);
    if (st == STINT_E_MEMORY)
        return st;
    if (st != STINT_OK)
        return name_row(st, o, origin, where);
    if (set->origin && set->origin[row] > origin)
        return STINT_OK; /* a stronger source has spoken already */
    write_field(set, row, &parsed);
    if (set->origin)
        set->origin[row] = origin;
    return STINT_OK;
}

stint_status sti_options_put(sti_option_set *set, int row, const char *value,
                             sti_origin origin, const char *where)
{
    return sti_option_store(set, row, value, origin, where, NULL);
}

stint_status sti_option_default(sti_option_set *set, int row)
{
    const char *text = set->rows[row].default_text;
    if (set->origin)
        set->origin[row] = STI_FROM_DEFAULT;
    if (*text)
        return sti_options_put(set, row, text, STI_FROM_DEFAULT, NULL);
    option_value none;
    memset(&none, 0, sizeof none);
    write_field(set, row, &none);
    return STINT_OK;
}

stint_status sti_options_default(sti_option_set *set)
{
    assert(set->count <= STI_OPTION_ROWS_MAX);
    stint_status st = STINT_OK;
    for (int row = 0; row < set->count && st == STINT_OK; row++)
        st = sti_option_default(set, row);
    return st;
}

/* ---- writing back ---- */

static void add_size(size_t bytes, sti_text *out)
{
    static const char letters[] = "GMK";
    if (bytes == 0) {
        sti_text_add(out, "auto");
        return;
    }
    for (int i = 0; i < 3; i++) {
        size_t unit = (size_t)1 << (30 - 10 * i);
        if (bytes % unit == 0) {
            sti_text_printf(out, "%zu%c", bytes / unit, letters[i]);
            return;
        }
    }
    sti_text_printf(out, "%zu", bytes);
}

bool sti_options_is(const sti_option_set *set, int row, const char *value)
{
    const sti_option *o = &set->rows[row];
    if (o->type == STI_OPTION_TEXT || o->type == STI_OPTION_PATH ||
        o->type == STI_OPTION_LIST) {
        const char *text = *(const char *const *)field_of(set, row);
        return strcmp(text ? text : "", value) == 0;
    }
    sti_text text = {0};
    sti_options_value(set, row, &text);
    const bool same = text.data && strcmp(text.data, value) == 0;
    sti_text_fini(&text);
    return same;
}

void sti_options_value(const sti_option_set *set, int row, sti_text *out)
{
    const sti_option *o = &set->rows[row];
    const void *field = field_of(set, row);
    const char *text;
    choice_list list;
    switch (o->type) {
    case STI_OPTION_BOOL:
        sti_text_add(out, *(const bool *)field ? "true" : "false");
        break;
    case STI_OPTION_INT:
        if (o->automatic && *(const int64_t *)field == 0)
            sti_text_add(out, "auto");
        else
            sti_text_printf(out, "%" PRId64, *(const int64_t *)field);
        break;
    case STI_OPTION_FLOAT:
        sti_text_add(out, sti_float_text(*(const double *)field));
        break;
    case STI_OPTION_TIME:
        sti_text_printf(out, "%ss", sti_float_text(*(const double *)field));
        break;
    case STI_OPTION_BYTES:
        add_size(*(const size_t *)field, out);
        break;
    case STI_OPTION_TEXT:
    case STI_OPTION_PATH:
    case STI_OPTION_LIST:
        text = *(const char *const *)field;
        sti_text_add(out, text ? text : "");
        break;
    case STI_OPTION_CHOICE:
        split_choices(o->choices, &list);
        sti_text_add(out, list.names[*(const int *)field]);
        break;
    }
}

/* A row without a default that nobody has set: its zero may even be out of bounds. */
static bool is_unset(const sti_option_set *set, int row, const char *value)
{
    if (*set->rows[row].default_text)
        return false;
    if (set->origin)
        return set->origin[row] == STI_FROM_DEFAULT;
    return strcmp(value, "") == 0 || strcmp(value, "0") == 0 ||
           strcmp(value, "0s") == 0;
}

/* Quotes where the reader would otherwise drop blanks or see a comment. */
static bool needs_quotes(const char *value)
{
    size_t length = strlen(value);
    if (length == 0)
        return false;
    if (strchr(" \t\";#", value[0]) || strchr(" \t", value[length - 1]))
        return true;
    for (size_t i = 1; i < length; i++)
        if (strchr(";#", value[i]) && strchr(" \t", value[i - 1]))
            return true;
    return false;
}

static void add_ini_value(const char *value, sti_text *out)
{
    if (!needs_quotes(value)) {
        sti_text_add(out, value);
        return;
    }
    sti_text_add(out, "\"");
    for (; *value; value++)
        sti_text_printf(out, *value == '"' || *value == '\\' ? "\\%c" : "%c", *value);
    sti_text_add(out, "\"");
}

/* "key = value"; a path absolute, as the text may come to lie in another folder. */
static void add_ini_line(const sti_option_set *set, int row, sti_text *out)
{
    sti_text value = {0};
    sti_options_value(set, row, &value);
    const char *text = value.data ? value.data : "";
    if (set->rows[row].type == STI_OPTION_PATH && *text)
        text = sti_path_absolute(set->arena, text);
    if (!text || value.failed) {
        out->failed = true;
    } else if (!is_unset(set, row, text)) {
        sti_text_printf(out, "%s =%s", set->rows[row].name, *text ? " " : "");
        add_ini_value(text, out);
        sti_text_add(out, "\n");
    }
    sti_text_fini(&value);
}

static bool section_seen(const sti_option *rows, int row)
{
    for (int i = 0; i < row; i++)
        if (rows[i].section && strcmp(rows[i].section, rows[row].section) == 0)
            return true;
    return false;
}

void sti_options_write_ini(const sti_option_set *set, sti_text *out)
{
    for (int first = 0; first < set->count; first++) {
        const char *section = set->rows[first].section;
        if (!section || section_seen(set->rows, first))
            continue;
        sti_text_printf(out, "%s[%s]\n", out->length ? "\n" : "", section);
        for (int row = first; row < set->count; row++)
            if (set->rows[row].section && strcmp(set->rows[row].section, section) == 0)
                add_ini_line(set, row, out);
    }
}
