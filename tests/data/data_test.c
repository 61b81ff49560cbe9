/* Every source opens to the same order and pixels; batches do not depend on threads. */
#include "data/data_fixture.h"

/* ---- sources ---- */

static void folder_is_sorted_and_decodes(void **state)
{
    (void)state;
    stint_data_desc desc = {.path = fixture_folder("plain", 3)};
    stint_data *data = fixture_open(&desc);
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
    fixture_decode(data, 0, pixels); /* cat/000.png: exact */
    fixture_pixels(10, 8, 8, 3, wanted);
    assert_memory_equal(pixels, wanted, sizeof pixels);
    fixture_decode(data, 1, pixels); /* cat/001.jpg: near */
    fixture_pixels(11, 8, 8, 3, wanted);
    for (size_t i = 0; i < sizeof pixels; i++)
        assert_in_range(pixels[i], wanted[i] - 6, wanted[i] + 6);
    stint_data_close(data);
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
                fixture_tar_images(&tar, split ? "./test/" : "train/", 92);
            else
                fixture_tar_images(&tar, "", 150);
            fixture_tar_add(&tar, "train/README.txt", AE_IFREG, "hi", 2);
            fixture_tar_add(&tar, "train/cat/link.png", AE_IFLNK, NULL, 0);
            fixture_tar_close(&tar);
        }
        for (int split = 0; split < 2; split++) {
            stint_data_desc desc = {.path = fixture_path("%s", folder),
                                    .split =
                                        split ? STINT_DATA_TEST : STINT_DATA_TRAIN};
            stint_data *data = fixture_open(&desc);
            const stint_data_info *info = stint_data_describe(data);
            uint8_t pixels[192], wanted[192];
            char name[300];
            assert_int_equal(info->count, 6);
            assert_string_equal(info->class_names[1], "dog");
            for (int i = 0; i < 6; i++) {
                int c = i / 2 == 2 ? 0 : i / 2 + 1; /* order in the archive */
                fixture_decode(data, i, pixels);
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
        stint_data *data = fixture_open(&desc);
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
        fixture_decode(data, 1, pixels[gz]);
        fixture_pixels(10, 10, 10, 1, wanted);
        assert_memory_equal(pixels[gz], wanted, 100);
        stint_data_close(data);
        desc.split = STINT_DATA_TEST;
        data = fixture_open(&desc);
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
        stint_data *data = fixture_open(&desc);
        const stint_data_info *info = stint_data_describe(data);
        char name[64];
        assert_int_equal(info->count, hundred ? 20 : 30);
        assert_int_equal(info->classes, 10);
        assert_string_equal(info->class_names[3], hundred ? "3" : "d");
        assert_int_equal(info->height, 32);
        assert_int_equal(info->channels, 3);
        fixture_decode(data, 0, pixels);
        fixture_pixels(0, 32, 96, 1, planes);
        for (int i = 0; i < 1024; i++)
            for (int c = 0; c < 3; c++)
                assert_int_equal(pixels[3 * i + c], planes[c * 1024 + i]);
        sti_data_sample_name(data, 2, name, sizeof name);
        assert_string_equal(name, hundred ? "train.bin image 7" /* label 21 % 10 = 1 */
                                          : "data_batch_2.bin image 0");
        stint_data_close(data);
        desc.split = STINT_DATA_TEST;
        stint_data_close(fixture_open(&desc));
    }
}

static void sizes_and_channels_as_asked(void **state)
{
    (void)state;
    stint_data_desc desc = {
        .path = fixture_folder("sized", 2), .size = 20, .channels = 1};
    stint_data *data = fixture_open(&desc);
    uint8_t pixels[400], grey[64], colour[192];
    assert_int_equal(stint_data_describe(data)->height, 20);
    assert_int_equal(stint_data_describe(data)->channels, 1);
    fixture_decode(data, 0, pixels);
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
        stint_data *data = fixture_open(&desc);
        assert_int_equal(stint_data_describe(data)->count, 6);
        for (int i = 0; i < 6; i++)
            fixture_decode(data, i, pixels);
        stint_data_close(data);
    }
}

static void single_files_decode_alike(void **state)
{
    (void)state;
    stint_data_desc desc = {
        .path = fixture_folder("single", 2), .size = 6, .channels = 1};
    stint_data *data = fixture_open(&desc);
    uint8_t a[36], b[36];
    fixture_decode(data, 1, a);
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

/* ---- batches ---- */

#define BATCH 40

static void batch_ok(const stint_data *data, int threads, const int32_t *samples,
                     const sti_data_augment *augment, const sti_data_norm *norm,
                     float *x, int32_t *labels)
{
    sti_team team = {threads};
    sti_data_decoders *decoders = fixture_decoders(data, threads);
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
    stint_data *data = fixture_open(&desc);
    static float x[4][BATCH * 192];
    int32_t samples[BATCH], labels[4][BATCH];
    sti_data_norm norm[4];
    char hash[4][65];
    sti_data_augment augment = {.crop_pad = 2, .flip = true, .seed = 5, .epoch = 3};
    for (int i = 0; i < BATCH; i++)
        samples[i] = i % 7 == 6 ? -1 : i * 7 % 15;
    for (int t = 1; t <= 3; t++) {
        sti_team team = {t};
        sti_data_decoders *decoders = fixture_decoders(data, t);
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
    stint_data *data = fixture_open(&desc);
    static float plain[BATCH * 192], moved[BATCH * 192];
    int32_t samples[BATCH] = {0};
    sti_data_norm norm = {{0, 0, 0}, {1, 1, 1}};
    bool mirrored = false, shifted = false, straight = false;
    uint8_t pixels[192];
    fixture_decode(data, 0, pixels);
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
    stint_data *data = fixture_open(&desc);
    sti_team team = {2};
    sti_data_decoders *decoders = fixture_decoders(data, 2);
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
    stint_data *data = fixture_open(&desc);
    sti_data_decoders *decoders = fixture_decoders(data, 2);
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
    stint_data *data = fixture_open(&desc);
    int32_t samples[15];
    static float x[15 * 192];
    sti_data_norm norm = {{0, 0, 0}, {1, 1, 1}};
    for (int i = 0; i < 15; i++)
        samples[i] = 14 - i; /* eel first */
    for (int t = 1; t <= 3; t++) {
        sti_team team = {t};
        sti_data_decoders *decoders = fixture_decoders(data, t);
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
    fixture_tar_images(&tar, "train/", 90);
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
        cmocka_unit_test(mislabelled_and_odd_images_decode),
        cmocka_unit_test(single_files_decode_alike),
        cmocka_unit_test(batches_do_not_depend_on_threads),
        cmocka_unit_test(crops_and_flips_are_moves),
        cmocka_unit_test(measure_is_exact),
        cmocka_unit_test(reading_stays_small),
        cmocka_unit_test(lowest_failure_is_reported),
        cmocka_unit_test(allocation_failures_are_clean),
    };
    return cmocka_run_group_tests_name("data", tests, fixture_begin, fixture_end);
}
