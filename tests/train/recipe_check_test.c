/* What the check of a whole recipe says, and lists of milestones. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

#include "stint/train.h"
#include "train/recipe_view.h"

static void test_good(void **state)
{
    (void)state;
    stint_recipe *r;
    assert_int_equal(stint_recipe_create(&r), STINT_OK);
    assert_int_equal(stint_recipe_check(r), STINT_E_USAGE);
    assert_non_null(strstr(stint_last_error(), "data.path: no images given"));
    assert_int_equal(stint_recipe_set(r, "data.path", "somewhere"), STINT_OK);
    assert_int_equal(stint_recipe_check(r), STINT_OK);
    const sti_recipe_view v = sti_recipe_view_of(r);
    assert_int_equal(v.train->batch, 128);
    assert_string_equal(v.model->name, "resnet20");
    assert_string_equal(sti_recipe_format(r), "auto");
    /* A view sees what is set later. */
    assert_int_equal(stint_recipe_set(r, "train.batch", "64"), STINT_OK);
    assert_int_equal(v.train->batch, 64);
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

/* What would be left undone in silence. */
static void test_packed_growth(void **state)
{
    (void)state;
    stint_recipe *r;
    assert_int_equal(stint_recipe_create(&r), STINT_OK);
    assert_int_equal(stint_recipe_set(r, "data.path", "somewhere"), STINT_OK);
    assert_int_equal(stint_recipe_set(r, "grow.by", "schedule"), STINT_OK);
    assert_int_equal(stint_recipe_set(r, "grow.images", "64"), STINT_OK);
    assert_int_equal(stint_recipe_check(r), STINT_OK);
    assert_int_equal(stint_recipe_set(r, "error.pack", "all"), STINT_OK);
    assert_int_equal(stint_recipe_check(r), STINT_E_USAGE);
    assert_non_null(strstr(stint_last_error(), "error.pack: where micro-batches grow"));
    stint_recipe_destroy(r);
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
        cmocka_unit_test(test_good),
        cmocka_unit_test(test_all_complaints),
        cmocka_unit_test(test_packed_growth),
        cmocka_unit_test(test_milestones),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
