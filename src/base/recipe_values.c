/* The values of a section, apart from all that needs the table of them: sections call
 * this, and the table names the sections. */
#include "base/recipe.h"

static void *values_of(const stint_recipe *recipe, const sti_recipe_section *section)
{
    const sti_recipe_table *table = recipe->table;
    for (int i = 0; i < table->section_count; i++)
        if (table->section[i] == section)
            return (char *)recipe->set.target + table->start[i];
    return NULL;
}

const void *sti_recipe_values(const stint_recipe *recipe,
                              const sti_recipe_section *section)
{
    return values_of(recipe, section);
}

void *sti_recipe_edit(stint_recipe *recipe, const sti_recipe_section *section)
{
    return values_of(recipe, section);
}
