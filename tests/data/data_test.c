/* Every source opens to the same order and pixels; bad sets are refused with a sentence
 * that names the culprit; batches do not depend on threads. */
#include "data/data_fixture.h"

#include <errno.h>

/* ---- sources ---- */

static stint_data *open_ok(const stint_data_desc *desc)
{
    stint_data *data = NULL;
    stint_status st = stint_data_open(desc, &data);
    if (st != STINT_OK)
        fail_msg("%s", stint_last_error());
    return data;
}

static sti_data_decoders *decoders_ok(const stint_data *data, int workers)
{
    sti_data_decoders *decoders = NULL;
    assert_int_equal(sti_data_decoders_create(data, workers, &decoders), STINT_OK);
    return decoders;
}

static void decode_ok(const stint_data *data, int64_t index, uint8_t *pixels)
{
    sti_data_decoders *decoders = decoders_ok(data, 1);
    if (sti_data_decode(data, index, decoders, 0, pixels) != STINT_OK)
        fail_msg("%s", stint_last_error());
    sti_data_decoders_destroy(decoders);
}

static void folder_is_sorted_and_decodes(void **state)
{
    (void)state;
    stint_data_desc desc = {.path = fixture_folder("plain", 3)};
    stint_data *data = open_ok(&desc);
    const stint_data_info *info = stint_data_describe(data);
    uint8_t pixels[8 * 8 * 3], wanted[8 * 8 * 3];
    char name[64];
    assert_int_equal(info->count, 9);
    assert_int_equal(info->classes, 3);
    assert_string_equal(info->class_names[0], "cat");
    assert_string_equal(info->class_names[2], "eel");
    assert_int_equal(info->height, 8);
    assert_int_equal(info->width, 8);
    assert_int_equal(info->channels, 3);
    assert_string_equal(info->format, "folder");
    assert_int_equal(info->path[0], '/');
    sti_data_sample_name(data, 4, name, sizeof name);
    assert_string_equal(name, "train/dog/001.jpg");
    assert_int_equal(sti_data_label(data, 4), 1);
    decode_ok(data, 0, pixels); /* cat/000.png: exact */
    fixture_pixels(10, 8, 8, 3, wanted);
    assert_memory_equal(pixels, wanted, sizeof pixels);
    decode_ok(data, 1, pixels); /* cat/001.jpg: near */
    fixture_pixels(11, 8, 8, 3, wanted);
    for (size_t i = 0; i < sizeof pixels; i++)
        assert_in_range(pixels[i], wanted[i] - 6, wanted[i] + 6);
    stint_data_close(data);
}

/* length: of the long names. */
static void add_images(fixture_tar *tar, const char *prefix, int length)
{
    static const char *const classes[] = {"eel", "cat", "dog"};
    uint8_t bytes[32768];
    char name[300], longer[200];
    memset(longer, 'x', sizeof longer);
    longer[length] = '\0';
    for (int c = 0; c < 3; c++) {
        (void)snprintf(name, sizeof name, "%s%s", prefix, classes[c]);
        fixture_tar_add(tar, name, AE_IFDIR, NULL, 0);
        for (int i = 0; i < 2; i++) {
            size_t n =
                fixture_png(c * 10 + i, 8, 8, PNG_FORMAT_RGB, bytes, sizeof bytes);
            (void)snprintf(name, sizeof name, "%s%s/%d%s.png", prefix, classes[c], i,
                           i ? longer : "");
            fixture_tar_add(tar, name, AE_IFREG, bytes, n);
        }
    }
}

/* Long names need extension headers in pax and gnutar;
 * in ustar they need the prefix. */
