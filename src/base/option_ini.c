/* Recipes: INI text into an option set.
 *
 * inih decides what is a section, a key or an error; it is handed one cleaned line at a
 * time. As its handler may have been built without line numbers, and its parser reports
 * one error only, lines are counted here, and a line that inih neither accepts nor
 * skips becomes a complaint of its own. Values are taken from the line and not from
 * inih, which cuts them at 200 bytes. */
#include <ini.h>
#include <stdio.h>
#include <string.h>

#include "base/file.h"
#include "base/option_priv.h"
#include "base/units.h"

#define RECIPE_MAX_BYTES ((size_t)1 << 20)

typedef struct ini_reader_state {
    sti_option_set *set;
    const char *path, *folder;
    const char *next;   /* rest of the text */
    int line_number;    /* of the line given out last */
    sti_text line;      /* that line without comment and outer blanks */
    bool pending;       /* it wants the handler and has not got it yet */
    int *line_of;       /* [set->count], where a row was set; 0: not yet */
    sti_arena *scratch; /* texts of "path:line" */
    sti_complaints complaints;
    char section[64];  /* as inih has it, of the key looked at last */
    const char *meant; /* the one of ours that it means, or NULL */
} ini_reader_state;

static bool is_blank(char c)
{
    return c == ' ' || c == '\t' || c == '\r';
}

/* "path:line" of the line given out last. */
static const char *here(ini_reader_state *r)
{
    const char *where = sti_arena_printf(r->scratch, "%s:%d", r->path, r->line_number);
    if (!where)
        r->complaints.no_memory = true;
    return where ? where : r->path;
}

/* Where a value that stands in quotes ends, the closing quote included; `at` is at the
 * opening one. The end of the line if it is not closed. */
static size_t skip_quoted(const char *line, size_t at, size_t length)
{
    for (at++; at < length && line[at] != '"'; at++)
        if (line[at] == '\\' && at + 1 < length)
            at++;
    return at < length ? at + 1 : at;
}

/* Length of a line up to a comment: ';' or '#' first on the line or after a blank. */
static size_t length_without_comment(const char *line, size_t length)
{
    bool in_value = false;
    for (size_t i = 0; i < length; i++) {
        if ((line[i] == ';' || line[i] == '#') && (i == 0 || is_blank(line[i - 1])))
            return i;
        if (in_value || (line[i] != '=' && line[i] != ':') || line[0] == '[')
            continue;
        in_value = true;
        while (i + 1 < length && is_blank(line[i + 1]))
            i++;
        if (i + 1 < length && line[i + 1] == '"')
            i = skip_quoted(line, i + 1, length) - 1;
        else if (i + 1 < length && (line[i + 1] == ';' || line[i + 1] == '#') &&
                 is_blank(line[i]))
            return i;
    }
    return length;
}

/* The next line of the text into r->line; false at its end. */
static bool take_line(ini_reader_state *r)
{
    if (!*r->next)
        return false;
    const char *line = r->next;
    size_t length = strcspn(line, "\n");
    r->next = line + length + (line[length] == '\n');
    r->line_number++;
    while (length > 0 && is_blank(*line)) {
        line++;
        length--;
    }
    length = length_without_comment(line, length);
    while (length > 0 && is_blank(line[length - 1]))
        length--;
    r->line.length = 0;
    sti_text_add_bytes(&r->line, line, length);
    return !r->line.failed;
}

static void complain_pending(ini_reader_state *r)
{
    if (r->pending)
        sti_complain(&r->complaints, "%s: '%.60s' has no '='; write key = value",
                     here(r), r->line.data);
    r->pending = false;
}

static void check_heading(ini_reader_state *r)
{
    char name[64];
    const char *line = r->line.data, *end = strchr(line, ']');
    if (!end) {
        sti_complain(&r->complaints, "%s: '%.60s' has no ']'; write [section]", here(r),
                     line);
        return;
    }
    if (end[1])
        sti_complain(&r->complaints,
                     "%s: text after the ']'; begin a new line or a comment with ';'",
                     here(r));
    snprintf(name, sizeof name, "%.*s", (int)(end - line - 1), line + 1);
    if (!sti_option_is_section(r->set, name) && !sti_complain_unheard(&r->complaints))
        sti_complain_section(&r->complaints, r->set, here(r), name);
}

/* inih's fgets. Gives it as much of a line as it takes: enough to see the key. */
static char *give_line(char *buffer, int size, void *stream)
{
    ini_reader_state *r = stream;
    complain_pending(r);
    if (!take_line(r))
        return NULL;
    const char *line = r->line.data;
    if (line[0] == '[')
        check_heading(r);
    else
        r->pending = line[0] != '\0';
    snprintf(buffer, (size_t)size, "%.*s\n", size - 2, line);
    return buffer;
}

