/* Samples kept in memory: the same pixels, batches and digest, and no file is read any
 * more. */
#include "data/data_fixture.h"

#include "base/memory.h"

enum { COUNT = 15, BYTES = 8 * 8 * 3 };

static stint_data *open_folder(const char *folder)
{
    return fixture_open(&(stint_data_desc){.path = folder});
}

static void kept_samples_need_no_files(void **state)
{
    static uint8_t before[COUNT][BYTES], after[BYTES];
    char sha_before[65], sha_after[65];
    (void)state;
    stint_data *data = open_folder(fixture_folder("keep", 5));
    const sti_team team = {2};
    sti_data_decoders *decoders = fixture_decoders(data, 2);
    assert_int_equal(stint_data_describe(data)->count, COUNT);
    for (int i = 0; i < COUNT; i++)
        assert_int_equal(sti_data_decode(data, i, decoders, 0, before[i]), STINT_OK);
    assert_int_equal(sti_data_sha256(data, decoders, sha_before), STINT_OK);
    assert_int_equal(sti_data_kept_bytes(data), COUNT * BYTES);
    const size_t held = sti_alloc_now_bytes();
    assert_int_equal(sti_data_keep(data, &team, decoders), STINT_OK);
    assert_in_range(sti_alloc_now_bytes() - held, COUNT * BYTES, COUNT * BYTES + 256);
    assert_int_equal(sti_data_keep(data, &team, decoders),
                     STINT_OK); /* again: nothing */
    for (int i = 0; i < 5; i++)
        assert_int_equal(
            remove(fixture_path("keep/train/cat/%03d.%s", i, i % 2 ? "jpg" : "png")),
            0);
    for (int i = 0; i < COUNT; i++) {
        assert_int_equal(sti_data_decode(data, i, decoders, 1, after), STINT_OK);
        assert_memory_equal(before[i], after, BYTES);
    }
    assert_int_equal(sti_data_sha256(data, decoders, sha_after), STINT_OK);
    assert_string_equal(sha_before, sha_after);
    sti_data_decoders_destroy(decoders);
    stint_data_close(data);
}

/* The digest is of labels and pixels: a swap of two files of different classes shows.
 */
static void digest_tells_sets_apart(void **state)
{
    char a[65], b[65];
    (void)state;
    stint_data *data = open_folder(fixture_folder("sum", 3));
    sti_data_decoders *decoders = fixture_decoders(data, 1);
    assert_int_equal(sti_data_sha256(data, decoders, a), STINT_OK);
    assert_int_equal(
        rename(fixture_path("sum/train/cat/000.png"), fixture_path("sum/kept")), 0);
    fixture_png_file(fixture_path("sum/train/cat/000.png"), 77, 8);
    assert_int_equal(sti_data_sha256(data, decoders, b), STINT_OK);
    assert_string_not_equal(a, b);
    sti_data_decoders_destroy(decoders);
    stint_data_close(data);
}

static void a_broken_image_keeps_nothing(void **state)
{
    (void)state;
    const char *folder = fixture_folder("broken", 3);
    fixture_write(fixture_path("broken/train/dog/001.jpg"), "not an image", 12);
    stint_data *data = open_folder(folder);
    for (int t = 1; t <= 3; t++) {
        const sti_team team = {t};
        sti_data_decoders *decoders = fixture_decoders(data, t);
        const size_t held = sti_alloc_now_bytes();
        char hex[65];
        assert_int_equal(sti_data_keep(data, &team, decoders), STINT_E_INPUT);
        assert_non_null(strstr(stint_last_error(), "dog/001.jpg"));
        assert_int_equal(sti_alloc_now_bytes(), held);
        assert_int_equal(sti_data_sha256(data, decoders, hex), STINT_E_INPUT);
        sti_data_decoders_destroy(decoders);
    }
    stint_data_close(data);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(kept_samples_need_no_files),
        cmocka_unit_test(digest_tells_sets_apart),
        cmocka_unit_test(a_broken_image_keeps_nothing),
    };
    return cmocka_run_group_tests_name("data keep", tests, fixture_begin, fixture_end);
}