static void tar_formats_read_in_place(void **state)
{
    static const char *const formats[] = {"ustar", "pax", "gnutar"};
    (void)state;
    for (int f = 0; f < 3; f++) {
        char folder[16];
        (void)snprintf(folder, sizeof folder, "tar%d", f);
        assert_int_equal(sti_dir_create(fixture_path("%s", folder)), STINT_OK);
        for (int split = 0; split < 2; split++) {
            fixture_tar tar = fixture_tar_open(
                fixture_path("%s/%s.tar", folder, split ? "test" : "train"),
                formats[f]);
            if (f == 0)
                add_images(&tar, split ? "./test/" : "train/", 92);
            else
                add_images(&tar, "", 150);
            fixture_tar_add(&tar, "train/README.txt", AE_IFREG, "hi", 2);
            fixture_tar_add(&tar, "train/cat/link.png", AE_IFLNK, NULL, 0);
            fixture_tar_close(&tar);
        }
        for (int split = 0; split < 2; split++) {
            stint_data_desc desc = {.path = fixture_path("%s", folder),
                                    .split =
                                        split ? STINT_DATA_TEST : STINT_DATA_TRAIN};
            stint_data *data = open_ok(&desc);
            const stint_data_info *info = stint_data_describe(data);
            uint8_t pixels[192], wanted[192];
            char name[300];
            assert_int_equal(info->count, 6);
            assert_string_equal(info->class_names[1], "dog");
            for (int i = 0; i < 6; i++) {
                int c = i / 2 == 2 ? 0 : i / 2 + 1; /* order in the archive */
                decode_ok(data, i, pixels);
                fixture_pixels(c * 10 + i % 2, 8, 8, 3, wanted);
                assert_memory_equal(pixels, wanted, sizeof pixels);
            }
            sti_data_sample_name(data, 2, name, sizeof name);
            assert_non_null(strstr(name, "dog/0.png"));
            stint_data_close(data);
        }
    }
}

static void idx_plain_and_gzipped_agree(void **state)
{
    (void)state;
    uint8_t pixels[2][100], wanted[100];
    for (int gz = 0; gz < 2; gz++) {
        const char *name = gz ? "idxgz" : "idx";
        fixture_idx(name, "train", gz ? ".gz" : "", 40, 10, 3);
        fixture_idx(name, "t10k", gz ? ".gz" : "", 20, 10, 3);
        stint_data_desc desc = {.path = fixture_path("%s", name)};
        stint_data *data = open_ok(&desc);
        const stint_data_info *info = stint_data_describe(data);
        char text[64];
        assert_int_equal(info->count, 40);
        assert_int_equal(info->classes, 10);
        assert_int_equal(info->channels, 1);
        assert_string_equal(info->class_names[7], "7");
        assert_string_equal(info->format, "idx");
        assert_int_equal(sti_data_label(data, 0), 0);
        assert_int_equal(sti_data_label(data, 39), 9);
        sti_data_sample_name(data, 1, text,
                             sizeof text); /* labels 0: images 0, 10, ... */
        assert_non_null(strstr(text, "image 10"));
        decode_ok(data, 1, pixels[gz]);
        fixture_pixels(10, 10, 10, 1, wanted);
        assert_memory_equal(pixels[gz], wanted, 100);
        stint_data_close(data);
        desc.split = STINT_DATA_TEST;
        data = open_ok(&desc);
        assert_int_equal(stint_data_describe(data)->count, 20);
        stint_data_close(data);
    }
}

static void cifar_ten_and_hundred(void **state)
{
    static const char names[] = "a\nb\nc\nd\ne\nf\ng\nh\ni\nj\n\n";
    (void)state;
    uint8_t planes[3072], pixels[3072];
    fixture_cifar(fixture_path("c10/cifar-10-batches-bin/data_batch_1.bin"), 20, 1);
    fixture_cifar(fixture_path("c10/cifar-10-batches-bin/data_batch_2.bin"), 10, 1);
    fixture_cifar(fixture_path("c10/cifar-10-batches-bin/test_batch.bin"), 10, 1);
    fixture_write(fixture_path("c10/cifar-10-batches-bin/batches.meta.txt"), names,
                  sizeof names - 1);
    fixture_cifar(fixture_path("c100/train.bin"), 20, 2);
    fixture_cifar(fixture_path("c100/test.bin"), 10, 2);
    for (int hundred = 0; hundred < 2; hundred++) {
        stint_data_desc desc = {.path = fixture_path(hundred ? "c100" : "c10")};
        stint_data *data = open_ok(&desc);
        const stint_data_info *info = stint_data_describe(data);
        char name[64];
        assert_int_equal(info->count, hundred ? 20 : 30);
        assert_int_equal(info->classes, 10);
        assert_string_equal(info->class_names[3], hundred ? "3" : "d");
        assert_int_equal(info->height, 32);
        assert_int_equal(info->channels, 3);
        decode_ok(data, 0, pixels);
        fixture_pixels(0, 32, 96, 1, planes);
        for (int i = 0; i < 1024; i++)
            for (int c = 0; c < 3; c++)
                assert_int_equal(pixels[3 * i + c], planes[c * 1024 + i]);
        sti_data_sample_name(data, 2, name, sizeof name);
        assert_string_equal(name, hundred ? "train.bin image 7" /* label 21 % 10 = 1 */
                                          : "data_batch_2.bin image 0");
        stint_data_close(data);
        desc.split = STINT_DATA_TEST;
        stint_data_close(open_ok(&desc));
    }
}

