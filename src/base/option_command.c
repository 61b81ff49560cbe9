/* Options from the command line and from the environment. */
#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "base/option_priv.h"

extern char **environ;

#define NAME_BYTES 128

typedef struct command {
    sti_option_set *set;
    int argc, next; /* next word to look at */
    char **argv;
    char **operands;
    int operand_count;
    bool help;
    bool seen[STI_OPTION_ROWS_MAX]; /* rows that were given, of lists that go on */
    int suffixed;                   /* the row that the last suffix was of, or -1 */
    sti_text suffixes;              /* what they come to so far */
    sti_complaints complaints;
} command;

/* ---- rows by flag ---- */

static bool is_flag(const sti_option *row)
{
    return row->flag || !row->section;
}

static int find_flag(const sti_option_set *set, const char *name)
{
    for (int row = 0; row < set->count; row++)
        if (is_flag(&set->rows[row]) &&
            sti_option_same_name(sti_option_flag(&set->rows[row]), name))
            return row;
    return -1;
}

static int find_letter(const sti_option_set *set, char letter)
{
    for (int row = 0; row < set->count; row++)
        if (is_flag(&set->rows[row]) && set->rows[row].letter == letter)
            return row;
    return -1;
}

/* Keys of a recipe that have this name, in whatever section, but no flag: how to set
 * them. False: there is none. */
static bool complain_keys(command *c, const char *name)
{
    sti_text ways = {0};
    for (int row = 0; row < c->set->count; row++) {
        const sti_option *o = &c->set->rows[row];
        if (o->section && (!is_flag(o) || o->flag_name) &&
            sti_option_same_name(o->name, name))
            sti_text_printf(&ways, "%s--set %s.%s=VALUE", ways.length ? " or " : "",
                            o->section, o->name);
    }
    const bool any = ways.length > 0;
    if (any)
        sti_complain(&c->complaints, "unknown flag --%s; write %s", name, ways.data);
    sti_text_fini(&ways);
    return any;
}

static void complain_flag(command *c, const char *name)
{
    const char *names[STI_OPTION_ROWS_MAX + 2];
    int count = 0;
    for (int row = 0; row < c->set->count && count < STI_OPTION_ROWS_MAX; row++) {
        const sti_option *o = &c->set->rows[row];
        if (is_flag(o))
            names[count++] = sti_option_flag(o);
    }
    if (complain_keys(c, name))
        return;
    names[count++] = "help";
    names[count++] = "set";
    const char *near = sti_text_nearest(name, names, count);
    if (near) {
        char shown[NAME_BYTES];
        snprintf(shown, sizeof shown, "%s", near);
        for (char *at = shown; *at; at++)
            *at = *at == '_' ? '-' : *at;
        sti_complain(&c->complaints, "unknown flag --%s; did you mean --%s?", name,
                     shown);
    } else {
        sti_complain(&c->complaints, "unknown flag --%s; --help lists all flags", name);
    }
}

/* ---- command line ---- */

static void store(command *c, int row, const char *value, const char *where)
{
    sti_complain_status(&c->complaints,
                        sti_options_put(c->set, row, value, STI_FROM_COMMAND, where));
}

/* The word after a flag, or NULL when there is none or another flag follows. */
static const char *take_value(command *c, const char *where)
{
    if (c->next < c->argc && strncmp(c->argv[c->next], "--", 2) != 0)
        return c->argv[c->next++];
    sti_complain(&c->complaints, "%s: needs a value", where);
    return NULL;
}

/* "-xNAME VALUE" of a row that takes suffixes: all of them make its list. */
static void take_suffix(command *c, int row, const char *suffix, const char *where)
{
    const char *value = take_value(c, where);
    if (!value)
        return;
    if (c->suffixed != row)
        sti_text_fini(&c->suffixes);
    c->suffixed = row;
    sti_text_printf(&c->suffixes, "%s%s=%s", c->suffixes.length > 0 ? "," : "", suffix,
                    value);
    if (c->suffixes.failed)
        c->complaints.no_memory = true;
    else
        store(c, row, c->suffixes.data, where);
}

/* A value of a row whose list goes on where the flag is given again. */
static void take_repeated(command *c, int row, const char *value, const char *where)
{
    const char *before = NULL;
    memcpy(&before, (const char *)c->set->target + c->set->rows[row].offset,
           sizeof before);
    sti_text list = {0};
    sti_text_printf(&list, "%s%s%s", c->seen[row] && before ? before : "",
                    c->seen[row] && before ? "," : "", value);
    c->seen[row] = true;
    if (list.failed)
        c->complaints.no_memory = true;
    else
        store(c, row, list.data, where);
    sti_text_fini(&list);
}

