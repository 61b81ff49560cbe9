/* Recipes of the sections that there are, linked with base alone: no section may need
 * more than that. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <string.h>

#include "base/recipe.h"

static stint_recipe *good(void)
{
    stint_recipe *r;
    assert_int_equal(stint_recipe_create(&r), STINT_OK);
    assert_int_equal(stint_recipe_set(r, "data.path", "somewhere"), STINT_OK);
    return r;
}

/* A value as text, till the next call. */
static const char *value_of(const stint_recipe *r, const char *key)
{
    static char text[4096];
    for (int i = 0; i < r->set.count; i++) {
        char name[128];
        snprintf(name, sizeof name, "%s.%s", r->set.rows[i].section,
                 r->set.rows[i].name);
        if (strcmp(name, key) != 0)
            continue;
        sti_text value = {0};
        sti_options_value(&r->set, i, &value);
        snprintf(text, sizeof text, "%s", value.data ? value.data : "");
        sti_text_fini(&value);
        return text;
    }
    fail_msg("no key %s", key);
    return NULL;
}

static void expect(const stint_recipe *r, const char *key, const char *value)
{
    assert_string_equal(value_of(r, key), value);
}

static void test_defaults(void **state)
{
    (void)state;
    stint_recipe *r = good();
    sti_complaints list = {0};
    sti_recipe_check_sections(r, &list);
    assert_int_equal(sti_complaints_end(&list), STINT_OK);
    expect(r, "train.batch", "128");
    expect(r, "model.name", "resnet20");
    stint_recipe_destroy(r);
}

static void test_rows_are_complete(void **state)
{
    (void)state;
    const sti_recipe_table *table = sti_recipe_table_get();
    assert_non_null(table);
    for (int i = 0; i < table->count; i++) {
        const sti_option *row = &table->row[i];
        assert_non_null(row->section);
        assert_non_null(row->help);
        assert_non_null(row->default_text);
        assert_true(row->help[strlen(row->help) - 1] != '.');
        assert_true((row->type == STI_OPTION_CHOICE) == (row->choices != NULL));
        for (int k = 0; k < i; k++) {
            const sti_option *other = &table->row[k];
            assert_true(other->offset != row->offset);
            assert_false(strcmp(other->section, row->section) == 0 &&
                         strcmp(other->name, row->name) == 0);
            assert_true(row->letter == 0 || row->letter != other->letter);
        }
    }
}

static void test_unknown_key(void **state)
{
    (void)state;
    stint_recipe *r = good();
    assert_int_equal(stint_recipe_set(r, "train.bacth", "3"), STINT_E_USAGE);
    assert_non_null(strstr(stint_last_error(), "train.batch"));
    assert_int_equal(stint_recipe_set(r, "train.batch", "-3"), STINT_E_USAGE);
    assert_int_equal(stint_recipe_set(r, "train.batch", "many"), STINT_E_USAGE);
    stint_recipe_destroy(r);
}

static void test_text_reads_back(void **state)
{
    (void)state;
    stint_recipe *r = good(), *back;
    sti_text text = {0}, list = {0};
    assert_int_equal(stint_recipe_set(r, "optimizer.lr", "0.123456789"), STINT_OK);
    assert_int_equal(stint_recipe_set(r, "schedule.name", "step"), STINT_OK);
    assert_int_equal(stint_recipe_set(r, "schedule.milestones", "3,5"), STINT_OK);
    assert_int_equal(stint_recipe_set(r, "run.memory", "150M"), STINT_OK);
    assert_int_equal(sti_recipe_write(r, false, &text), STINT_OK);
    assert_int_equal(sti_recipe_parse(text.data, "here", &back), STINT_OK);
    sti_recipe_differences(r, "now", back, "was", &list);
    if (list.length)
        fail_msg("differ: %s", list.data);
    expect(back, "run.memory", "150M");
    assert_int_equal(value_of(back, "data.path")[0], '/');
    sti_text_fini(&text);
    stint_recipe_destroy(back);
    /* What is handed on names no path of this machine. */
    assert_int_equal(sti_recipe_write(r, true, &text), STINT_OK);
    assert_null(strstr(text.data, "somewhere"));
    assert_null(strstr(text.data, "150"));
    assert_int_equal(sti_recipe_parse(text.data, "here", &back), STINT_OK);
    expect(back, "optimizer.lr", "0.123456789");
    sti_text_fini(&text);
    stint_recipe_destroy(back);
    stint_recipe_destroy(r);
}

static void test_differences(void **state)
{
    (void)state;
    stint_recipe *a = good(), *b = good();
    sti_text list = {0};
    stint_recipe_set(a, "run.threads", "7");
    stint_recipe_set(a, "data.path", "elsewhere");
    stint_recipe_set(a, "train.epochs", "77"); /* constant rate: may go on longer */
    sti_recipe_differences(a, "now", b, "was", &list);
    assert_int_equal(list.length, 0);
    stint_recipe_set(a, "train.batch", "64");
    stint_recipe_set(a, "schedule.name", "cosine");
    sti_recipe_differences(a, "now", b, "was", &list);
    assert_non_null(strstr(list.data, "train.batch (now 64, was 128)"));
    assert_non_null(strstr(list.data, "train.epochs"));
    sti_text_fini(&list);
    stint_recipe_destroy(a);
    stint_recipe_destroy(b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_defaults),    cmocka_unit_test(test_rows_are_complete),
        cmocka_unit_test(test_unknown_key), cmocka_unit_test(test_text_reads_back),
        cmocka_unit_test(test_differences),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
