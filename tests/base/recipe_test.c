/* Recipes of toy sections: all that base/recipe.h does without knowing a key. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "base/recipe.h"

typedef struct sti_tea_values {
    int64_t cups;
    const char *leaf, *pot;
    bool milk;
    int warm; /* no key */
} sti_tea_values;

#define AT(field) .offset = offsetof(sti_tea_values, field)

static const sti_option tea_rows[] = {
    {.name = "cups",
     .type = STI_OPTION_INT,
     STI_OPTION_RANGE(1, 9),
     .default_text = "2",
     AT(cups),
     .flag = true,
     .help = "how many"},
    {.name = "leaf",
     .type = STI_OPTION_TEXT,
     STI_OPTION_NO_BOUND,
     .default_text = "",
     AT(leaf),
     .help = "which"},
    {.name = "pot",
     .type = STI_OPTION_PATH,
     STI_OPTION_NO_BOUND,
     .default_text = "",
     AT(pot),
     .same_weights = true,
     .local = true,
     .help = "in what"},
    {.name = "milk",
     .type = STI_OPTION_BOOL,
     STI_OPTION_NO_BOUND,
     .default_text = "false",
     AT(milk),
     .help = "whether"},
};

static const sti_recipe_section tea;

static const sti_tea_values *tea_of(const stint_recipe *recipe)
{
    return sti_recipe_values(recipe, &tea);
}

static void check_tea(const stint_recipe *recipe, sti_complaints *complaints)
{
    if (tea_of(recipe)->milk && !tea_of(recipe)->leaf)
        sti_complain(complaints, "tea.milk: goes into tea; name a leaf");
}

static bool free_tea(const stint_recipe *now, const sti_option *row)
{
    return strcmp(row->name, "cups") == 0 && !tea_of(now)->milk;
}

static stint_status resolve_tea(const stint_recipe *recipe, sti_arena *arena,
                                void *values)
{
    sti_tea_values *v = values;
    (void)arena;
    if (!tea_of(recipe)->leaf)
        v->leaf = "any";
    return STINT_OK;
}

static const sti_recipe_section tea = {
    STI_RECIPE_SECTION("tea", tea_rows, sti_tea_values),
    .check = check_tea,
    .free_now = free_tea,
    .resolve = resolve_tea,
};

typedef struct sti_cake_values {
    double share;
    bool whole;
} sti_cake_values;

static const sti_option cake_rows[] = {
    {.name = "share",
     .type = STI_OPTION_FLOAT,
     STI_OPTION_RANGE(0, 1),
     .default_text = "0.5",
     .offset = offsetof(sti_cake_values, share),
     .letter = 's',
     .help = "of it"},
    {.name = "whole",
     .type = STI_OPTION_BOOL,
     STI_OPTION_NO_BOUND,
     .default_text = "true",
     .offset = offsetof(sti_cake_values, whole),
     .help = "uncut"},
};

static const sti_recipe_section cake = {
    STI_RECIPE_SECTION("cake", cake_rows, sti_cake_values),
    .same_weights = true,
    .local = true,
};

const sti_recipe_section *const sti_recipe_sections[] = {&tea, &cake, NULL};

static const sti_cake_values *cake_of(const stint_recipe *recipe)
{
    return sti_recipe_values(recipe, &cake);
}

static stint_recipe *plain(void)
{
    stint_recipe *r;
    assert_int_equal(stint_recipe_create(&r), STINT_OK);
    return r;
}

static void set(stint_recipe *r, const char *key, const char *value)
{
    if (stint_recipe_set(r, key, value) != STINT_OK)
        fail_msg("%s", stint_last_error());
}

static void refused(stint_recipe *r, const char *key, const char *value,
                    const char *words)
{
    assert_int_equal(stint_recipe_set(r, key, value), STINT_E_USAGE);
    if (!strstr(stint_last_error(), words))
        fail_msg("no '%s' in: %s", words, stint_last_error());
}

static void test_values(void **state)
{
    (void)state;
    stint_recipe *r = plain();
    assert_int_equal(tea_of(r)->cups, 2);
    assert_null(tea_of(r)->leaf);
    assert_true(cake_of(r)->share == 0.5 && cake_of(r)->whole);
    set(r, "tea.cups", "3");
    set(r, "cake.share", "0.25");
    set(r, "cake.whole", "false");
    assert_int_equal(tea_of(r)->cups, 3);
    assert_false(tea_of(r)->milk);
    assert_true(cake_of(r)->share == 0.25 && !cake_of(r)->whole);
    sti_tea_values *edit = sti_recipe_edit(r, &tea);
    edit->cups = 7;
    assert_int_equal(tea_of(r)->cups, 7);
    refused(r, "tea.cups", "10", "out of range");
    refused(r, "tea.cup", "1", "did you mean tea.cups?");
    refused(r, "sugar", "1", "keys are written section.name");
    assert_int_equal(tea_of(r)->cups, 7);
    stint_recipe_destroy(r);
}

static void test_check(void **state)
{
    (void)state;
    stint_recipe *r = plain();
    sti_complaints list = {0};
    set(r, "tea.milk", "true");
    sti_recipe_check_sections(r, &list);
    assert_int_equal(sti_complaints_end(&list), STINT_E_USAGE);
    assert_string_equal(stint_last_error(), "tea.milk: goes into tea; name a leaf");
    stint_recipe_destroy(r);
}

