/* Finding rows by name, and what to say when there is none. */
#include <string.h>

#include "base/option_priv.h"

static char fold(char c)
{
    return c == '-' ? '_' : c;
}

bool sti_option_same_name(const char *a, const char *b)
{
    for (; *a && fold(*a) == fold(*b); a++)
        b++;
    return fold(*a) == fold(*b);
}

int sti_option_find(const sti_option_set *set, const char *section, const char *name)
{
    for (int row = 0; row < set->count; row++)
        if (set->rows[row].section && strcmp(set->rows[row].section, section) == 0 &&
            sti_option_same_name(set->rows[row].name, name))
            return row;
    return -1;
}

/* Names of the keys of a section, of all sections when NULL. */
static int collect_keys(const sti_option_set *set, const char *section,
                        const char *names[STI_OPTION_ROWS_MAX])
{
    int count = 0;
    for (int row = 0; row < set->count && count < STI_OPTION_ROWS_MAX; row++) {
        const char *own = set->rows[row].section;
        if (own && (!section || strcmp(own, section) == 0))
            names[count++] = set->rows[row].name;
    }
    return count;
}

/* The section of the first row of that name, or NULL. */
static const char *section_of(const sti_option_set *set, const char *name)
{
    for (int row = 0; row < set->count; row++)
        if (set->rows[row].section && sti_option_same_name(set->rows[row].name, name))
            return set->rows[row].section;
    return NULL;
}

/* " known keys: a, b, c", cut where it grows long. */
static void add_known(sti_text *out, const char *what, const char *const *names,
                      int count)
{
    for (int i = 0; i < count && out->length < 400; i++)
        sti_text_printf(out, "%s%s", i ? ", " : what, names[i]);
}

void sti_complain_key(sti_complaints *c, const sti_option_set *set, const char *where,
                      const char *section, const char *name)
{
    if (sti_complain_unheard(c))
        return;
    const char *names[STI_OPTION_ROWS_MAX];
    int count = collect_keys(set, section, names);
    const char *home = section_of(set, name), *near;
    if (!*name)
        sti_complain(c, "%s: no key before the '='; write key = value", where);
    else if (home)
        sti_complain(c, "%s: unknown key '%s' in [%s]; it belongs in [%s]", where, name,
                     section, home);
    else if ((near = sti_text_nearest(name, names, count)) != NULL)
        sti_complain(c, "%s: unknown key '%s' in [%s]; did you mean '%s'?", where, name,
                     section, near);
    else if ((near = sti_text_nearest(name, names, collect_keys(set, NULL, names))) !=
             NULL)
        sti_complain(c, "%s: unknown key '%s' in [%s]; did you mean '%s' in [%s]?",
                     where, name, section, near, section_of(set, near));
    else {
        sti_text known = {0};
        add_known(&known, "; known keys are ", names,
                  collect_keys(set, section, names));
        sti_complain(c, "%s: unknown key '%s' in [%s]%s", where, name, section,
                     known.data ? known.data : "");
        sti_text_fini(&known);
    }
}

static int collect_sections(const sti_option_set *set,
                            const char *names[STI_OPTION_ROWS_MAX])
{
    int count = 0;
    for (int row = 0; row < set->count && count < STI_OPTION_ROWS_MAX; row++) {
        const char *section = set->rows[row].section;
        bool seen = !section;
        for (int i = 0; i < count && !seen; i++)
            seen = strcmp(names[i], section) == 0;
        if (!seen)
            names[count++] = section;
    }
    return count;
}

const char *sti_option_is_section(const sti_option_set *set, const char *section)
{
    for (int row = 0; row < set->count; row++)
        if (set->rows[row].section && strcmp(set->rows[row].section, section) == 0)
            return set->rows[row].section;
    return NULL;
}

const char *sti_option_nearest_section(const sti_option_set *set, const char *section)
{
    const char *names[STI_OPTION_ROWS_MAX];
    const char *known = sti_option_is_section(set, section);
    if (known)
        return known;
    return sti_text_nearest(section, names, collect_sections(set, names));
}

void sti_complain_section(sti_complaints *c, const sti_option_set *set,
                          const char *where, const char *section)
{
    const char *near = sti_option_nearest_section(set, section);
    const char *names[STI_OPTION_ROWS_MAX];
    if (near) {
        sti_complain(c, "%s: unknown section [%s]; did you mean [%s]?", where, section,
                     near);
        return;
    }
    sti_text known = {0};
    add_known(&known, "; known sections are ", names, collect_sections(set, names));
    sti_complain(c, "%s: unknown section [%s]%s", where, section,
                 known.data ? known.data : "");
    sti_text_fini(&known);
}