static void sizes_and_channels_as_asked(void **state)
{
    (void)state;
    stint_data_desc desc = {
        .path = fixture_folder("sized", 2), .size = 20, .channels = 1};
    stint_data *data = open_ok(&desc);
    uint8_t pixels[400], grey[64], colour[192];
    assert_int_equal(stint_data_describe(data)->height, 20);
    assert_int_equal(stint_data_describe(data)->channels, 1);
    decode_ok(data, 0, pixels);
    fixture_pixels(10, 8, 8, 3, colour);
    for (int i = 0; i < 64; i++)
        grey[i] = (uint8_t)((19595 * colour[3 * i] + 38470 * colour[3 * i + 1] +
                             7471 * colour[3 * i + 2] + 32768) >>
                            16);
    assert_in_range(pixels[0], grey[0] - 1, grey[0] + 1);
    assert_in_range(pixels[399], grey[63] - 1, grey[63] + 1);
    stint_data_close(data);
    desc.size = 0; /* a test split of a grey 20x20 training set, left as it is */
    stint_data_info like = {.height = 20, .width = 20};
    desc.like = &like;
    fixture_refused(&desc, STINT_E_INPUT, "8x8", "20x20", "size", NULL);
}

/* ---- refusals ---- */

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
    stint_data_close(open_ok(&desc));
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
    stint_data *data = open_ok(&desc);
    assert_int_equal(stint_data_describe(data)->classes, 2);
    stint_data_close(data);
}

/* Decoding the broken file gives the text; `size` to resize or 0. */
static void decode_refused(const char *folder, int64_t size, const char *a,
                           const char *b)
{
    stint_data_desc desc = {.path = fixture_path("%s", folder), .size = size};
    stint_data *data = open_ok(&desc);
    sti_data_decoders *decoders = decoders_ok(data, 1);
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
    stint_data_close(open_ok(&desc));
}

static void mislabelled_and_odd_images_decode(void **state)
{
    (void)state;
    uint8_t bytes[32768], pixels[192];
    size_t n = fixture_png(7, 8, 8, PNG_FORMAT_RGB, bytes, sizeof bytes);
    fixture_write(fixture_path("odd/train/cat/0.jpg"), bytes, n); /* a PNG in truth */
    n = fixture_png(8, 8, 8, PNG_FORMAT_GRAY, bytes, sizeof bytes);
    fixture_write(fixture_path("odd/train/cat/1.png"), bytes, n);
    n = fixture_png(9, 8, 8, PNG_FORMAT_RGBA, bytes, sizeof bytes);
    fixture_write(fixture_path("odd/train/cat/2.png"), bytes, n);
    n = fixture_png(9, 8, 8, PNG_FORMAT_LINEAR_RGB, bytes, sizeof bytes); /* 16 bits */
    fixture_write(fixture_path("odd/train/cat/3.png"), bytes, n);
    n = fixture_jpeg(9, 8, 8, TJPF_CMYK, TJSAMP_444, bytes);
    fixture_write(fixture_path("odd/train/cat/4.jpg"), bytes, n);
    n = fixture_jpeg(9, 8, 8, TJPF_GRAY, TJSAMP_GRAY, bytes);
    fixture_write(fixture_path("odd/train/cat/5.jpeg"), bytes, n);
    for (int channels = 1; channels <= 3; channels += 2) {
        stint_data_desc desc = {.path = fixture_path("odd"), .channels = channels};
        stint_data *data = open_ok(&desc);
        assert_int_equal(stint_data_describe(data)->count, 6);
        for (int i = 0; i < 6; i++)
            decode_ok(data, i, pixels);
        stint_data_close(data);
    }
}

