/* Data as people have it: splits by other names, class folders without splits, lists,
 * packed archives, EMNIST's names. */
#include "data/data_fixture.h"

/* Names of the samples of a split, one a line, in a static buffer. */
static const char *names_of(const stint_data *data)
{
    static char text[1 << 16];
    char name[300];
    text[0] = '\0';
    for (int64_t i = 0; i < stint_data_describe(data)->count; i++) {
        sti_data_sample_name(data, i, name, sizeof name);
        strcat(text, name);
        strcat(text, "\n");
    }
    return text;
}

static char logged[4096];

static void keep_log(void *user, stint_log_level level, const char *text)
{
    (void)user;
    (void)level;
    (void)snprintf(logged + strlen(logged), sizeof logged - strlen(logged), "%s\n",
                   text);
}

static void expect_logged(const char *piece)
{
    if (!strstr(logged, piece))
        fail_msg("'%s' is not in: %s", piece, logged);
    logged[0] = '\0';
}

static void second_splits_by_other_names(void **state)
{
    static const char *const names[] = {"validation", "valid", "val", "test"};
    (void)state;
    const char *path = fixture_folder("others", 2);
    stint_data_desc desc = {.path = path, .split = STINT_DATA_TEST};
    fixture_remove(fixture_path("others/test"));
    assert_false(stint_data_has_split(path, NULL, STINT_DATA_TEST));
    stint_set_log(keep_log, NULL);
    for (int i = 0; i < 4; i++) { /* each goes before those that are there */
        fixture_png_file(fixture_path("others/%s/cat/%d.png", names[i], i), i, 8);
        fixture_png_file(fixture_path("others/%s/dog/%d.png", names[i], i), i, 8);
        fixture_png_file(fixture_path("others/%s/eel/%d.png", names[i], i), i, 8);
        stint_data *data = fixture_open(&desc);
        const stint_data_info *info = stint_data_describe(data);
        assert_int_equal(info->count, 3);
        assert_non_null(strstr(info->from, names[i]));
        assert_non_null(strstr(names_of(data), names[i]));
        stint_data_close(data);
        expect_logged(i < 3 ? "is the test split" : "val/ is not read");
    }
    stint_set_log(NULL, NULL);
    fixture_refused(
        &(stint_data_desc){.path = path, .split = STINT_DATA_TEST, .size = 5000},
        STINT_E_USAGE, "5000", NULL);
}

static void val_archives_are_read(void **state)
{
    (void)state;
    uint8_t png[4096];
    for (int split = 0; split < 2; split++) {
        const char *name = split ? "val" : "train";
        assert_int_equal(sti_dir_create(fixture_path("valtar")), STINT_OK);
        fixture_tar tar = fixture_tar_open(fixture_path("valtar/%s.tar", name), "pax");
        for (int i = 0; i < 4; i++) {
            char member[64];
            (void)snprintf(member, sizeof member, "%s/%c/%d.png", name, 'a' + i % 2, i);
            fixture_tar_add(&tar, member, AE_IFREG, png,
                            fixture_png(i, 8, 8, PNG_FORMAT_RGB, png, sizeof png));
        }
        fixture_tar_close(&tar);
    }
    stint_data *data = fixture_open(
        &(stint_data_desc){.path = fixture_path("valtar"), .split = STINT_DATA_TEST});
    assert_int_equal(stint_data_describe(data)->count, 4);
    assert_non_null(strstr(names_of(data), "val/a/0.png"));
    stint_data_close(data);
}

/* Classes without splits: every image is in one split, by its name and nothing else. */
static void class_folders_are_split_by_names(void **state)
{
    (void)state;
    stint_data_desc desc = {.path = fixture_path("flat"), .validation = 0.25};
    for (int i = 0; i < 200; i++)
        fixture_png_file(fixture_path("flat/%s/%03d.png", i % 2 ? "cat" : "dog", i), i,
                         8);
    fixture_write(fixture_path("flat/notes/readme.txt"), "x", 1); /* no class */
    stint_data *train = fixture_open(&desc);
    const stint_data_info *info = stint_data_describe(train);
    char all[1 << 14];
    (void)snprintf(all, sizeof all, "%s", names_of(train));
    assert_int_equal(info->classes, 2);
    assert_in_range(info->count, 130, 170);
    desc.split = STINT_DATA_TEST;
    stint_data *test = fixture_open(&desc);
    assert_int_equal(stint_data_describe(test)->count, 200 - info->count);
    char name[300];
    for (int64_t i = 0; i < stint_data_describe(test)->count; i++) {
        sti_data_sample_name(test, i, name, sizeof name);
        assert_null(strstr(all, name));
    }
    /* Others come and go: the rest stays where it was. */
    char before[1 << 14];
    (void)snprintf(before, sizeof before, "%s", names_of(test));
    stint_data_close(test);
    for (int i = 200; i < 240; i++)
        fixture_png_file(fixture_path("flat/%s/%03d.png", i % 2 ? "cat" : "dog", i), i,
                         8);
    test = fixture_open(&desc);
    const char *after = names_of(test);
    for (char *line = strtok(before, "\n"); line; line = strtok(NULL, "\n"))
        assert_non_null(strstr(after, line));
    stint_data_close(test);
    stint_data_close(train);
    desc.validation = -1; /* none */
    fixture_refused(&desc, STINT_E_INPUT, "validation", NULL);
}

