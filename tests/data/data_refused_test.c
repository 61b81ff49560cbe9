/* Sets that are missing, do not match, are broken or change are refused with a sentence
 * that names the culprit. */
#include "data/data_fixture.h"

/* ---- what is not there, or does not match ---- */

static void missing_things_are_named(void **state)
{
    (void)state;
    stint_data_desc desc = {.path = fixture_path("nowhere")};
    fixture_refused(&desc, STINT_E_INPUT, fixture_root, "nowhere does not exist", NULL);
    desc.path = "no/such/relative";
    fixture_refused(&desc, STINT_E_INPUT, "/no/such/relative does not exist", NULL);
    desc.path = NULL;
    fixture_refused(&desc, STINT_E_USAGE, "--data", NULL);
    assert_int_equal(sti_dir_create(fixture_path("empty")), STINT_OK);
    desc.path = fixture_path("empty");
    fixture_refused(&desc, STINT_E_INPUT, "no train split", "train.tar",
                    "train/<class>", NULL);
    desc.format = "tar";
    fixture_refused(&desc, STINT_E_INPUT, "of format tar", NULL);
    desc.format = "zip";
    fixture_refused(&desc, STINT_E_USAGE, "'zip'", "folder, tar", NULL);
    desc.format = NULL;
    fixture_write(fixture_path("file/x"), "x", 1);
    desc.path = fixture_path("file/x");
    fixture_refused(&desc, STINT_E_INPUT, "is a file", NULL);
    fixture_write(fixture_path("packed/train.tar.gz"), "x", 1);
    desc.path = fixture_path("packed");
    fixture_refused(&desc, STINT_E_INPUT, "gunzip", NULL);
    assert_int_equal(sti_dir_create(fixture_path("hollow/train")), STINT_OK);
    desc.path = fixture_path("hollow");
    fixture_refused(&desc, STINT_E_INPUT, "no images", NULL);
    fixture_png_file(fixture_path("trainonly/train/cat/1.png"), 1, 8);
    desc.path = fixture_path("trainonly");
    desc.split = STINT_DATA_TEST;
    fixture_refused(&desc, STINT_E_INPUT, "no test split", NULL);
    assert_false(stint_data_has_split(desc.path, NULL, STINT_DATA_TEST));
    assert_true(stint_data_has_split(desc.path, NULL, STINT_DATA_TRAIN));
    desc.size = -1;
    fixture_refused(&desc, STINT_E_USAGE, "size", NULL);
    desc.size = 0;
    desc.channels = 2;
    fixture_refused(&desc, STINT_E_USAGE, "channels", NULL);
}

static void classes_must_match(void **state)
{
    (void)state;
    stint_data_desc desc = {.path = fixture_folder("classes", 1),
                            .split = STINT_DATA_TEST};
    stint_data_close(fixture_open(&desc));
    fixture_png_file(fixture_path("classes/test/fox/1.png"), 1, 8);
    fixture_refused(&desc, STINT_E_INPUT, "'fox'", "not one of the 3", NULL);
    assert_int_equal(remove(fixture_path("classes/test/fox/1.png")), 0);
    assert_int_equal(remove(fixture_path("classes/test/fox")), 0);
    assert_int_equal(remove(fixture_path("classes/test/eel/000.png")), 0);
    fixture_refused(&desc, STINT_E_INPUT, "'eel' has no images", NULL);
    assert_int_equal(remove(fixture_path("classes/test/eel")), 0);
    fixture_refused(&desc, STINT_E_INPUT, "'eel' is missing", NULL);
    /* A model's classes, wherever they come from. */
    const char *names[] = {"cat", "dog"};
    stint_data_info like = {.classes = 2, .class_names = names};
    desc.like = &like;
    stint_data *data = fixture_open(&desc);
    assert_int_equal(stint_data_describe(data)->classes, 2);
    stint_data_close(data);
}

/* ---- what is broken ---- */

/* Decoding the broken file gives the text; `size` to resize or 0. */
static void decode_refused(const char *folder, int64_t size, const char *a,
                           const char *b)
{
    stint_data_desc desc = {.path = fixture_path("%s", folder), .size = size};
    stint_data *data = fixture_open(&desc);
    sti_data_decoders *decoders = fixture_decoders(data, 1);
    const stint_data_info *info = stint_data_describe(data);
    uint8_t *pixels = malloc((size_t)(info->height * info->width * 3));
    stint_status st = STINT_OK;
    for (int64_t i = 0; i < info->count && st == STINT_OK; i++)
        st = sti_data_decode(data, i, decoders, 0, pixels);
    assert_int_equal(st, STINT_E_INPUT);
    if (!strstr(stint_last_error(), a) || !strstr(stint_last_error(), b))
        fail_msg("'%s' or '%s' is not in: %s", a, b, stint_last_error());
    free(pixels);
    sti_data_decoders_destroy(decoders);
    stint_data_close(data);
}

