#define _GNU_SOURCE /* getline */
#include "data/clicks_columns.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/fail.h"
#include "base/number.h"
#include "base/shown.h"
#include "data/table_priv.h"

/* ---- lists of words ---- */

typedef struct word {
    const char *at;
    size_t length;
} word;

/* The next word of a comma-separated list; false: there is none. */
static bool next_word(const char **list, word *out)
{
    const char *at = *list;
    while (at && (*at == ' ' || *at == ','))
        at++;
    if (!at || !*at)
        return false;
    out->at = at;
    out->length = strcspn(at, ",");
    *list = at + out->length;
    while (out->length > 0 && at[out->length - 1] == ' ')
        out->length--;
    return true;
}

static bool is_word(const word *w, const char *name)
{
    return strlen(name) == w->length && strncmp(w->at, name, w->length) == 0;
}

static bool is_none(const char *list)
{
    return list && strcmp(list, "none") == 0;
}

static bool lists(const char *list, const char *name)
{
    word w;
    while (next_word(&list, &w))
        if (is_word(&w, name))
            return true;
    return false;
}

static stint_status no_column(const sti_click_text *t, const char *key,
                              const char *name, size_t length)
{
    sti_text all = {0};
    for (int i = 0; i < t->columns && i < 40; i++)
        sti_text_printf(&all, "%s%s", i ? ", " : "", t->column[i].name);
    const stint_status st = sti_fail(
        STINT_E_INPUT, "%s: data.%s: no column '%.*s'; there are %s", t->desc->path,
        key, (int)length, name, sti_shown(all.data ? all.data : "none"));
    sti_text_fini(&all);
    return st;
}

/* ---- labels ---- */

/* Where the comparison of "rating>=4" begins; its end where there is none. */
static size_t label_length(const char *label)
{
    return strcspn(label, "<>=");
}

stint_status sti_click_label_parse(sti_click_text *t)
{
    const char *label = t->desc->label, *after;
    if (!label || !label[label_length(label)])
        return STINT_OK;
    const char *how = label + label_length(label);
    const size_t length = how[1] == '=' ? 2 : 1;
    const char *value = how + length, *end = value + strlen(value);
    memcpy(t->compare, how, length);
    if (!sti_number_read(value, end, &after, &t->threshold) || after != end)
        return sti_fail(STINT_E_USAGE,
                        "data.label: '%s'; COLUMN, or a comparison such as "
                        "'rating>=4', was wanted",
                        sti_shown(label));
    return STINT_OK;
}

static int find_column(const sti_click_text *t, const word *w)
{
    for (int i = 0; i < t->columns; i++)
        if (is_word(w, t->column[i].name))
            return i;
    return -1;
}

static stint_status choose_label(sti_click_text *t)
{
    const char *label = t->desc->label ? t->desc->label : "label";
    const word w = {label, label_length(label)};
    const int i = find_column(t, &w);
    if (i >= 0)
        t->column[i].use = STI_CLICK_LABEL;
    else if (!t->desc->unlabelled)
        return no_column(t, "label", w.at, w.length);
    return STINT_OK;
}

/* ---- csv ---- */

/* Every word of a list must be a column. */
static stint_status check_list(const sti_click_text *t, const char *key,
                               const char *list)
{
    word w;
    while (!is_none(list) && next_word(&list, &w)) {
        const int i = find_column(t, &w);
        if (i < 0)
            return no_column(t, key, w.at, w.length);
        if (t->column[i].use == STI_CLICK_LABEL)
            return sti_fail(STINT_E_USAGE, "data.%s: '%s' is the label", key,
                            sti_shown(t->column[i].name));
    }
    return STINT_OK;
}

/* I1, I2, ...: what Criteo's numbers are called. */
static bool is_number_name(const char *name)
{
    return name[0] == 'I' && isdigit((unsigned char)name[1]) &&
           strspn(name + 1, "0123456789") == strlen(name + 1);
}

static void choose_use(const sti_click_text *t, sti_click_column *c)
{
    const sti_clicks_desc *d = t->desc;
    const bool dense = d->dense ? lists(d->dense, c->name) : is_number_name(c->name);
    const bool id = d->categorical ? lists(d->categorical, c->name) : true;
    c->bag = lists(d->bags, c->name);
    c->use = dense ? STI_CLICK_NUMBER : c->bag || id ? STI_CLICK_ID : STI_CLICK_SKIP;
}