static void a_class_of_one_split_is_named(void **state)
{
    (void)state;
    stint_data_desc desc = {
        .path = fixture_path("lone"), .validation = 0.5, .split = STINT_DATA_TEST};
    for (int i = 0; i < 40; i++)
        fixture_png_file(fixture_path("lone/many/%d.png", i), i, 8);
    fixture_png_file(fixture_path("lone/few/0.png"), 1, 8);
    /* The only image of `few` is in one of both: whichever lacks it says so. */
    stint_set_log(keep_log, NULL);
    stint_data *data = NULL;
    stint_status st = stint_data_open(&desc, &data);
    if (st == STINT_OK)
        expect_logged("class 'few' is in the training split only");
    else
        assert_non_null(strstr(stint_last_error(), "class 'few' is in the test split"));
    stint_set_log(NULL, NULL);
    stint_data_close(data);
    /* Where folders say which split it is, both need the class. */
    fixture_png_file(fixture_path("sided/train/a/0.png"), 0, 8);
    fixture_png_file(fixture_path("sided/train/b/0.png"), 0, 8);
    fixture_png_file(fixture_path("sided/val/a/0.png"), 0, 8);
    fixture_refused(
        &(stint_data_desc){.path = fixture_path("sided"), .split = STINT_DATA_TEST},
        STINT_E_INPUT, "'b' is missing", NULL);
}

/* ---- lists ---- */

static void put_text(const char *path, const char *text)
{
    fixture_write(path, text, strlen(text));
}

static void put_images(const char *folder, int count)
{
    for (int i = 0; i < count; i++)
        fixture_png_file(fixture_path("%s/%02d.png", folder, i), i, 8);
}

static void lists_of_files_and_labels(void **state)
{
    (void)state;
    stint_data_desc desc = {.path = fixture_path("list")};
    put_images("list/train", 6);
    put_images("list/other", 4);
    fixture_png_file(fixture_path("list/train/a, b.png"), 1, 8);
    put_text(fixture_path("list/train.csv"),
             "\xef\xbb\xbflabel,size,file\r\n"
             "cat,1,00.png\r\n"
             "\"dog \"\"big\"\"\",1,train/01.png\r\n"
             "\r\n"
             "cat,2,\"a, b.png\"\r\n"
             "cat , 3 , 02 \r\n" /* without its extension */
             "\"dog \"\"big\"\"\",1,./other/03.png");
    put_text(fixture_path("list/val.csv"), "00.png,cat\nother/01.png,dog \"big\"\n");
    assert_true(stint_data_has_split(desc.path, NULL, STINT_DATA_TEST));
    stint_data *data = fixture_open(&desc);
    const stint_data_info *info = stint_data_describe(data);
    assert_string_equal(info->format, "csv");
    assert_non_null(strstr(info->from, "list/train.csv"));
    assert_int_equal(info->classes, 2);
    assert_string_equal(info->class_names[1], "dog \"big\"");
    assert_string_equal(names_of(data), "train/00.png\ntrain/02.png\ntrain/a, b.png\n"
                                        "other/03.png\ntrain/01.png\n");
    uint8_t pixels[8 * 8 * 3], expected[8 * 8 * 3];
    sti_data_decoders *decoders = NULL;
    assert_int_equal(sti_data_decoders_create(data, 1, &decoders), STINT_OK);
    assert_int_equal(sti_data_decode(data, 3, decoders, 0, pixels), STINT_OK);
    fixture_pixels(3, 8, 8, 3, expected);
    assert_memory_equal(pixels, expected, sizeof pixels);
    sti_data_decoders_destroy(decoders);
    stint_data_close(data);
    desc.split = STINT_DATA_TEST;
    data = fixture_open(&desc);
    assert_int_equal(stint_data_describe(data)->count, 2);
    stint_data_close(data);
    /* A list of files alone is no test split. */
    put_text(fixture_path("list/test.csv"), "file\n00.png\n");
    assert_false(stint_data_has_split(desc.path, NULL, STINT_DATA_TEST));
    /* Folders of classes go before a list. */
    fixture_png_file(fixture_path("list/train/cat/0.png"), 0, 8);
    fixture_png_file(fixture_path("list/train/dog/0.png"), 0, 8);
    desc.split = STINT_DATA_TRAIN;
    data = fixture_open(&desc);
    assert_string_equal(stint_data_describe(data)->format, "folder");
    stint_data_close(data);
}