/* As many words as the row wants, joined to a list. */
static void take_words(command *c, int row, const char *first, const char *where)
{
    sti_text list = {0};
    if (c->set->rows[row].repeated) {
        take_repeated(c, row, first, where);
        return;
    }
    sti_text_add(&list, first);
    for (int i = 1; i < c->set->rows[row].words; i++) {
        const char *word = take_value(c, where);
        if (!word)
            break;
        sti_text_printf(&list, ",%s", word);
    }
    if (list.failed)
        c->complaints.no_memory = true;
    else
        store(c, row, list.data, where);
    sti_text_fini(&list);
}

static void take_set(command *c, const char *value)
{
    char section[NAME_BYTES], name[NAME_BYTES], where[2 * NAME_BYTES + 16];
    if (!value && !(value = take_value(c, "--set")))
        return;
    size_t dot = strcspn(value, "."), equals = strcspn(value, "=");
    if (!value[equals] || dot >= equals || dot >= NAME_BYTES ||
        equals - dot > NAME_BYTES) {
        sti_complain(&c->complaints, "--set: '%s' is not of the form section.key=value",
                     value);
        return;
    }
    snprintf(section, sizeof section, "%.*s", (int)dot, value);
    snprintf(name, sizeof name, "%.*s", (int)(equals - dot - 1), value + dot + 1);
    snprintf(where, sizeof where, "--set %s.%s", section, name);
    const char *meant = sti_option_nearest_section(c->set, section);
    if (!meant || strcmp(meant, section) != 0) {
        sti_complain_section(&c->complaints, c->set, where, section);
        return;
    }
    int row = sti_option_find(c->set, section, name);
    if (row < 0)
        sti_complain_key(&c->complaints, c->set, where, section, name);
    else
        store(c, row, value + equals + 1, where);
}

/* "--no-name": true if that is what `name` says. */
static bool take_negation(command *c, const char *name, const char *value)
{
    int row = strncmp(name, "no-", 3) == 0 ? find_flag(c->set, name + 3) : -1;
    if (row < 0)
        return false;
    if (c->set->rows[row].type != STI_OPTION_BOOL)
        sti_complain(&c->complaints, "--%s: --%s is no switch, it takes a value", name,
                     name + 3);
    else if (value)
        sti_complain(&c->complaints, "--%s: takes no value", name);
    else
        store(c, row, "false", name);
    return true;
}

/* "--name", "--name=VALUE" or "--name VALUE"; `word` is what follows the dashes. */
static void take_long(command *c, const char *word)
{
    char name[NAME_BYTES], where[NAME_BYTES + 2];
    size_t length = strcspn(word, "=");
    const char *value = word[length] ? word + length + 1 : NULL;
    snprintf(name, sizeof name, "%.*s", (int)length, word);
    snprintf(where, sizeof where, "--%s", name);
    int row = find_flag(c->set, name);
    if (strcmp(name, "help") == 0 && !value)
        c->help = true;
    else if (strcmp(name, "set") == 0)
        take_set(c, value);
    else if (row < 0 && !take_negation(c, name, value))
        complain_flag(c, name);
    else if (row >= 0 && c->set->rows[row].type == STI_OPTION_BOOL && !value)
        store(c, row, "true", where);
    else if (row >= 0 && value && c->set->rows[row].repeated)
        take_repeated(c, row, value, where);
    else if (row >= 0 && value)
        store(c, row, value, where);
    else if (row >= 0 && (value = take_value(c, where)) != NULL)
        take_words(c, row, value, where);
}

/* Is -h a question for help, not the row of that letter? */
static bool is_help(const command *c, int row, const char *letters)
{
    if (letters[0] != 'h')
        return false;
    if (row < 0)
        return true;
    const char *value = letters[1]          ? letters + 1
                        : c->next < c->argc ? c->argv[c->next]
                                            : "";
    return !isdigit((unsigned char)value[0]) && value[0] != '=';
}

/* The value of a row that is no switch; `attached` stands behind its letter. */
static void take_lettered(command *c, int row, const char *attached, const char *where)
{
    const sti_option *o = &c->set->rows[row];
    if (*attached && o->suffixed && !strchr(attached, '=')) {
        take_suffix(c, row, attached, where);
        return;
    }
    const char *value =
        *attached ? attached + (*attached == '=') : take_value(c, where);
    if (value)
        take_words(c, row, value, where);
}

/* "-x", "-xVALUE", "-x VALUE", and switches together as "-qv". */
static void take_short(command *c, const char *letters)
{
    for (; *letters; letters++) {
        char where[3] = {'-', *letters, '\0'};
        int row = find_letter(c->set, *letters);
        if (is_help(c, row, letters)) {
            c->help = true;
        } else if (row < 0) {
            sti_complain(&c->complaints, "unknown flag -%c; --help lists all flags",
                         *letters);
            return;
        } else if (c->set->rows[row].type == STI_OPTION_BOOL) {
            store(c, row, "true", where);
        } else {
            take_lettered(c, row, letters + 1, where);
            return;
        }
    }
}

