/* Folders within a class: skipped with a note, or taken (nested); and notes as a log
 * has them: ten of a kind, then a count, once. */
#include "data/data_fixture.h"

static char log_text[65536];

static void take_log(void *user, stint_log_level level, const char *text)
{
    (void)user;
    size_t n = strlen(log_text);
    if (level <= STINT_LOG_INFO)
        (void)snprintf(log_text + n, sizeof log_text - n, "%s\n", text);
}

static int count_lines(const char *piece)
{
    int count = 0;
    for (const char *at = log_text; (at = strstr(at, piece)); at++)
        count++;
    return count;
}

/* Opens a split, with the log of that in log_text. */
static stint_data *open_split(const char *path, stint_data_split split, bool nested)
{
    stint_data *data = NULL;
    log_text[0] = '\0';
    const stint_status st = stint_data_open(
        &(stint_data_desc){.path = path, .split = split, .nested = nested}, &data);
    if (st != STINT_OK)
        fail_msg("%s: %s", path, stint_last_error());
    return data;
}

static void hash_of(const char *path, bool nested, char hex[65])
{
    sti_data_decoders *decoders = NULL;
    stint_data *data = open_split(path, STINT_DATA_TRAIN, nested);
    assert_int_equal(sti_data_decoders_create(data, 1, &decoders), STINT_OK);
    assert_int_equal(sti_data_sha256(data, decoders, hex), STINT_OK);
    sti_data_decoders_destroy(decoders);
    stint_data_close(data);
}

/* Two classes, of which one has images at three depths. */
static const char *const names[] = {"cat/1.png", "cat/more/2.png", "cat/more/old/3.png",
                                    "cat/z.png", "dog/4.png"};
enum { NAMES = sizeof names / sizeof names[0] };

static void make_tree(const char *folder)
{
    for (int i = 0; i < NAMES; i++)
        for (int split = 0; split < 2; split++)
            fixture_png_file(
                fixture_path("%s/%s/%s", folder, split ? "test" : "train", names[i]), i,
                8);
}

static void folders_are_skipped_and_called_so(void **state)
{
    (void)state;
    make_tree("tree");
    stint_data *data = open_split(fixture_path("tree"), STINT_DATA_TRAIN, false);
    assert_int_equal(stint_data_describe(data)->count, 3);
    assert_int_equal(count_lines("\n"), 1);
    assert_int_equal(count_lines("train/cat/more: skipped, it is a folder within a "
                                 "class; data.nested = true takes"),
                     1);
    stint_data_close(data);
    /* the training split that a test split is held against tells nothing */
    data = open_split(fixture_path("tree"), STINT_DATA_TEST, false);
    assert_int_equal(count_lines("\n"), 1);
    assert_int_equal(count_lines("test/cat/more: skipped"), 1);
    stint_data_close(data);
    /* a class that has nothing else */
    fixture_png_file(fixture_path("deep/train/cat/in/1.png"), 1, 8);
    fixture_png_file(fixture_path("deep/train/dog/1.png"), 1, 8);
    assert_int_equal(
        stint_data_open(&(stint_data_desc){.path = fixture_path("deep")}, &data),
        STINT_E_INPUT);
    assert_non_null(strstr(stint_last_error(), "class 'cat' has no images"));
    assert_non_null(strstr(stint_last_error(), "data.nested = true takes them"));
}

static void nested_takes_them(void **state)
{
    (void)state;
    char nested[65], flat[65], in_tar[65], name[100];
    make_tree("tree");
    stint_data *data = open_split(fixture_path("tree"), STINT_DATA_TRAIN, true);
    assert_int_equal(stint_data_describe(data)->count, NAMES);
    assert_string_equal(log_text, "");
    for (int i = 0; i < NAMES; i++) {
        sti_data_sample_name(data, i, name, sizeof name);
        assert_string_equal(name + strlen("train/"), names[i]);
    }
    stint_data_close(data);
    /* The same pictures in the same order without folders, and in an archive. */
    uint8_t bytes[32768];
    assert_int_equal(sti_dir_create(fixture_path("tar")), STINT_OK);
    fixture_tar tar = fixture_tar_open(fixture_path("tar/train.tar"), "pax");
    fixture_tar_add(&tar, "cat/more/", AE_IFDIR, NULL, 0);
    for (int i = NAMES - 1; i >= 0; i--) {
        size_t n = fixture_png(i, 8, 8, PNG_FORMAT_RGB, bytes, sizeof bytes);
        fixture_tar_add(&tar, names[i], AE_IFREG, bytes, n);
        fixture_write(fixture_path("flat/train/%.3s/%d.png", names[i], i), bytes, n);
    }
    fixture_tar_add(&tar, "cat/.hidden/9.png", AE_IFREG, bytes, 9);
    fixture_tar_close(&tar);
    hash_of(fixture_path("tree"), true, nested);
    hash_of(fixture_path("flat"), false, flat);
    hash_of(fixture_path("tar"), true, in_tar);
    assert_string_equal(nested, flat);
    assert_string_equal(nested, in_tar);
    data = open_split(fixture_path("tar"), STINT_DATA_TRAIN, false);
    assert_int_equal(stint_data_describe(data)->count, 3);
    assert_int_equal(count_lines("it lies in a folder within a class"), 2);
    stint_data_close(data);
}

