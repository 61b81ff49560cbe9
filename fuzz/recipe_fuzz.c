/* Hostile recipes: whatever reads must check without a crash, and its resolved text
 * must read back to the same values. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/recipe.h"
#include "stint/train.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void round_trip(const stint_recipe *recipe)
{
    stint_recipe *back;
    sti_text text = {0}, list = {0};
    if (sti_recipe_write(recipe, false, &text) != STINT_OK)
        abort();
    if (sti_recipe_parse(text.data, "resolved", &back) != STINT_OK) {
        fprintf(stderr, "%s\n%s\n", text.data, stint_last_error());
        abort();
    }
    sti_recipe_differences(recipe, "now", back, "was", &list);
    if (list.length) {
        fprintf(stderr, "%s\n%s\n", text.data, list.data);
        abort();
    }
    stint_recipe_destroy(back);
    sti_text_fini(&text);
    sti_text_fini(&list);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    stint_recipe *recipe;
    char *text = sti_alloc(size + 1, "fuzz");
    if (!text)
        return 0;
    memcpy(text, data, size);
    if (sti_recipe_parse(text, "fuzz.ini", &recipe) == STINT_OK) {
        (void)stint_recipe_check(recipe);
        round_trip(recipe);
        stint_recipe_destroy(recipe);
    }
    sti_free(text);
    return 0;
}
