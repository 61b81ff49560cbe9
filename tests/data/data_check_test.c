/* stint data check tells every problem, ten of a kind in full, in one order. */
#include "data/data_fixture.h"

typedef struct told {
    int problems, notes;
    char text[65536];
} told;

static void take(void *user, stint_data_level level, const char *text)
{
    told *t = user;
    *(level == STINT_DATA_NOTE ? &t->notes : &t->problems) += 1;
    size_t n = strlen(t->text);
    (void)snprintf(t->text + n, sizeof t->text - n, "%s\n", text);
}

static void wants(const told *t, const char *piece)
{
    if (!strstr(t->text, piece))
        fail_msg("'%s' is not in:\n%s", piece, t->text);
}

static stint_status check(const char *path, int threads, told *t,
                          stint_data_check_result *result)
{
    *t = (told){0};
    return stint_data_check(
        &(stint_data_check_desc){
            .path = path, .threads = threads, .found = take, .user = t},
        result);
}

static void sound_data_passes(void **state)
{
    (void)state;
    static told t;
    stint_data_check_result result;
    assert_int_equal(check(fixture_folder("sound", 3), 2, &t, &result), STINT_OK);
    assert_int_equal(result.train_count, 9);
    assert_int_equal(result.test_count, 9);
    assert_int_equal(result.classes, 3);
    assert_int_equal(result.width, 8);
    assert_int_equal(result.problems + result.notes, 0);
}

static void make_bad_set(void)
{
    uint8_t bytes[32768];
    size_t n = fixture_png(7, 8, 8, PNG_FORMAT_RGB, bytes, sizeof bytes);
    (void)fixture_folder("bad", 3);
    fixture_write(fixture_path("bad/train/cat/liar.jpg"), bytes, n);
    fixture_write(fixture_path("bad/train/cat/cut.png"), bytes, n - 20);
    fixture_write(fixture_path("bad/train/cat/notes.txt"), "hello", 5);
    fixture_write(fixture_path("bad/train/cat/text.png"), "hello, no image", 15);
    fixture_write(fixture_path("bad/train/stray.png"), bytes, n);
    fixture_write(fixture_path("bad/train/.DS_Store"), "x", 1);
    n = fixture_png(8, 8, 8, PNG_FORMAT_GRAY, bytes, sizeof bytes);
    fixture_write(fixture_path("bad/train/dog/grey.png"), bytes, n);
    for (int i = 0; i < 14; i++)
        fixture_png_file(fixture_path("bad/train/dog/big%02d.png", i), i, 9);
    assert_int_equal(sti_dir_create(fixture_path("bad/train/owl")), STINT_OK);
    fixture_png_file(fixture_path("bad/test/fox/1.png"), 1, 8);
}

static void everything_is_told(void **state)
{
    (void)state;
    static told first, t;
    stint_data_check_result result;
    make_bad_set();
    assert_int_equal(check(fixture_path("bad"), 1, &first, &result), STINT_E_INPUT);
    assert_non_null(strstr(stint_last_error(), "problems found"));
    wants(&first, "class 'owl' has no images");
    wants(&first, "'fox' is not one of the 4 training classes");
    wants(&first, "the training class 'owl' is missing");
    wants(&first, "train/cat/cut.png: the PNG is cut short");
    wants(&first, "train/cat/text.png: not a JPEG, PNG, WebP or BMP image");
    wants(&first, "train/cat/liar.jpg is a PNG file by its contents");
    wants(&first, "notes.txt: skipped");
    wants(&first, "stray.png: skipped");
    wants(&first, "train/dog/grey.png is grey");
    wants(&first, "big09.png: 9x9 pixels");
    wants(&first, "... and 4 more images of another size");
    assert_null(strstr(first.text, "big10.png"));
    assert_null(strstr(first.text, "DS_Store"));
    /* owl twice, fox, cut, text, 14 sizes */
    assert_int_equal(result.problems, 19);
    wants(&first,
          "train: sizes from 8x8 to 9x9; with a `size` in [data], fit = squash");
    assert_int_equal(result.notes, 5);
    for (int threads = 2; threads <= 3; threads++) {
        assert_int_equal(check(fixture_path("bad"), threads, &t, &result),
                         STINT_E_INPUT);
        assert_string_equal(t.text, first.text);
    }
}

static void hopeless_sets_are_told(void **state)
{
    (void)state;
    static told t;
    stint_data_check_result result;
    assert_int_equal(check(fixture_path("absent"), 1, &t, &result), STINT_E_INPUT);
    wants(&t, "does not exist");
    fixture_png_file(fixture_path("lonely/train/cat/1.png"), 1, 8);
    assert_int_equal(check(fixture_path("lonely"), 1, &t, &result), STINT_E_INPUT);
    wants(&t, "all training images are of one class, 'cat'");
    wants(&t, "no test split");
    fixture_write(fixture_path("noimage/train/cat/1.png"), "x", 1);
    assert_int_equal(check(fixture_path("noimage"), 1, &t, &result), STINT_E_INPUT);
    wants(&t, "cat/1.png");
    /* Damage in the training split does not hide what is wrong with the test split. */
    fixture_write(fixture_path("both/train.tar"), "xxxxxxxxxxxxxxxx", 16);
    fixture_write(fixture_path("both/test.tar"), "yyyyyyyyyyyyyyyy", 16);
    assert_int_equal(check(fixture_path("both"), 1, &t, &result), STINT_E_INPUT);
    wants(&t, "train.tar");
    wants(&t, "test.tar");
}

static void duplicates_in_archives_are_told(void **state)
{
    (void)state;
    static told t;
    stint_data_check_result result;
    uint8_t bytes[32768];
    size_t n = fixture_png(7, 8, 8, PNG_FORMAT_RGB, bytes, sizeof bytes);
    assert_int_equal(sti_dir_create(fixture_path("dup")), STINT_OK);
    fixture_tar tar = fixture_tar_open(fixture_path("dup/train.tar"), "ustar");
    for (int i = 0; i < 3; i++)
        fixture_tar_add(&tar, i < 2 ? "train/a/1.png" : "train/b/1.png", AE_IFREG,
                        bytes, n);
    fixture_tar_close(&tar);
    assert_int_equal(check(fixture_path("dup"), 1, &t, &result), STINT_E_INPUT);
    wants(&t, "a/1.png is there twice");
    assert_int_equal(result.train_count, 3);
    assert_int_equal(result.problems, 1);
}

static void allocation_failures_are_clean(void **state)
{
    (void)state;
    static told t;
    stint_data_check_result result;
    const char *path = fixture_folder("alloc", 1);
    size_t before = sti_alloc_now_bytes();
    stint_status st = STINT_E_MEMORY;
    int64_t whole = sti_alloc_count();
    assert_int_equal(check(path, 2, &t, &result), STINT_OK);
    whole = sti_alloc_count() - whole;
    for (int64_t n = 1; n <= whole; n++) {
        sti_alloc_fail_nth(n);
        st = check(path, 2, &t, &result);
        sti_alloc_fail_nth(0);
        assert_int_equal(sti_alloc_now_bytes(), before);
        assert_true(st == STINT_OK || st == STINT_E_MEMORY || st == STINT_E_INPUT);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sound_data_passes),
        cmocka_unit_test(everything_is_told),
        cmocka_unit_test(hopeless_sets_are_told),
        cmocka_unit_test(duplicates_in_archives_are_told),
        cmocka_unit_test(allocation_failures_are_clean),
    };
    return cmocka_run_group_tests_name("data_check", tests, fixture_begin, fixture_end);
}