static void bad_lists_are_told_by_line(void **state)
{
    static const struct {
        const char *text, *piece;
    } cases[] = {
        {"00.png,a\n01.png,b\nno.png,a\n", "labels.csv:3: there is no image no.png"},
        {"00.png,a\n01.png,b\n\nphotos/00.png,a\n", "labels.csv:4: photos/00.png is "
                                                    "there twice, also on line 1"},
        {"file,label\n00.png,\n", "labels.csv:2: the label is empty"},
        {"00.png,a\n,b\n", "labels.csv:2: the file is empty"},
        {"00.png,a\n01.png\n", "labels.csv:2: 1 field, wanted file,label"},
        {"00.png,a\n\"01.png,b\n", "labels.csv:2: a quote is not closed"},
    };
    (void)state;
    put_images("badlist/photos", 2);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        put_text(fixture_path("badlist/labels.csv"), cases[i].text);
        fixture_refused(&(stint_data_desc){.path = fixture_path("badlist")},
                        STINT_E_INPUT, cases[i].piece, NULL);
    }
    fixture_write(fixture_path("badlist/labels.csv"), "a\0b,c\n", 6);
    fixture_refused(&(stint_data_desc){.path = fixture_path("badlist")}, STINT_E_INPUT,
                    "no text", NULL);
}

static void one_list_is_split_by_names(void **state)
{
    (void)state;
    char text[1 << 14] = "image;class\n";
    put_images("onelist/images", 60);
    for (int i = 0; i < 60; i++)
        (void)snprintf(text + strlen(text), sizeof text - strlen(text), "%02d.png;%c\n",
                       i, 'a' + i % 2);
    put_text(fixture_path("onelist/labels.csv"), text);
    stint_data_desc desc = {.path = fixture_path("onelist"), .validation = 0.3};
    stint_data *train = fixture_open(&desc);
    desc.split = STINT_DATA_TEST;
    stint_data *test = fixture_open(&desc);
    const int64_t n = stint_data_describe(test)->count;
    assert_in_range(n, 8, 28);
    assert_int_equal(stint_data_describe(train)->count, 60 - n);
    stint_data_close(train);
    stint_data_close(test);
}

/* What names split is split on both sides or on none. */
static void a_test_split_goes_with_its_training_split(void **state)
{
    (void)state;
    const char *path = fixture_folder("stray", 2);
    fixture_remove(fixture_path("stray/test"));
    put_text(fixture_path("stray/labels.csv"), "train/cat/000.png,cat\n");
    assert_true(stint_data_has_split(path, NULL, STINT_DATA_TRAIN));
    assert_false(stint_data_has_split(path, NULL, STINT_DATA_TEST));
    put_images("strays/pictures", 3);
    put_text(fixture_path("strays/train.csv"), "00.png,a\n01.png,b\n");
    assert_true(stint_data_has_split(fixture_path("strays"), NULL, STINT_DATA_TRAIN));
    assert_false(stint_data_has_split(fixture_path("strays"), NULL, STINT_DATA_TEST));
}

/* ---- packed data ---- */

static void packed_data_says_how_to_unpack(void **state)
{
    static const struct {
        const char *file, *piece;
        bool itself; /* the path is the file, not its folder */
    } cases[] = {
        {"p1/train.tar.gz", "`gunzip -k %s/p1/train.tar.gz`", false},
        {"p2/train.zip",
         "`mkdir -p %s/p2/train && unzip -q %s/p2/train.zip -d "
         "%s/p2/train`",
         false},
        {"p3/photos.tgz", "tar -xzf %s/p3/photos.tgz -C %s/p3/photos`", true},
        {"p4/my photos.zip", "unzip -q '%s/p4/my photos.zip' -d '%s/p4/my photos'`",
         true},
        {"p5/photos.tar", "tar -xf %s/p5/photos.tar -C %s/p5/photos`", true},
        {"p6/train.tar.zst", "`zstd -dk %s/p6/train.tar.zst`", false},
        {"p7/train.tar", "is a file; give the folder", true},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char piece[4096];
        const char *path = fixture_path("%s", cases[i].file);
        fixture_write(path, "x", 1);
        if (!cases[i].itself)
            *strrchr((char *)(uintptr_t)path, '/') = '\0';
        char *to = piece; /* the fixture's folder for every %s */
        for (const char *from = cases[i].piece; *from; from++)
            if (from[0] == '%') {
                to += snprintf(to, 1024, "%s", fixture_root);
                from++;
            } else {
                *to++ = *from;
            }
        *to = '\0';
        fixture_refused(&(stint_data_desc){.path = path}, STINT_E_INPUT, piece, NULL);
    }
}