static void broken_images_are_named(void **state)
{
    (void)state;
    uint8_t bytes[32768];
    size_t n;
    fixture_png_file(fixture_path("b1/train/cat/0.png"), 1, 8);
    n = fixture_jpeg(1, 8, 8, TJPF_RGB, TJSAMP_444, bytes);
    fixture_write(fixture_path("b1/train/cat/bad.jpg"), bytes, n - 40);
    decode_refused("b1", 0, "train/cat/bad.jpg", "cut short");
    n = fixture_png(3, 8, 8, PNG_FORMAT_RGB, bytes, sizeof bytes);
    fixture_png_file(fixture_path("b2/train/cat/0.png"), 1, 8);
    fixture_write(fixture_path("b2/train/cat/bad.png"), bytes, n / 2);
    decode_refused("b2", 0, "train/cat/bad.png", "PNG");
    fixture_png_file(fixture_path("b3/train/cat/0.png"), 1, 8);
    fixture_write(fixture_path("b3/train/cat/text.jpg"), "hello, I am no image", 20);
    decode_refused("b3", 0, "train/cat/text.jpg", "not a JPEG, PNG, WebP or BMP");
    fixture_png_file(fixture_path("b4/train/cat/0.png"), 1, 8);
    fixture_png_file(fixture_path("b4/train/cat/big.png"), 1, 12);
    decode_refused("b4", 0, "train/cat/big.png", "12x12 pixels, the others have 8x8");
    fixture_png_file(fixture_path("b5/train/cat/0.png"), 1, 8);
    fixture_write(fixture_path("b5/train/cat/empty.png"), "", 0);
    decode_refused("b5", 0, "train/cat/empty.png", "empty file");
    fixture_png_file(fixture_path("b6/train/cat/0.png"), 1, 8);
    n = fixture_png(3, 8, 8, PNG_FORMAT_RGB, bytes, sizeof bytes);
    fixture_write(fixture_path("b6/train/cat/head.png"), bytes, 20);
    decode_refused("b6", 0, "train/cat/head.png", "header");
    /* With resizing, all headers are read at once, so opening names it. */
    stint_data_desc desc = {.path = fixture_path("b3"), .size = 8};
    fixture_refused(&desc, STINT_E_INPUT, "text.jpg", "data check", NULL);
    desc.path = fixture_path("b4");
    stint_data_close(fixture_open(&desc));
}

static void damaged_archives_are_refused(void **state)
{
    (void)state;
    uint8_t bytes[32768];
    fixture_tar tar;
    size_t n = fixture_png(1, 8, 8, PNG_FORMAT_RGB, bytes, sizeof bytes);
    assert_int_equal(sti_dir_create(fixture_path("t1")), STINT_OK);
    tar = fixture_tar_open(fixture_path("t1/train.tar"), "ustar");
    fixture_tar_images(&tar, "train/", 90);
    fixture_tar_close(&tar);
    assert_int_equal(truncate(fixture_path("t1/train.tar"), 6000), 0);
    stint_data_desc desc = {.path = fixture_path("t1")};
    fixture_refused(&desc, STINT_E_INPUT, "train.tar", NULL);
    fixture_write(fixture_path("t2/train.tar"), "", 0);
    desc.path = fixture_path("t2");
    fixture_refused(&desc, STINT_E_INPUT, "is empty", NULL);
    fixture_write_maybe_gz(fixture_path("t3/train.tar.gz"), bytes, n);
    assert_int_equal(
        rename(fixture_path("t3/train.tar.gz"), fixture_path("t3/train.tar")), 0);
    desc.path = fixture_path("t3");
    fixture_refused(&desc, STINT_E_INPUT, "gunzip", NULL);
    assert_int_equal(sti_dir_create(fixture_path("t4")), STINT_OK);
    tar = fixture_tar_open(fixture_path("t4/train.tar"), "ustar");
    fixture_tar_add(&tar, "train/cat/1.png", AE_IFREG, bytes, n);
    fixture_tar_add(&tar, "train/cat/1.png", AE_IFREG, bytes, n);
    fixture_tar_close(&tar);
    desc.path = fixture_path("t4");
    fixture_refused(&desc, STINT_E_INPUT, "cat/1.png", "twice", NULL);
    assert_int_equal(sti_dir_create(fixture_path("t5")), STINT_OK);
    tar = fixture_tar_open(fixture_path("t5/train.tar"), "ustar");
    fixture_tar_add(&tar, "train/cat/1.png", AE_IFREG, bytes, n);
    fixture_tar_add(&tar, "train/dog", AE_IFDIR, NULL, 0);
    fixture_tar_close(&tar);
    desc.path = fixture_path("t5");
    fixture_refused(&desc, STINT_E_INPUT, "'dog' has no images", NULL);
}