static void test_written(void **state)
{
    (void)state;
    stint_recipe *r = plain(), *back;
    sti_text text = {0};
    set(r, "tea.pot", "blue");
    set(r, "cake.share", "1");
    assert_int_equal(sti_recipe_write(r, true, &text), STINT_OK);
    assert_string_equal(text.data, "[tea]\ncups = 2\nmilk = false\n\n[cake]\nshare = "
                                   "0.5\nwhole = true\n");
    sti_text_fini(&text);
    assert_int_equal(sti_recipe_write(r, false, &text), STINT_OK);
    assert_non_null(strstr(text.data, "leaf = any\npot = /"));
    assert_non_null(strstr(text.data, "share = 1\n"));
    assert_null(tea_of(r)->leaf); /* the recipe itself stays */
    assert_int_equal(sti_recipe_parse(text.data, "here", &back), STINT_OK);
    assert_string_equal(tea_of(back)->leaf, "any");
    assert_int_equal(tea_of(back)->pot[0], '/');
    sti_text_fini(&text);
    stint_recipe_destroy(back);
    assert_int_equal(sti_recipe_parse("[tae]\ncups=1\n", "here", &back), STINT_E_USAGE);
    assert_non_null(strstr(stint_last_error(), "did you mean [tea]?"));
    stint_recipe_destroy(r);
}

static void test_differences(void **state)
{
    (void)state;
    stint_recipe *a = plain(), *b = plain(), *copy;
    sti_text list = {0};
    set(a, "tea.pot", "blue");
    set(a, "tea.cups", "4");
    set(a, "cake.share", "1");
    sti_recipe_differences(a, "now", b, "was", &list);
    assert_int_equal(list.length, 0);
    set(a, "tea.milk", "true"); /* with which cups count */
    sti_recipe_differences(a, "now", b, "was", &list);
    assert_string_equal(list.data,
                        "tea.cups (now 4, was 2), tea.milk (now true, was false)");
    sti_text_fini(&list);
    assert_int_equal(sti_recipe_copy(a, &copy), STINT_OK);
    assert_int_equal(tea_of(copy)->cups, 4);
    assert_true(cake_of(copy)->share == 1);
    stint_recipe_destroy(copy);
    stint_recipe_destroy(a);
    stint_recipe_destroy(b);
}

/* ---- what may not be there twice ---- */

static const sti_option milk_rows[] = {
    {.name = "cow", .type = STI_OPTION_TEXT, .default_text = "", .help = "whose"},
    {.name = "jug", .type = STI_OPTION_TEXT, .default_text = "", .help = "from what"},
    {.name = "cow", .type = STI_OPTION_TEXT, .default_text = "", .help = "again"},
};
static const sti_option flag_rows[] = {{.name = "number",
                                        .type = STI_OPTION_INT,
                                        .default_text = "0",
                                        .flag = true,
                                        .flag_name = "cups",
                                        .help = "of another"}};
static const sti_option letter_rows[] = {{.name = "size",
                                          .type = STI_OPTION_INT,
                                          .default_text = "0",
                                          .letter = 's',
                                          .help = "of another"}};

static void refused_table(const sti_recipe_section *a, const sti_recipe_section *b,
                          const char *words)
{
    const sti_recipe_section *const list[] = {a, b, NULL};
    sti_recipe_table *table = malloc(sizeof *table);
    assert_non_null(table);
    assert_int_equal(sti_recipe_table_build(list, table), STINT_E_BUG);
    free(table);
    if (!strstr(stint_last_error(), words))
        fail_msg("no '%s' in: %s", words, stint_last_error());
}

static void test_twice(void **state)
{
    (void)state;
    sti_recipe_section other = {STI_RECIPE_SECTION("tea", milk_rows, sti_tea_values)};
    other.place = "src/cow/milk_section.c";
    other.count = 2;
    refused_table(&tea, &other, "section [tea] stands twice");
    refused_table(&tea, &other, __FILE__ " and in src/cow/milk_section.c");
    other.name = "milk";
    other.count = 3;
    refused_table(&tea, &other,
                  "key 'cow' of [milk] (rows 5 and 7 of the union) stands");
    refused_table(&tea, &other,
                  "in src/cow/milk_section.c and in src/cow/milk_section.c");
    other.rows = flag_rows;
    other.count = 1;
    refused_table(&tea, &other, "flag --cups, of tea.cups and of milk.number,");
    other.rows = letter_rows;
    refused_table(&cake, &other, "letter -s, of cake.share and of milk.size,");
    refused_table(&cake, &other, __FILE__ " and in src/cow/milk_section.c");
}

/* For readers that may not know a section: a key's value as an INI file has it. */
static void test_says(void **state)
{
    stint_recipe *recipe = NULL;
    (void)state;
    assert_int_equal(stint_recipe_create(&recipe), STINT_OK);
    assert_true(sti_recipe_says(recipe, "tea.cups", "2"));
    assert_false(sti_recipe_says(recipe, "tea.cups", "3"));
    assert_int_equal(stint_recipe_set(recipe, "tea.cups", "3"), STINT_OK);
    assert_true(sti_recipe_says(recipe, "tea.cups", "3"));
    assert_true(sti_recipe_says(recipe, "tea.milk", "false"));
    assert_false(sti_recipe_says(recipe, "tea.sugar", "false"));
    assert_false(sti_recipe_says(recipe, "tea", "2"));
    stint_recipe_destroy(recipe);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_values),  cmocka_unit_test(test_check),
        cmocka_unit_test(test_written), cmocka_unit_test(test_differences),
        cmocka_unit_test(test_twice),   cmocka_unit_test(test_says),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