/* Classes without splits: names decide, and a class may have nothing but folders. */
static void names_decide_within_folders(void **state)
{
    (void)state;
    for (int i = 0; i < 60; i++)
        fixture_png_file(
            fixture_path("own/%s/in/%d/%d.png", i % 2 ? "cat" : "dog", i % 3, i), i, 8);
    assert_false(stint_data_has_split(fixture_path("own"), NULL, STINT_DATA_TRAIN));
    assert_true(sti_data_has_part(fixture_path("own"), NULL, STINT_DATA_TRAIN, true));
    stint_data *train = open_split(fixture_path("own"), STINT_DATA_TRAIN, true);
    stint_data *test = open_split(fixture_path("own"), STINT_DATA_TEST, true);
    const int64_t held = stint_data_describe(test)->count;
    assert_int_equal(stint_data_describe(train)->count + held, 60);
    assert_in_range(held, 1, 15); /* a tenth is asked for */
    assert_int_equal(stint_data_describe(train)->classes, 2);
    stint_data_close(train);
    stint_data_close(test);
    /* without: the class is none, and why is said */
    fixture_png_file(fixture_path("own/eel/1.png"), 1, 8);
    fixture_png_file(fixture_path("own/fox/1.png"), 1, 8);
    train = open_split(fixture_path("own"), STINT_DATA_TRAIN, false);
    assert_int_equal(count_lines("cat: skipped, there is no image in it, only folders"),
                     1);
    stint_data_close(train);
}

static void loops_end(void **state)
{
    (void)state;
    char path[800], deep[700] = "";
    make_tree("loop");
    assert_int_equal(symlink("..", fixture_path("loop/train/cat/more/up")), 0);
    assert_int_equal(symlink(".", fixture_path("loop/train/dog/self")), 0);
    assert_int_equal(symlink("nowhere", fixture_path("loop/train/dog/gone.png")), 0);
    log_text[0] = '\0';
    stint_data *data = NULL;
    const stint_data_desc desc = {.path = fixture_path("loop"), .nested = true};
    assert_int_equal(stint_data_open(&desc, &data), STINT_E_INPUT);
    assert_non_null(strstr(stint_last_error(), "dog/gone.png: No such file"));
    (void)remove(fixture_path("loop/train/dog/gone.png"));
    for (int i = 0; i < 40; i++)
        strcat(deep, "/d");
    (void)snprintf(path, sizeof path, "loop/train/dog%s/1.png", deep);
    fixture_png_file(fixture_path("%s", path), 1, 8);
    data = open_split(fixture_path("loop"), STINT_DATA_TRAIN, true);
    assert_int_equal(stint_data_describe(data)->count, NAMES);
    assert_int_equal(count_lines("cat/more/up: skipped, it is a folder above itself"),
                     1);
    assert_int_equal(count_lines("dog/self: skipped, it is a folder above itself"), 1);
    assert_int_equal(count_lines("d: skipped, it lies too deep"), 1);
    stint_data_close(data);
    /* (whoever removes the fixture follows links) */
    (void)remove(fixture_path("loop/train/cat/more/up"));
    (void)remove(fixture_path("loop/train/dog/self"));
}

static void ten_of_a_kind_are_told(void **state)
{
    (void)state;
    fixture_png_file(fixture_path("many/train/a/1.png"), 1, 8);
    fixture_png_file(fixture_path("many/train/b/1.png"), 1, 8);
    for (int i = 0; i < 23; i++)
        fixture_write(fixture_path("many/train/%c/%02d.txt", "ab"[i % 2], i), "x", 1);
    for (int i = 0; i < 11; i++)
        assert_int_equal(sti_dir_create(fixture_path("many/train/a/f%02d", i)),
                         STINT_OK);
    for (int i = 0; i < 10; i++)
        assert_int_equal(symlink("/dev/null", fixture_path("many/train/%d", i)), 0);
    stint_data *data = open_split(fixture_path("many"), STINT_DATA_TRAIN, false);
    assert_int_equal(count_lines("not a .jpg, .png"),
                     0); /* after ten that are no class */
    assert_int_equal(count_lines("not a class folder"), 10);
    assert_int_equal(count_lines("folder within a class;"), 10);
    assert_int_equal(count_lines("... and 23 more skipped files in "), 1);
    assert_int_equal(count_lines("... and 1 more folders within a class in "), 1);
    assert_int_equal(count_lines("\n"), 22);
    stint_data_close(data);
    const stint_data_desc quiet = {.path = fixture_path("many"), .quiet = true};
    log_text[0] = '\0';
    assert_int_equal(stint_data_open(&quiet, &data), STINT_OK);
    assert_string_equal(log_text, "");
    stint_data_close(data);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(folders_are_skipped_and_called_so),
        cmocka_unit_test(nested_takes_them),
        cmocka_unit_test(names_decide_within_folders),
        cmocka_unit_test(loops_end),
        cmocka_unit_test(ten_of_a_kind_are_told),
    };
    stint_set_log(take_log, NULL);
    return cmocka_run_group_tests(tests, fixture_begin, fixture_end);
}
