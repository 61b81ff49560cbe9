/* A program whose table has a section twice makes no recipe. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

#include "base/recipe.h"

typedef struct toy_values {
    bool on;
} toy_values;

static const sti_option rows[] = {{.name = "on",
                                   .type = STI_OPTION_BOOL,
                                   STI_OPTION_NO_BOUND,
                                   .default_text = "false",
                                   .offset = offsetof(toy_values, on),
                                   .help = "whether"}};

static const sti_recipe_section toy = {STI_RECIPE_SECTION("toy", rows, toy_values)};

const sti_recipe_section *const sti_recipe_sections[] = {&toy, &toy, NULL};

static void test_no_recipe(void **state)
{
    (void)state;
    stint_recipe *recipe = NULL;
    for (int i = 0; i < 2; i++) {
        assert_int_equal(stint_recipe_create(&recipe), STINT_E_BUG);
        assert_null(recipe);
        assert_string_equal(stint_last_error(),
                            "section [toy] stands twice in the table of recipe "
                            "sections: in " __FILE__ " and in " __FILE__
                            "; rename or remove one");
        assert_null(sti_recipe_table_get());
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_no_recipe)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