stint_status sti_click_columns_choose(sti_click_text *t)
{
    stint_status st;
    STI_TRY(choose_label(t));
    STI_TRY(check_list(t, "dense", t->desc->dense));
    STI_TRY(check_list(t, "categorical", t->desc->categorical));
    STI_TRY(check_list(t, "bags", t->desc->bags));
    for (int i = 0; i < t->columns; i++) {
        sti_click_column *c = &t->column[i];
        if (c->use != STI_CLICK_LABEL)
            choose_use(t, c);
        c->index = c->use == STI_CLICK_NUMBER ? t->dense++
                   : c->use == STI_CLICK_ID   ? t->fields++
                                              : 0;
    }
    if (t->dense + t->fields == 0)
        return sti_fail(STINT_E_INPUT, "%s: no column but the label is left",
                        t->desc->path);
out:
    return st;
}

/* ---- libsvm and libffm ---- */

/* "1-13,20" into is_dense, and numbers of their columns in ascending order. */
static stint_status choose_numbers(sti_click_text *t)
{
    const char *list = is_none(t->desc->dense) ? NULL : t->desc->dense;
    word w;
    while (next_word(&list, &w)) {
        const char *end = w.at + w.length;
        const char *dash = memchr(w.at, '-', w.length);
        int64_t first, last;
        if (!sti_digits_read(w.at, dash ? dash : end, STI_CLICKS_COLUMNS - 1, &first) ||
            (dash && !sti_digits_read(dash + 1, end, STI_CLICKS_COLUMNS - 1, &last)))
            return sti_fail(STINT_E_USAGE,
                            "data.dense: '%.*s'; numbers below %d, or ranges such as "
                            "1-13, were wanted",
                            (int)w.length, w.at, STI_CLICKS_COLUMNS);
        for (int64_t i = first; i <= (dash ? last : first); i++)
            t->is_dense[i] = true;
    }
    for (int i = 0; i < STI_CLICKS_COLUMNS; i++)
        if (t->is_dense[i])
            t->column[i] =
                (sti_click_column){.use = STI_CLICK_NUMBER, .index = t->dense++};
    return STINT_OK;
}

/* Which fields a libffm line has. */
static void note_fields(sti_click_text *t, const char *at)
{
    while ((at = strpbrk(at, " \t"))) {
        const char *from = sti_table_skip_blanks(at, at + strlen(at));
        const size_t digits = strspn(from, "0123456789");
        int64_t field;
        at = from;
        if (from[digits] == ':' &&
            sti_digits_read(from, from + digits, STI_CLICKS_COLUMNS - 1, &field) &&
            !t->is_dense[field])
            t->column[field].use = STI_CLICK_ID;
    }
}

/* Those of a model, whose fields have their numbers as names. */
static void take_fields(sti_click_text *t, const sti_clicks *like)
{
    for (int i = 0; i < like->fields; i++) {
        const char *name = like->field[i].name;
        int64_t field;
        if (sti_digits_read(name, name + strlen(name), STI_CLICKS_COLUMNS - 1,
                            &field) &&
            !t->is_dense[field])
            t->column[field].use = STI_CLICK_ID;
    }
}

/* Fields of all lines: a first pass, since a sample's size depends on them. */
static stint_status find_fields(sti_click_text *t)
{
    size_t capacity = 0;
    char *line = NULL;
    if (t->desc->like) {
        take_fields(t, t->desc->like);
        return STINT_OK;
    }
    while (getline(&line, &capacity, t->file) >= 0)
        note_fields(t, line);
    free(line);
    if (ferror(t->file) || fseek(t->file, 0, SEEK_SET) != 0)
        return sti_fail_errno("%s: cannot be read twice", t->desc->path);
    return STINT_OK;
}

stint_status sti_click_features_choose(sti_click_text *t)
{
    stint_status st = STINT_E_MEMORY;
    t->is_dense = sti_alloc(STI_CLICKS_COLUMNS, "clicks.columns");
    t->column =
        sti_alloc_array(STI_CLICKS_COLUMNS, sizeof *t->column, "clicks.columns");
    if (!t->is_dense || !t->column)
        return st;
    STI_TRY(choose_numbers(t));
    t->columns = STI_CLICKS_COLUMNS;
    if (t->desc->format == STI_CLICKS_LIBSVM) {
        t->fields = is_none(t->desc->categorical) ? 0 : 1;
        return STINT_OK;
    }
    STI_TRY(find_fields(t));
    for (int i = 0; i < STI_CLICKS_COLUMNS; i++)
        if (t->column[i].use == STI_CLICK_ID) {
            t->column[i].index = t->fields++;
            snprintf(t->column[i].name, STI_CLICKS_NAME, "%d", i);
        }
out:
    return st;
}