static void single_files_decode_alike(void **state)
{
    (void)state;
    stint_data_desc desc = {
        .path = fixture_folder("single", 2), .size = 6, .channels = 1};
    stint_data *data = open_ok(&desc);
    uint8_t a[36], b[36];
    decode_ok(data, 1, a);
    assert_int_equal(sti_data_read_image(fixture_path("single/train/cat/001.jpg"),
                                         STINT_FIT_AUTO, 6, 6, 1, b),
                     STINT_OK);
    assert_memory_equal(a, b, sizeof a);
    stint_data_close(data);
    fixture_write(fixture_path("single/no.png"), "no", 2);
    assert_int_equal(
        sti_data_read_image(fixture_path("single/no.png"), STINT_FIT_AUTO, 6, 6, 1, b),
        STINT_E_INPUT);
    assert_non_null(strstr(stint_last_error(), "no.png"));
}

static void damaged_archives_are_refused(void **state)
{
    (void)state;
    uint8_t bytes[32768];
    fixture_tar tar;
    size_t n = fixture_png(1, 8, 8, PNG_FORMAT_RGB, bytes, sizeof bytes);
    assert_int_equal(sti_dir_create(fixture_path("t1")), STINT_OK);
    tar = fixture_tar_open(fixture_path("t1/train.tar"), "ustar");
    add_images(&tar, "train/", 90);
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
    stint_data_close(open_ok(&desc));
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
    stint_data *data = open_ok(&desc);
    sti_data_decoders *decoders = decoders_ok(data, 1);
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

/* ---- batches ---- */

#define BATCH 40

static void batch_ok(const stint_data *data, int threads, const int32_t *samples,
                     const sti_data_augment *augment, const sti_data_norm *norm,
                     float *x, int32_t *labels)
{
    sti_team team = {threads};
    sti_data_decoders *decoders = decoders_ok(data, threads);
    int64_t before = sti_alloc_count();
    sti_data_prefetch(data, samples, BATCH);
    if (sti_data_batch(data, &team, decoders, samples, BATCH, augment, norm, x,
                       labels) != STINT_OK)
        fail_msg("%s", stint_last_error());
    assert_int_equal(sti_alloc_count(), before); /* nothing of ours inside a step */
    sti_data_decoders_destroy(decoders);
}

static void batches_do_not_depend_on_threads(void **state)
{
    (void)state;
    stint_data_desc desc = {.path = fixture_folder("batches", 5)};
    stint_data *data = open_ok(&desc);
    static float x[4][BATCH * 192];
    int32_t samples[BATCH], labels[4][BATCH];
    sti_data_norm norm[4];
    char hash[4][65];
    sti_data_augment augment = {.crop_pad = 2, .flip = true, .seed = 5, .epoch = 3};
    for (int i = 0; i < BATCH; i++)
        samples[i] = i % 7 == 6 ? -1 : i * 7 % 15;
    for (int t = 1; t <= 3; t++) {
        sti_team team = {t};
        sti_data_decoders *decoders = decoders_ok(data, t);
        assert_int_equal(sti_data_measure(data, &team, decoders, NULL, NULL, &norm[t]),
                         STINT_OK);
        sti_data_measured_hash(decoders, hash[t]);
        assert_string_equal(hash[t], hash[1]);
        sti_data_decoders_destroy(decoders);
        batch_ok(data, t, samples, &augment, &norm[t], x[t], labels[t]);
        assert_memory_equal(&norm[t], &norm[1], sizeof norm[1]);
        assert_memory_equal(x[t], x[1], sizeof x[1]);
        assert_memory_equal(labels[t], labels[1], sizeof labels[1]);
    }
    for (int i = 0; i < BATCH; i++) {
        assert_int_equal(labels[1][i], samples[i] < 0 ? -1 : samples[i] / 5);
        for (int k = 0; samples[i] < 0 && k < 192; k++)
            assert_true(x[1][i * 192 + k] == 0.0f);
    }
    /* The same sample at two places of a batch is augmented alike; in another epoch,
     * not. */
    assert_memory_equal(x[1], x[1] + 15 * 192, 192 * sizeof(float));
    augment.epoch = 4;
    batch_ok(data, 1, samples, &augment, &norm[1], x[0], labels[0]);
    assert_memory_not_equal(x[0], x[1], sizeof x[1]);
    stint_data_close(data);
}

static void crops_and_flips_are_moves(void **state)
{
    (void)state;
    stint_data_desc desc = {.path = fixture_folder("moves", 1)};
    stint_data *data = open_ok(&desc);
    static float plain[BATCH * 192], moved[BATCH * 192];
    int32_t samples[BATCH] = {0};
    sti_data_norm norm = {{0, 0, 0}, {1, 1, 1}};
    bool mirrored = false, shifted = false, straight = false;
    uint8_t pixels[192];
    decode_ok(data, 0, pixels);
    batch_ok(data, 1, samples, NULL, &norm, plain, NULL);
    for (int k = 0; k < 192; k++)
        assert_true(plain[k] == (float)pixels[k] / 255.0f);
    for (uint64_t epoch = 0; epoch < 40; epoch++) {
        sti_data_augment augment = {
            .crop_pad = 1, .flip = true, .seed = 1, .epoch = epoch};
        int found = 0;
        batch_ok(data, 1, samples, &augment, &norm, moved, NULL);
        for (int dy = -1; dy <= 1; dy++) {
            for (int dx = -1; dx <= 1; dx++) {
                for (int flip = 0; flip < 2; flip++) {
                    bool same = true;
                    for (int y = 0; y < 8; y++)
                        for (int xx = 0; xx < 8; xx++)
                            for (int c = 0; c < 3; c++) {
                                int fy = y + dy, fx = (flip ? 7 - xx : xx) + dx;
                                float v = fy < 0 || fy > 7 || fx < 0 || fx > 7
                                              ? 0.0f
                                              : plain[(fy * 8 + fx) * 3 + c];
                                same = same && moved[(y * 8 + xx) * 3 + c] == v;
                            }
                    if (same) {
                        found++;
                        mirrored = mirrored || flip;
                        straight = straight || !flip;
                        shifted = shifted || dx || dy;
                    }
                }
            }
        }
        assert_int_equal(found, 1);
    }
    assert_true(mirrored && shifted && straight);
    stint_data_close(data);
}

static void measure_is_exact(void **state)
{
    (void)state;
    fixture_idx("measure", "train", "", 64, 10, 1);
    stint_data_desc desc = {.path = fixture_path("measure")};
    stint_data *data = open_ok(&desc);
    sti_team team = {2};
    sti_data_decoders *decoders = decoders_ok(data, 2);
    sti_data_norm norm;
    double sum = 0, square = 0, n = 64 * 100;
    assert_int_equal(sti_data_measure(data, &team, decoders, NULL, NULL, &norm),
                     STINT_OK);
    for (int i = 0; i < 64; i++) {
        uint8_t pixels[100];
        fixture_pixels(i, 10, 10, 1, pixels);
        for (int k = 0; k < 100; k++) {
            sum += pixels[k];
            square += (double)pixels[k] * pixels[k];
        }
    }
    double mean = sum / n / 255, variance = square / n / 65025 - mean * mean;
    double deviation = (double)norm.deviation[0];
    assert_true(norm.mean[0] == (float)mean);
    assert_true(deviation * deviation > variance * 0.999999 &&
                deviation * deviation < variance * 1.000001);
    assert_true(sti_data_memory_bytes(data, 1, 2) > 64 * 16);
    assert_true(sti_data_memory_bytes(data, 2, 2) > sti_data_memory_bytes(data, 1, 2));
    sti_data_decoders_destroy(decoders);
    stint_data_close(data);
}

/* What is read must not stay: 15 MB of pixels, an index of 16 bytes a sample. */
static void reading_stays_small(void **state)
{
    (void)state;
    fixture_idx("large", "train", "", 20000, 28, 1);
    stint_data_desc desc = {.path = fixture_path("large")};
    sti_team team = {2};
    sti_data_norm norm;
    size_t before = sti_process_now_bytes();
    stint_data *data = open_ok(&desc);
    sti_data_decoders *decoders = decoders_ok(data, 2);
    assert_int_equal(sti_data_measure(data, &team, decoders, NULL, NULL, &norm),
                     STINT_OK);
    assert_true(sti_process_now_bytes() < before + (6 << 20));
    sti_data_decoders_destroy(decoders);
    stint_data_close(data);
}

static void lowest_failure_is_reported(void **state)
{
    (void)state;
    stint_data_desc desc = {.path = fixture_folder("lowest", 5)};
    fixture_write(fixture_path("lowest/train/cat/003.jpg"), "not an image", 12);
    fixture_write(fixture_path("lowest/train/eel/001.jpg"), "nor is this", 11);
    stint_data *data = open_ok(&desc);
    int32_t samples[15];
    static float x[15 * 192];
    sti_data_norm norm = {{0, 0, 0}, {1, 1, 1}};
    for (int i = 0; i < 15; i++)
        samples[i] = 14 - i; /* eel first */
    for (int t = 1; t <= 3; t++) {
        sti_team team = {t};
        sti_data_decoders *decoders = decoders_ok(data, t);
        assert_int_equal(
            sti_data_batch(data, &team, decoders, samples, 15, NULL, &norm, x, NULL),
            STINT_E_INPUT);
        assert_non_null(strstr(stint_last_error(), "eel/001.jpg"));
        assert_int_equal(sti_data_measure(data, &team, decoders, NULL, NULL, &norm),
                         STINT_E_INPUT);
        assert_non_null(strstr(stint_last_error(), "cat/003.jpg"));
        sti_data_decoders_destroy(decoders);
    }
    stint_data_close(data);
}

/* ---- allocation failures ---- */

/* Open, make decoders and read a batch with the n-th allocation failing. */
static stint_status whole_use(const stint_data_desc *desc)
{
    stint_data *data = NULL;
    sti_data_decoders *decoders = NULL;
    sti_data_norm norm;
    stint_status st = stint_data_open(desc, &data);
    if (st == STINT_OK)
        st = sti_data_decoders_create(data, 2, &decoders);
    sti_team team = {2};
    if (st == STINT_OK)
        st = sti_data_measure(data, &team, decoders, NULL, NULL, &norm);
    sti_data_decoders_destroy(decoders);
    stint_data_close(data);
    return st;
}

static void allocation_failures_are_clean(void **state)
{
    (void)state;
    assert_int_equal(sti_dir_create(fixture_path("alloc-tar")), STINT_OK);
    fixture_tar tar = fixture_tar_open(fixture_path("alloc-tar/train.tar"), "pax");
    add_images(&tar, "train/", 90);
    fixture_tar_close(&tar);
    fixture_idx("alloc-idx", "train", ".gz", 20, 10, 1);
    fixture_cifar(fixture_path("alloc-cifar/data_batch_1.bin"), 10, 1);
    stint_data_desc uses[] = {
        {.path = fixture_folder("alloc", 2), .split = STINT_DATA_TEST},
        {.path = fixture_path("alloc-tar"), .size = 10},
        {.path = fixture_path("alloc-idx")},
        {.path = fixture_path("alloc-cifar")}};
    for (int u = 0; u < 4; u++) {
        size_t before = sti_alloc_now_bytes();
        for (int64_t n = 1;; n++) {
            sti_alloc_fail_nth(n);
            stint_status st = whole_use(&uses[u]);
            sti_alloc_fail_nth(0);
            assert_int_equal(sti_alloc_now_bytes(), before);
            if (st == STINT_OK && n > 300)
                break;
            /* Detection skips what it cannot look at,
             * so a set may seem absent instead. */
            assert_true(st == STINT_OK || st == STINT_E_MEMORY || st == STINT_E_INPUT);
            assert_true(n < 5000);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(folder_is_sorted_and_decodes),
        cmocka_unit_test(tar_formats_read_in_place),
        cmocka_unit_test(idx_plain_and_gzipped_agree),
        cmocka_unit_test(cifar_ten_and_hundred),
        cmocka_unit_test(sizes_and_channels_as_asked),
        cmocka_unit_test(missing_things_are_named),
        cmocka_unit_test(classes_must_match),
        cmocka_unit_test(broken_images_are_named),
        cmocka_unit_test(mislabelled_and_odd_images_decode),
        cmocka_unit_test(single_files_decode_alike),
        cmocka_unit_test(damaged_archives_are_refused),
        cmocka_unit_test(damaged_idx_is_refused),
        cmocka_unit_test(damaged_cifar_is_refused),
        cmocka_unit_test(changed_files_are_noticed),
        cmocka_unit_test(batches_do_not_depend_on_threads),
        cmocka_unit_test(crops_and_flips_are_moves),
        cmocka_unit_test(measure_is_exact),
        cmocka_unit_test(reading_stays_small),
        cmocka_unit_test(lowest_failure_is_reported),
        cmocka_unit_test(allocation_failures_are_clean),
    };
    return cmocka_run_group_tests_name("data", tests, fixture_begin, fixture_end);
}
