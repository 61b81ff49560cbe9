/* noise.json, and the recipe inside it. What is accepted has all four texts. */
#include <stdint.h>
#include <stdlib.h>

#include "base/recipe.h"
#include "trust/noise_origin.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    sti_noise_origin m = {NULL};
    stint_recipe *recipe = NULL;
    sti_arena *arena = sti_arena_create("fuzz");
    if (!arena)
        return 0;
    if (sti_noise_origin_parse((const char *)data, size, "fuzz", arena, &m) ==
        STINT_OK) {
        if (!m.numerics || !m.impl || !m.data || !m.recipe)
            abort();
        if (sti_recipe_parse(m.recipe, "fuzz", &recipe) == STINT_OK)
            stint_recipe_destroy(recipe);
    } else if (m.numerics || m.impl || m.data || m.recipe) {
        abort(); /* refused, and yet written to */
    }
    sti_arena_destroy(arena);
    return 0;
}
