/* Rendered letters: the same bytes for any threads, families apart,
 * symbols rejected. */
#include "data/data_fixture.h"

#if defined(STINT_HAVE_FREETYPE)
#include "data/data_fonts.h"

static void same_file(const char *a, const char *b)
{
    void *x = NULL, *y = NULL;
    size_t n = 0, m = 0;
    assert_int_equal(sti_file_read(a, 1 << 26, &x, &n), STINT_OK);
    assert_int_equal(sti_file_read(b, 1 << 26, &y, &m), STINT_OK);
    assert_int_equal(n, m);
    assert_memory_equal(x, y, n);
    sti_free(x);
    sti_free(y);
}

static stint_data_glyphs_desc small(const char *folder, int threads)
{
    return (stint_data_glyphs_desc){.folder = fixture_path("%s", folder),
                                    .train_count = 400,
                                    .test_count = 100,
                                    .min_faces = 2,
                                    .seed = 7,
                                    .threads = threads};
}

static void threads_give_the_same_bytes(void **state)
{
    (void)state;
    stint_data_glyphs_result result[4];
    for (int t = 1; t <= 3; t++) {
        char folder[16];
        (void)snprintf(folder, sizeof folder, "g%d", t);
        stint_data_glyphs_desc desc = small(folder, t);
        if (stint_data_glyphs(&desc, &result[t]) != STINT_OK)
            fail_msg("%s", stint_last_error());
        same_file(fixture_path("g1/train.tar"), fixture_path("g%d/train.tar", t));
        same_file(fixture_path("g1/test.tar"), fixture_path("g%d/test.tar", t));
        assert_int_equal(result[t].train_faces, result[1].train_faces);
    }
    assert_int_equal(result[1].train_count, 432); /* 12 of each */
    assert_int_equal(result[1].test_count, 108);
    stint_data_glyphs_desc other = small("other", 1);
    void *a = NULL, *b = NULL;
    size_t n = 0, m = 0;
    other.seed = 8;
    assert_int_equal(stint_data_glyphs(&other, &result[0]), STINT_OK);
    assert_int_equal(sti_file_read(fixture_path("g1/train.tar"), 1 << 26, &a, &n),
                     STINT_OK);
    assert_int_equal(sti_file_read(fixture_path("other/train.tar"), 1 << 26, &b, &m),
                     STINT_OK);
    assert_true(n != m || memcmp(a, b, n) != 0);
    sti_free(a);
    sti_free(b);
}

static void the_set_is_sound(void **state)
{
    (void)state;
    stint_data_check_result result;
    stint_data_check_desc desc = {.path = fixture_path("g1")};
    assert_int_equal(stint_data_check(&desc, &result), STINT_OK);
    assert_int_equal(result.classes, 36);
    assert_int_equal(result.height, 32);
    assert_int_equal(result.width, 32);
    assert_int_equal(result.channels, 1);
    assert_int_equal(result.notes, 0);
}

static void families_are_kept_apart(void **state)
{
    (void)state;
    sti_fonts fonts;
    sti_team team = {2};
    if (sti_fonts_find(NULL, 2, &team, &fonts) != STINT_OK)
        fail_msg("%s", stint_last_error());
    int32_t train = fonts.split_faces[0];
    assert_int_equal(train + fonts.split_faces[1], fonts.count);
    for (int32_t i = 0; i < train; i++) {
        for (int32_t k = train; k < fonts.count; k++) {
            assert_true(fonts.faces[i].group != fonts.faces[k].group);
            assert_string_not_equal(fonts.faces[i].family, fonts.faces[k].family);
        }
    }
    if (fonts.count >= 100) /* about a fifth of the groups */
        assert_in_range(fonts.splits[1].count * 100 /
                            (fonts.splits[0].count + fonts.splits[1].count),
                        15, 25);
    sti_fonts_fini(&fonts);
}

static void too_few_faces_are_counted(void **state)
{
    (void)state;
    stint_data_glyphs_result result;
    stint_data_glyphs_desc desc = small("few", 1);
    assert_int_equal(sti_dir_create(fixture_path("nofonts")), STINT_OK);
    fixture_write(fixture_path("nofonts/broken.ttf"), "no font at all", 14);
    desc.fonts = fixture_path("nofonts");
    assert_int_equal(stint_data_glyphs(&desc, &result), STINT_E_INPUT);
    assert_non_null(strstr(stint_last_error(), "2 usable font faces"));
    assert_non_null(strstr(stint_last_error(), "0 found"));
    assert_non_null(strstr(stint_last_error(), "fonts-"));
    assert_false(sti_path_is_file(fixture_path("few/train.tar")));
    desc = small("few", 1);
    desc.min_faces = 1000000;
    assert_int_equal(stint_data_glyphs(&desc, &result), STINT_E_INPUT);
    desc.folder = NULL;
    assert_int_equal(stint_data_glyphs(&desc, &result), STINT_E_USAGE);
    desc = small("few", 1);
    desc.size = 4;
    assert_int_equal(stint_data_glyphs(&desc, &result), STINT_E_USAGE);
    desc = small("nofonts/broken.ttf/x", 1);
    assert_int_equal(stint_data_glyphs(&desc, &result), STINT_E_IO);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(threads_give_the_same_bytes),
        cmocka_unit_test(the_set_is_sound),
        cmocka_unit_test(families_are_kept_apart),
        cmocka_unit_test(too_few_faces_are_counted),
    };
    return cmocka_run_group_tests_name("data_glyphs", tests, fixture_begin,
                                       fixture_end);
}

#else

static void says_that_it_cannot(void **state)
{
    (void)state;
    stint_data_glyphs_desc desc = {.folder = "x"};
    stint_data_glyphs_result result;
    assert_int_equal(stint_data_glyphs(&desc, &result), STINT_E_UNSUPPORTED);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(says_that_it_cannot)};
    return cmocka_run_group_tests_name("data_glyphs", tests, NULL, NULL);
}

#endif
