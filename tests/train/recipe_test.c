/* Recipes: defaults, files, complaints, resolved text, what may change on a resume. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

#include "train/recipe.h"

static stint_recipe *good(void)
{
    stint_recipe *r;
    assert_int_equal(stint_recipe_create(&r), STINT_OK);
    assert_int_equal(stint_recipe_set(r, "data.path", "somewhere"), STINT_OK);
    return r;
}

static void test_defaults(void **state)
{
    (void)state;
    stint_recipe *r = good();
    assert_int_equal(stint_recipe_check(r), STINT_OK);
    assert_int_equal(r->values.train.batch, 128);
    assert_string_equal(r->values.model.name, "resnet20");
    assert_string_equal(sti_recipe_format(r), "auto");
    stint_recipe_destroy(r);
}

static void test_rows_are_complete(void **state)
{
    (void)state;
    for (int i = 0; i < sti_recipe_row_count; i++) {
        const sti_option *row = &sti_recipe_rows[i];
        assert_non_null(row->section);
        assert_non_null(row->help);
        assert_non_null(row->default_text);
        assert_true(row->help[strlen(row->help) - 1] != '.');
        assert_true((row->type == STI_OPTION_CHOICE) == (row->choices != NULL));
        for (int k = 0; k < i; k++) {
            const sti_option *other = &sti_recipe_rows[k];
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

static void test_all_complaints(void **state)
{
    (void)state;
    static const char *const settings[][2] = {
        {"model.name", "resnet21"},
        {"data.channels", "2"},
        {"train.batch", "10"},
        {"train.epochs", "0"},
        {"run.lanes", "9"},
        {"optimizer.lr", "0"},
        {"optimizer.nesterov", "true"},
        {"optimizer.momentum", "0"},
        {"schedule.milestones", "5,3"},
    };
    static const char *const words[] = {
        "resnet20", "data.path", "channels", "shards",     "epochs",
        "lanes",    "lr",        "nesterov", "milestones", "--batch 12"};
    stint_recipe *r;
    assert_int_equal(stint_recipe_create(&r), STINT_OK);
    for (size_t i = 0; i < sizeof settings / sizeof settings[0]; i++)
        assert_int_equal(stint_recipe_set(r, settings[i][0], settings[i][1]), STINT_OK);
    assert_int_equal(stint_recipe_check(r), STINT_E_USAGE);
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++)
        if (!strstr(stint_last_error(), words[i]))
            fail_msg("no word of %s in:\n%s", words[i], stint_last_error());
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
    assert_int_equal(back->values.run.memory_bytes, 150 << 20);
    assert_int_equal(back->values.data.path[0], '/');
    sti_text_fini(&text);
    stint_recipe_destroy(back);
    /* What is handed on names no path of this machine. */
    assert_int_equal(sti_recipe_write(r, true, &text), STINT_OK);
    assert_null(strstr(text.data, "somewhere"));
    assert_null(strstr(text.data, "150"));
    assert_int_equal(sti_recipe_parse(text.data, "here", &back), STINT_OK);
    assert_true(back->values.optimizer.lr == 0.123456789);
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

static void test_milestones(void **state)
{
    (void)state;
    double e[3];
    assert_int_equal(sti_recipe_milestones(NULL, e, 3), 0);
    assert_int_equal(sti_recipe_milestones("", e, 3), 0);
    assert_int_equal(sti_recipe_milestones(" 1 , 2.5", e, 3), 2);
    assert_true(e[0] == 1 && e[1] == 2.5);
    assert_int_equal(sti_recipe_milestones("1,2,3,4", e, 3), -1);
    assert_int_equal(sti_recipe_milestones("1,,2", e, 3), -1);
    assert_int_equal(sti_recipe_milestones("2,2", e, 3), -1);
    assert_int_equal(sti_recipe_milestones("0", e, 3), -1);
    assert_int_equal(sti_recipe_milestones("x", e, 3), -1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_defaults),
        cmocka_unit_test(test_rows_are_complete),
        cmocka_unit_test(test_unknown_key),
        cmocka_unit_test(test_all_complaints),
        cmocka_unit_test(test_text_reads_back),
        cmocka_unit_test(test_differences),
        cmocka_unit_test(test_milestones),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
