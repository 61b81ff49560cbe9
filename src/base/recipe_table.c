/* The table of all sections of a recipe. */
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "base/option_priv.h"
#include "base/recipe.h"

static stint_status fail_twice(const sti_recipe_section *a, const sti_recipe_section *b,
                               const char *what)
{
    return sti_fail(STINT_E_BUG,
                    "%s stands twice in the table of recipe sections: in %s and in %s; "
                    "rename or remove one",
                    what, a->place, b->place);
}

/* What two rows may not share: a key, a flag, a letter. */
static stint_status compare_rows(const sti_recipe_table *table, int first, int second)
{
    const sti_option *a = &table->row[first], *b = &table->row[second];
    char what[160] = "";
    if (strcmp(a->section, b->section) == 0 && sti_option_same_name(a->name, b->name))
        snprintf(what, sizeof what, "key '%s' of [%s] (rows %d and %d of the union)",
                 b->name, b->section, first + 1, second + 1);
    else if (a->flag && b->flag &&
             sti_option_same_name(sti_option_flag(a), sti_option_flag(b)))
        snprintf(what, sizeof what, "flag --%s, of %s.%s and of %s.%s,",
                 sti_option_flag(b), a->section, a->name, b->section, b->name);
    else if (a->letter && a->letter == b->letter)
        snprintf(what, sizeof what, "letter -%c, of %s.%s and of %s.%s,", b->letter,
                 a->section, a->name, b->section, b->name);
    return *what ? fail_twice(table->section_of[first], table->section_of[second], what)
                 : STINT_OK;
}

static stint_status check_section(const sti_recipe_table *table,
                                  const sti_recipe_section *section)
{
    for (int i = 0; i < table->section_count; i++) {
        char what[80];
        snprintf(what, sizeof what, "section [%.60s]", section->name);
        if (strcmp(table->section[i]->name, section->name) == 0)
            return fail_twice(table->section[i], section, what);
    }
    if (table->section_count == STI_RECIPE_SECTIONS_MAX ||
        table->count + section->count > STI_OPTION_ROWS_MAX)
        return sti_fail(STINT_E_BUG,
                        "%s: [%s] does not fit into the table of recipe sections; "
                        "raise STI_RECIPE_SECTIONS_MAX or STI_OPTION_ROWS_MAX",
                        section->place, section->name);
    return STINT_OK;
}

static stint_status add_section(sti_recipe_table *table,
                                const sti_recipe_section *section)
{
    stint_status st = check_section(table, section);
    if (st != STINT_OK)
        return st;
    const size_t step = _Alignof(max_align_t), start = table->bytes;
    table->section[table->section_count] = section;
    table->start[table->section_count++] = start;
    table->bytes = (start + section->size + step - 1) / step * step;
    for (int i = 0; i < section->count && st == STINT_OK; i++) {
        const int row = table->count++;
        sti_option *o = &table->row[row];
        *o = section->rows[i];
        o->section = section->name;
        o->offset += start;
        o->same_weights = o->same_weights || section->same_weights;
        o->local = o->local || section->local;
        table->section_of[row] = section;
        for (int k = 0; k < row && st == STINT_OK; k++)
            st = compare_rows(table, k, row);
    }
    return st;
}

stint_status sti_recipe_table_build(const sti_recipe_section *const *sections,
                                    sti_recipe_table *table)
{
    stint_status st = STINT_OK;
    memset(table, 0, sizeof *table);
    for (; *sections && st == STINT_OK; sections++)
        st = add_section(table, *sections);
    return st;
}

static pthread_once_t table_once = PTHREAD_ONCE_INIT;
static sti_recipe_table all;
static char trouble[512]; /* empty: none */

static void build_all(void)
{
    if (sti_recipe_table_build(sti_recipe_sections, &all) != STINT_OK)
        snprintf(trouble, sizeof trouble, "%s", stint_last_error());
}

const sti_recipe_table *sti_recipe_table_get(void)
{
    pthread_once(&table_once, build_all);
    if (!*trouble)
        return &all;
    sti_fail(STINT_E_BUG, "%s", trouble);
    return NULL;
}