/* The value of r->line, quotes undone in place; NULL: complained. */
static const char *line_value(ini_reader_state *r)
{
    char *value = r->line.data + strcspn(r->line.data, "=:") + 1;
    while (is_blank(*value))
        value++;
    if (*value != '"')
        return value;
    size_t length = strlen(value), out = 0;
    size_t end = skip_quoted(value, 0, length);
    if (end != length || length < 2 || value[length - 1] != '"') {
        sti_complain(&r->complaints, "%s: the quotes around the value do not match",
                     here(r));
        return NULL;
    }
    for (size_t i = 1; i + 1 < length; i++) {
        if (value[i] == '\\' && (value[i + 1] == '"' || value[i + 1] == '\\'))
            i++;
        value[out++] = value[i];
    }
    value[out] = '\0';
    return value;
}

static void complain_before_section(ini_reader_state *r, const char *name)
{
    for (int row = 0; row < r->set->count; row++)
        if (r->set->rows[row].section &&
            sti_option_same_name(r->set->rows[row].name, name)) {
            sti_complain(&r->complaints,
                         "%s: key '%s' stands before any section; put it under [%s]",
                         here(r), name, r->set->rows[row].section);
            return;
        }
    sti_complain(&r->complaints,
                 "%s: key '%s' stands before any section; begin with a line [section]",
                 here(r), name);
}

/* Keys of a section mostly come together, and what it means may take long to say. */
static const char *section_meant(ini_reader_state *r, const char *section)
{
    if (strcmp(section, r->section) != 0) {
        snprintf(r->section, sizeof r->section, "%s", section);
        r->meant = sti_option_nearest_section(r->set, section);
    }
    return r->meant;
}

/* inih's handler. A misspelt section was complained about at its heading; its keys are
 * judged as those of the section that was meant. */
static int take_key(void *user, const char *section, const char *name,
                    const char *unused)
{
    ini_reader_state *r = user;
    (void)unused;
    r->pending = false;
    if (!*section) {
        complain_before_section(r, name);
        return 1;
    }
    const char *meant = section_meant(r, section);
    if (!meant)
        return 1;
    int row = sti_option_find(r->set, meant, name);
    if (row < 0) {
        sti_complain_key(&r->complaints, r->set, here(r), meant, name);
        return 1;
    }
    if (r->line_of[row] != 0)
        sti_complain(&r->complaints, "%s: '%s' was set before, in line %d; keep one",
                     here(r), name, r->line_of[row]);
    r->line_of[row] = r->line_number;
    const char *value = line_value(r);
    if (value)
        sti_complain_status(
            &r->complaints,
            sti_option_store(r->set, row, value, STI_FROM_RECIPE, here(r), r->folder));
    return 1;
}

stint_status sti_options_parse_ini(sti_option_set *set, const char *text,
                                   const char *path, const char *folder)
{
    ini_reader_state r = {.set = set, .path = path, .folder = folder, .next = text};
    stint_status st = STINT_E_MEMORY;
    if (strlen(text) > RECIPE_MAX_BYTES) /* in a model's metadata */
        return sti_fail(STINT_E_INPUT, "%s: a recipe of %s; it has at most %s", path,
                        sti_bytes_text(strlen(text)), sti_bytes_text(RECIPE_MAX_BYTES));
    r.line_of = sti_alloc_array(set->count, sizeof *r.line_of, "recipe lines");
    r.scratch = sti_arena_create("recipe reader");
    if (!r.line_of || !r.scratch)
        goto out;
    if (strncmp(text, "\xEF\xBB\xBF", 3) == 0) /* a byte order mark */
        r.next += 3;
    ini_parse_stream(give_line, &r, take_key, &r);
    complain_pending(&r); /* of the last line, if inih ended early */
    if (r.line.failed)
        r.complaints.no_memory = true;
    st = sti_complaints_end(&r.complaints);
out:
    sti_text_fini(&r.line);
    sti_arena_destroy(r.scratch);
    sti_free(r.line_of);
    return st;
}

stint_status sti_options_read_ini(sti_option_set *set, const char *path)
{
    void *text = NULL;
    size_t bytes = 0;
    stint_status st = sti_file_read(path, RECIPE_MAX_BYTES, &text, &bytes);
    if (st != STINT_OK)
        return st;
    const char *folder = sti_path_folder(set->arena, path);
    if (!folder)
        st = STINT_E_MEMORY;
    else if (strlen(text) != bytes)
        st = sti_fail(STINT_E_INPUT, "%s: is no text, a recipe is wanted", path);
    else
        st = sti_options_parse_ini(set, text, path,
                                   strcmp(folder, ".") == 0 ? NULL : folder);
    sti_free(text);
    return st;
}