static void damaged_idx_is_refused(void **state)
{
    (void)state;
    uint8_t bad[64] = {0, 0, 8, 3, 0, 0, 0, 2, 0, 0, 0, 2, 0, 0, 0, 2};
    stint_data_desc desc = {.path = fixture_path("i1")};
    fixture_idx("i1", "train", "", 10, 4, 1);
    fixture_write(fixture_path("i1/train-images-idx3-ubyte"), bad, 20);
    fixture_refused(&desc, STINT_E_INPUT, "train-images-idx3-ubyte", "cut short", NULL);
    fixture_write(fixture_path("i1/train-images-idx3-ubyte"), bad, 24);
    fixture_refused(&desc, STINT_E_INPUT, "10 labels for 2 images", NULL);
    bad[2] = 13; /* floats */
    fixture_write(fixture_path("i1/train-images-idx3-ubyte"), bad, 24);
    fixture_refused(&desc, STINT_E_INPUT, "not an IDX file", NULL);
    bad[2] = 8;
    bad[4] = 0xff; /* four thousand million images */
    fixture_write(fixture_path("i1/train-images-idx3-ubyte"), bad, 24);
    fixture_refused(&desc, STINT_E_INPUT, "damaged", NULL);
    assert_int_equal(remove(fixture_path("i1/train-labels-idx1-ubyte")), 0);
    fixture_refused(&desc, STINT_E_INPUT, "labels file is missing", NULL);
    /* Gzipped, and then cut. */
    fixture_idx("i2", "train", ".gz", 200, 10, 3);
    assert_int_equal(truncate(fixture_path("i2/train-images-idx3-ubyte.gz"), 200), 0);
    desc.path = fixture_path("i2");
    fixture_refused(&desc, STINT_E_INPUT, "train-images-idx3-ubyte.gz", NULL);
}

static void damaged_cifar_is_refused(void **state)
{
    (void)state;
    fixture_cifar(fixture_path("c1/data_batch_1.bin"), 10, 1);
    stint_data_desc desc = {.path = fixture_path("c1")};
    stint_data_close(fixture_open(&desc));
    fixture_write(fixture_path("c1/batches.meta.txt"), "a\nb\n", 4);
    fixture_refused(&desc, STINT_E_INPUT, "only 2 class names", NULL);
    assert_int_equal(remove(fixture_path("c1/batches.meta.txt")), 0);
    assert_int_equal(truncate(fixture_path("c1/data_batch_1.bin"), 10000), 0);
    fixture_refused(&desc, STINT_E_INPUT, "data_batch_1.bin", "10000 bytes", NULL);
}

static void changed_files_are_noticed(void **state)
{
    (void)state;
    stint_data_desc desc = {.path = fixture_folder("changed", 1)};
    stint_data *data = fixture_open(&desc);
    sti_data_decoders *decoders = fixture_decoders(data, 1);
    uint8_t pixels[192];
    fixture_write(fixture_path("changed/train/cat/000.png"), "tiny", 4);
    assert_int_equal(sti_data_decode(data, 0, decoders, 0, pixels), STINT_E_INPUT);
    assert_non_null(strstr(stint_last_error(), "changed"));
    assert_int_equal(remove(fixture_path("changed/train/cat/000.png")), 0);
    assert_int_equal(sti_data_decode(data, 0, decoders, 0, pixels), STINT_E_IO);
    assert_non_null(strstr(stint_last_error(), "cat/000.png"));
    assert_int_equal(sti_data_decode(data, 99, decoders, 0, pixels), STINT_E_BUG);
    sti_data_decoders_destroy(decoders);
    stint_data_close(data);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(missing_things_are_named),
        cmocka_unit_test(classes_must_match),
        cmocka_unit_test(broken_images_are_named),
        cmocka_unit_test(damaged_archives_are_refused),
        cmocka_unit_test(damaged_idx_is_refused),
        cmocka_unit_test(damaged_cifar_is_refused),
        cmocka_unit_test(changed_files_are_noticed),
    };
    return cmocka_run_group_tests_name("data_refused", tests, fixture_begin,
                                       fixture_end);
}
