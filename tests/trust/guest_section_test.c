/* A room above train owns a section by its file and its line. This test is such a
 * guest: its section stands in this file, and its line is after those of the house. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

#include "stint/train.h"
#include "train/recipe_view.h"

typedef struct guest_values {
    double doubt;
    int64_t visits;
} guest_values;

static const sti_option rows[] = {
    {.name = "doubt",
     .type = STI_OPTION_FLOAT,
     STI_OPTION_RANGE(0, 1),
     .default_text = "0.1",
     .offset = offsetof(guest_values, doubt),
     .flag = true,
     .help = "a share"},
    {.name = "visits",
     .type = STI_OPTION_INT,
     STI_OPTION_RANGE(0, 100),
     .default_text = "0",
     .offset = offsetof(guest_values, visits),
     .help = "at most as many as there are shards"},
};

static void check(const stint_recipe *recipe, sti_complaints *complaints);

static const sti_recipe_section sti_guest_section = {
    STI_RECIPE_SECTION("guest", rows, guest_values),
    .check = check,
};

static const guest_values *guest_of(const stint_recipe *recipe)
{
    return sti_recipe_values(recipe, &sti_guest_section);
}

static void check(const stint_recipe *recipe, sti_complaints *complaints)
{
    if (guest_of(recipe)->visits > sti_train_section_of(recipe)->shards)
        sti_complain(complaints, "guest.visits: more than there are shards");
}

#define STI_SECTION(name) extern const sti_recipe_section sti_##name##_section;
#include "recipe_sections.h"
#undef STI_SECTION

const sti_recipe_section *const sti_recipe_sections[] = {
#define STI_SECTION(name) &sti_##name##_section,
#include "recipe_sections.h"
    STI_SECTION(guest)
#undef STI_SECTION
        NULL};

static void test_guest(void **state)
{
    (void)state;
    stint_recipe *r, *back;
    sti_text text = {0}, list = {0};
    assert_int_equal(stint_recipe_create(&r), STINT_OK);
    assert_true(guest_of(r)->doubt == 0.1);
    assert_int_equal(stint_recipe_set(r, "data.path", "somewhere"), STINT_OK);
    assert_int_equal(stint_recipe_set(r, "guest.visits", "5"), STINT_OK);
    assert_int_equal(stint_recipe_check(r), STINT_E_USAGE);
    assert_string_equal(stint_last_error(), "guest.visits: more than there are shards");
    assert_int_equal(stint_recipe_set(r, "train.shards", "8"), STINT_OK);
    assert_int_equal(stint_recipe_check(r), STINT_OK);
    assert_int_equal(sti_recipe_write(r, true, &text), STINT_OK);
    assert_non_null(strstr(text.data, "\n[guest]\ndoubt = 0.1\nvisits = 5\n"));
    assert_int_equal(sti_recipe_parse(text.data, "text", &back), STINT_OK);
    assert_int_equal(guest_of(back)->visits, 5);
    assert_int_equal(sti_recipe_view_of(back).train->shards, 8);
    assert_int_equal(stint_recipe_set(back, "guest.doubt", "0.5"), STINT_OK);
    sti_recipe_differences(r, "now", back, "was", &list);
    assert_string_equal(list.data, "guest.doubt (now 0.1, was 0.5)");
    sti_text_fini(&list);
    sti_text_fini(&text);
    sti_text_add(&text, "");
    sti_options_write_help(r->table->row, r->table->count, 80, &text);
    assert_non_null(strstr(text.data, "--doubt"));
    sti_text_fini(&text);
    stint_recipe_destroy(back);
    stint_recipe_destroy(r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_guest)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
