/* Splits for evaluation: classes of a model that have no images, folders of classes
 * that are empty, and what is refused all the same. */
#include "base/fail.h"
#include "data/data_fixture.h"

static const char *const names[] = {"cat", "dog", "eel"};
static const stint_data_info like = {.classes = 3, .class_names = names};

static char told[4][1024];
static int tellings;

static void keep_line(void *user, stint_log_level level, const char *text)
{
    (void)user;
    if (level == STINT_LOG_INFO && tellings < 4)
        snprintf(told[tellings++], sizeof told[0], "%s", text);
}

static stint_data_desc partial_of(const char *folder)
{
    return (stint_data_desc){
        .path = folder, .split = STINT_DATA_TEST, .like = &like, .partial = true};
}

static stint_data *open_partial(const char *folder)
{
    const stint_data_desc desc = partial_of(folder);
    stint_data *data = NULL;
    if (stint_data_open(&desc, &data) != STINT_OK)
        fail_msg("%s", stint_last_error());
    return data;
}

/* Labels are the model's numbers, and one line names what is not there. */
static void check_without_dog(const char *folder)
{
    stint_data *data = open_partial(folder);
    const stint_data_info *info = stint_data_describe(data);
    int64_t count[3];
    sti_data_count_classes(data, count);
    assert_int_equal(info->classes, 3);
    assert_int_equal(info->count, 4);
    for (int i = 0; i < 4; i++)
        assert_int_equal(sti_data_label(data, i), i < 2 ? 0 : 2);
    for (int c = 0; c < 3; c++) {
        assert_string_equal(info->class_names[c], names[c]);
        assert_int_equal(count[c], c == 1 ? 0 : 2);
    }
    tellings = 0;
    stint_set_log(keep_line, NULL);
    assert_int_equal(sti_data_tell_absent(data), STINT_OK);
    stint_set_log(NULL, NULL);
    assert_int_equal(tellings, 1);
    assert_non_null(strstr(told[0], "no images of 1 of the 3 classes ('dog');"));
    stint_data_close(data);
}

static void remove_dogs(const char *name)
{
    assert_int_equal(remove(fixture_path("%s/test/dog/000.png", name)), 0);
    assert_int_equal(remove(fixture_path("%s/test/dog/001.jpg", name)), 0);
}

static void an_empty_folder_is_fine(void **state)
{
    const char *folder = fixture_folder("empty", 2);
    (void)state;
    remove_dogs("empty");
    const stint_data_desc strict = {.path = folder, .split = STINT_DATA_TEST};
    fixture_refused(&strict, STINT_E_INPUT, "class 'dog' has no images", NULL);
    check_without_dog(folder);
}

static void a_class_that_is_not_there_is_fine(void **state)
{
    const char *folder = fixture_folder("less", 2);
    (void)state;
    remove_dogs("less");
    assert_int_equal(remove(fixture_path("less/test/dog")), 0);
    stint_data_desc strict = partial_of(folder);
    strict.partial = false;
    fixture_refused(&strict, STINT_E_INPUT, "'dog' is missing", NULL);
    check_without_dog(folder);
    /* An empty folder of no class of the model's says nothing. */
    assert_int_equal(sti_dir_create(fixture_path("less/test/notes")), STINT_OK);
    check_without_dog(folder);
}

static void all_there_is_no_line(void **state)
{
    stint_data *data = open_partial(fixture_folder("whole", 2));
    (void)state;
    tellings = 0;
    stint_set_log(keep_line, NULL);
    assert_int_equal(sti_data_tell_absent(data), STINT_OK);
    stint_set_log(NULL, NULL);
    assert_int_equal(tellings, 0);
    stint_data_close(data);
}

static void what_is_wrong_stays_refused(void **state)
{
    const char *folder = fixture_folder("wrong", 1);
    stint_data_desc desc = partial_of(folder);
    (void)state;
    fixture_png_file(fixture_path("wrong/test/fox/1.png"), 1, 8);
    fixture_refused(&desc, STINT_E_INPUT, "class 'fox' is not one of the 3", NULL);
    assert_int_equal(remove(fixture_path("wrong/test/fox/1.png")), 0);
    for (int c = 0; c < 3; c++)
        assert_int_equal(remove(fixture_path("wrong/test/%s/000.png", names[c])), 0);
    fixture_refused(&desc, STINT_E_INPUT, "no images in any", NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_empty_folder_is_fine),
        cmocka_unit_test(a_class_that_is_not_there_is_fine),
        cmocka_unit_test(all_there_is_no_line),
        cmocka_unit_test(what_is_wrong_stays_refused),
    };
    return cmocka_run_group_tests(tests, fixture_begin, fixture_end);
}