/* ---- EMNIST ---- */

static void emnist_is_read_upright_by_its_letters(void **state)
{
    (void)state;
    uint8_t pixels[6 * 6], stored[6 * 6];
    stint_data_desc desc = {.path = fixture_path("emnist"), .split = STINT_DATA_TEST};
    fixture_idx("emnist/raw", "emnist-letters-train", ".gz", 20, 6, 1);
    fixture_idx("emnist/raw", "emnist-letters-test", ".gz", 10, 6, 1);
    put_text(fixture_path("emnist/raw/emnist-letters-mapping.txt"),
             "0 65 97\r\n1 66 98\n2 67 99\n");
    stint_data *data = fixture_open(&desc);
    const stint_data_info *info = stint_data_describe(data);
    sti_data_decoders *decoders = NULL;
    assert_string_equal(info->class_names[0], "A");
    assert_string_equal(info->class_names[2], "C");
    assert_string_equal(info->class_names[3], "3");
    assert_int_equal(sti_data_decoders_create(data, 1, &decoders), STINT_OK);
    assert_int_equal(sti_data_decode(data, 4, decoders, 0, pixels), STINT_OK);
    fixture_pixels(4, 6, 6, 1, stored);
    for (int y = 0; y < 6; y++)
        for (int x = 0; x < 6; x++)
            assert_int_equal(pixels[y * 6 + x], stored[x * 6 + y]);
    sti_data_decoders_destroy(decoders);
    stint_data_close(data);
    fixture_idx("emnist/raw", "emnist-digits-test", ".gz", 10, 6, 1);
    fixture_idx("emnist/raw", "emnist-digits-train", ".gz", 10, 6, 1);
    fixture_refused(&desc, STINT_E_INPUT, "holds 2 sets", NULL);
}

static void torchvision_keeps_mnist_in_raw(void **state)
{
    (void)state;
    stint_data_desc desc = {.path = fixture_path("tv")};
    fixture_idx("tv/FashionMNIST/raw", "train", "", 20, 6, 1);
    stint_data *data = fixture_open(&desc);
    assert_int_equal(stint_data_describe(data)->count, 20);
    assert_non_null(strstr(stint_data_describe(data)->from, "FashionMNIST/raw"));
    stint_data_close(data);
}

/* ---- allocation ---- */

static void allocation_failures_are_clean(void **state)
{
    static const char *const folders[] = {"onelist", "flat", "emnist2"};
    (void)state;
    fixture_idx("emnist2", "emnist-mnist-train", "", 20, 6, 1);
    for (int f = 0; f < 3; f++) {
        const stint_data_desc desc = {.path = fixture_path("%s", folders[f])};
        const size_t before = sti_alloc_now_bytes();
        stint_status st = STINT_E_MEMORY;
        for (int64_t n = 1; n < 2000 && st != STINT_OK; n++) {
            stint_data *data = NULL;
            sti_alloc_fail_nth(n);
            st = stint_data_open(&desc, &data);
            sti_alloc_fail_nth(0);
            /* Without memory to look, a layout may not be found. */
            assert_true(st == STINT_OK || st == STINT_E_MEMORY || st == STINT_E_INPUT);
            stint_data_close(data);
            assert_int_equal(sti_alloc_now_bytes(), before);
        }
        assert_int_equal(st, STINT_OK);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(second_splits_by_other_names),
        cmocka_unit_test(val_archives_are_read),
        cmocka_unit_test(class_folders_are_split_by_names),
        cmocka_unit_test(a_class_of_one_split_is_named),
        cmocka_unit_test(lists_of_files_and_labels),
        cmocka_unit_test(bad_lists_are_told_by_line),
        cmocka_unit_test(one_list_is_split_by_names),
        cmocka_unit_test(a_test_split_goes_with_its_training_split),
        cmocka_unit_test(packed_data_says_how_to_unpack),
        cmocka_unit_test(emnist_is_read_upright_by_its_letters),
        cmocka_unit_test(torchvision_keeps_mnist_in_raw),
        cmocka_unit_test(allocation_failures_are_clean),
    };
    return cmocka_run_group_tests_name("data_layout", tests, fixture_begin,
                                       fixture_end);
}
