/* Built-in recipes: all are sound, and a small set gets a small batch. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>
#include <string.h>

#include "base/file.h"
#include "stint/train.h"
#include "train/recipe_view.h"
#include "train/stock.h"

static void test_all_are_sound(void **state)
{
    (void)state;
    sti_arena *arena = sti_arena_create("test");
    int count = 0;
    for (const sti_stock_recipe *s = sti_stock_recipes; s->name; s++, count++) {
        const sti_stock_choice choice = {.name = s->name, .images = 1 << 20};
        stint_recipe *r, *file;
        sti_text list = {0};
        assert_int_equal(sti_stock_load(&choice, &r), STINT_OK);
        assert_int_equal(stint_recipe_set(r, "data.path", "somewhere"), STINT_OK);
        if (stint_recipe_check(r) != STINT_OK)
            fail_msg("%s: %s", s->name, stint_last_error());
        char *out = sti_recipe_out(r, arena);
        assert_string_equal(sti_path_name(out), s->name);
        /* The file of that name says the same. */
        char *path = sti_arena_printf(arena, "%s/../recipes/%s.ini",
                                      STINT_TEST_SOURCE_DIR, s->name);
        assert_int_equal(stint_recipe_load(path, &file), STINT_OK);
        sti_recipe_differences(r, "built in", file, "of the file", &list);
        if (list.length)
            fail_msg("%s: %s", s->name, list.data);
        stint_recipe_destroy(file);
        stint_recipe_destroy(r);
    }
    assert_true(count >= 9);
    sti_arena_destroy(arena);
}

static void expect_batch(const char *name, int64_t images, int64_t batch,
                         int64_t shards, double lr)
{
    const sti_stock_choice choice = {.name = name, .images = images};
    stint_recipe *r;
    assert_int_equal(sti_stock_load(&choice, &r), STINT_OK);
    const sti_recipe_view v = sti_recipe_view_of(r);
    assert_int_equal(v.train->batch, batch);
    assert_int_equal(v.train->shards, shards);
    assert_true(fabs(v.optimizer->lr - lr) < 1e-12);
    stint_recipe_destroy(r);
}

static void test_small_sets(void **state)
{
    (void)state;
    expect_batch("photos-resnet18", 64, 64, 8, 0.05);
    expect_batch("photos-resnet18", 63, 56, 8, 0.05 * 56 / 64);
    expect_batch("photos-resnet18", 3, 3, 3, 0.05 * 3 / 64);
    expect_batch("photos-resnet18", 0, 64, 8, 0.05); /* text has no images */
    const sti_stock_choice none = {.name = "nothing"};
    stint_recipe *r = NULL;
    assert_int_equal(sti_stock_load(&none, &r), STINT_E_BUG);
    assert_null(r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_all_are_sound),
        cmocka_unit_test(test_small_sets),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
