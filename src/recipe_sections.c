/* The union of all sections of a recipe. It stands outside of the order of rooms: it
 * names sections of every room, and base/recipe.h reads it. */
#include "base/recipe.h"

/* A line that is there twice does not compile. */
enum {
#define STI_SECTION(name) STI_SECTION_##name,
#include "recipe_sections.h"
#undef STI_SECTION
};

#define STI_SECTION(name) extern const sti_recipe_section sti_##name##_section;
#include "recipe_sections.h"
#undef STI_SECTION

const sti_recipe_section *const sti_recipe_sections[] = {
#define STI_SECTION(name) &sti_##name##_section,
#include "recipe_sections.h"
#undef STI_SECTION
    NULL};