static void take_operand(command *c, const char *word)
{
    char *copy = sti_arena_strdup(c->set->arena, word);
    if (copy)
        c->operands[c->operand_count++] = copy;
    else
        c->complaints.no_memory = true;
}

stint_status sti_options_read_command(sti_option_set *set, int argc, char **argv,
                                      char ***operands_out, int *operand_count_out,
                                      bool *help_out)
{
    command c = {.set = set, .argc = argc, .argv = argv, .suffixed = -1};
    bool words_only = false;
    c.operands = sti_arena_alloc(set->arena, (size_t)(argc + 1) * sizeof *c.operands);
    if (!c.operands)
        return STINT_E_MEMORY;
    while (c.next < argc) {
        const char *word = argv[c.next++];
        if (words_only || word[0] != '-' || !word[1])
            take_operand(&c, word);
        else if (strcmp(word, "--") == 0)
            words_only = true;
        else if (word[1] == '-')
            take_long(&c, word + 2);
        else
            take_short(&c, word + 1);
    }
    sti_text_fini(&c.suffixes);
    if (help_out)
        *help_out = c.help;
    stint_status st = sti_complaints_end(&c.complaints);
    if (st == STINT_OK) {
        *operands_out = c.operands;
        *operand_count_out = c.operand_count;
    }
    return st;
}

/* ---- environment ---- */

static char upper(char c)
{
    return c == '-' || c == '.' ? '_' : (char)toupper((unsigned char)c);
}

static const char *match_upper(const char *variable, const char *name)
{
    for (; *name; name++)
        if (*variable++ != upper(*name))
            return NULL;
    return variable;
}

/* `variable` is what follows "STINT_", of `length` bytes. */
static bool row_matches(const sti_option *row, const char *variable, size_t length)
{
    const char *end = is_flag(row) ? match_upper(variable, sti_option_flag(row)) : NULL;
    if (end == variable + length)
        return true;
    end = row->section ? match_upper(variable, row->section) : NULL;
    if (!end || *end != '_')
        return false;
    return match_upper(end + 1, row->name) == variable + length;
}

static bool is_known(const char *name, const char *const *known)
{
    for (; known && *known; known++)
        if (strcmp(name, *known) == 0)
            return true;
    return false;
}

/* The nearest of the set's own flags, else of the other good variables: one that is
 * ignored is most often mistyped. */
static void warn_unknown(const sti_option_set *set, const char *name,
                         const char *const *known)
{
    enum { PREFIX = sizeof "STINT_" - 1 };
    const char *names[STI_OPTION_ROWS_MAX], *near;
    int count = 0;
    for (int row = 0; row < set->count && count < STI_OPTION_ROWS_MAX; row++)
        if (is_flag(&set->rows[row]))
            names[count++] = sti_option_flag(&set->rows[row]);
    near = sti_text_nearest(name + PREFIX, names, count);
    bool own = near != NULL;
    for (; !own && known && *known; known++) {
        const char *two[] = {near ? near : "", *known + PREFIX};
        if (strncmp(*known, "STINT_", PREFIX) == 0)
            near = sti_text_nearest(name + PREFIX, two, 2);
    }
    char shown[NAME_BYTES] = "";
    if (near)
        snprintf(shown, sizeof shown, "; did you mean STINT_%s?", near);
    for (char *at = strstr(shown, "STINT_"); at && *at; at++)
        *at = upper(*at);
    sti_log(STINT_LOG_WARNING, "unknown environment variable %s is ignored%s", name,
            shown);
}

static void take_variable(sti_option_set *set, sti_complaints *complaints,
                          const char *entry, const char *const *known)
{
    char name[NAME_BYTES];
    const char *variable = entry + strlen("STINT_");
    size_t length = strcspn(variable, "=");
    const char *value = variable[length] ? variable + length + 1 : "";
    snprintf(name, sizeof name, "%.*s", (int)(length + strlen("STINT_")), entry);
    for (int row = 0; row < set->count; row++) {
        if (!row_matches(&set->rows[row], variable, length))
            continue;
        if (*value) /* an empty variable is as good as none */
            sti_complain_status(
                complaints,
                sti_options_put(set, row, value, STI_FROM_ENVIRONMENT, name));
        return;
    }
    if (!set->unknown_told && !is_known(name, known))
        warn_unknown(set, name, known);
}

stint_status sti_options_read_environment(sti_option_set *set, const char *const *known)
{
    sti_complaints complaints = {0};
    for (char **entry = environ; entry && *entry; entry++)
        if (strncmp(*entry, "STINT_", 6) == 0)
            take_variable(set, &complaints, *entry, known);
    set->unknown_told = true;
    return sti_complaints_end(&complaints);
}
