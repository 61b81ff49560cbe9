/* Pictures of any size to images of one: fits, random cuts, orientations. */
#include "data/data_fixture.h"

#include <math.h>
#include <sys/wait.h>

#include "data/data_fit.h"
#include "media/image_fixture.h"

enum { SIDE_MAX = 160, BYTES_MAX = SIDE_MAX * SIDE_MAX * 3 };

static uint8_t picture[BYTES_MAX], image[BYTES_MAX], wanted[BYTES_MAX];

/* Noise: neighbours have nothing in common, so that a wrong weight shows. */
static void fill_picture(void)
{
    uint32_t x = 7;
    for (int i = 0; i < BYTES_MAX; i++)
        picture[i] = (uint8_t)((x = x * 1664525u + 1013904223u) >> 24);
}

static void fit(int h, int w, stint_data_fit how, int size)
{
    const sti_image_view view = sti_image_view_of(picture, h, w, 3);
    void *scratch = malloc(sti_fit_scratch_bytes(how, size, false, h, w, size));
    assert_non_null(scratch);
    sti_fit_view(&view, how, size, size, image, scratch);
    free(scratch);
}

/* The mean of the pixels of picture [.., w, 3] whose centres lie in the area from
 * `top`, `left` of so many pixels an output (as fractions of `per`); in exact integers.
 */
static int mean(int w, int64_t y0, int64_t y1, int64_t x0, int64_t x1, int64_t per_y,
                int64_t per_x, int c)
{
    int64_t sum = 0, count = 0;
    for (int64_t y = 0; (2 * y + 1) * per_y <= 2 * y1; y++)
        for (int64_t x = 0; (2 * x + 1) * per_x <= 2 * x1; x++)
            if ((2 * y + 1) * per_y > 2 * y0 && (2 * x + 1) * per_x > 2 * x0) {
                sum += picture[(y * w + x) * 3 + c];
                count++;
            }
    return (int)((2 * sum + count) / (2 * count));
}

/* Does a pixel's centre lie on an edge of output o? Rounding settles whose it is. */
static bool has_tie(int in, int full, int64_t o)
{
    for (int64_t edge = o; edge <= o + 1; edge++)
        if (2 * edge * in % full == 0 && 2 * edge * in / full % 2 == 1)
            return true;
    return false;
}

static void expect_near(const uint8_t *want, int size, const char *what)
{
    for (int i = 0; i < size * size * 3; i++)
        if (abs(image[i] - want[i]) > 1)
            fail_msg("%s: byte %d is %d, wanted %d", what, i, image[i], want[i]);
}

static const int shapes[][3] = {{60, 80, 20},  {80, 60, 20},   {150, 150, 50},
                                {97, 131, 32}, {131, 97, 31},  {64, 160, 64},
                                {33, 159, 32}, {160, 107, 10}, {50, 50, 7}};
enum { SHAPES = sizeof shapes / sizeof shapes[0] };

static void crop_is_the_mean_of_areas(void **state)
{
    (void)state;
    fill_picture();
    for (int s = 0; s < SHAPES; s++) {
        const int h = shapes[s][0], w = shapes[s][1], size = shapes[s][2];
        const int less = h < w ? h : w;
        const int full_h = (2 * h * size + less) / (2 * less);
        const int full_w = (2 * w * size + less) / (2 * less);
        const int top = (full_h - size) / 2, left = (full_w - size) / 2;
        fit(h, w, STINT_FIT_CROP, size);
        for (int i = 0; i < size * size * 3; i++) {
            const int64_t y = top + i / 3 / size, x = left + i / 3 % size;
            wanted[i] = has_tie(h, full_h, y) || has_tie(w, full_w, x)
                            ? image[i]
                            : (uint8_t)mean(w, y * h, (y + 1) * h, x * w, (x + 1) * w,
                                            full_h, full_w, i % 3);
        }
        expect_near(wanted, size, "crop");
    }
}

/* False where Pillow is not installed. */
static bool ask_pillow(const char *arguments, int h, int w, int size)
{
    char command[2048];
    size_t n = 0;
    void *data = NULL;
    const char *in = fixture_path("in.raw"), *out = fixture_path("out.raw");
    fixture_write(in, picture, (size_t)(h * w * 3));
    (void)snprintf(command, sizeof command,
                   "python3 '%s/data/pillow_fit.py' %s < '%s' > '%s'",
                   STINT_TEST_SOURCE_DIR, arguments, in, out);
    const int status = system(command);
    if (WEXITSTATUS(status) == 77)
        return false;
    assert_int_equal(status, 0);
    assert_int_equal(sti_file_read(out, BYTES_MAX, &data, &n), STINT_OK);
    assert_int_equal(n, size * size * 3);
    memcpy(wanted, data, n);
    sti_free(data);
    return true;
}

static void pillow_agrees(void **state)
{
    (void)state;
    char arguments[128];
    fill_picture();
    for (int s = 0; s < SHAPES; s++) {
        const int h = shapes[s][0], w = shapes[s][1], size = shapes[s][2];
        const sti_image_view view = sti_image_view_of(picture, h, w, 3);
        (void)snprintf(arguments, sizeof arguments, "crop %d %d %d", h, w, size);
        if (!ask_pillow(arguments, h, w, size)) {
            print_message("Pillow is not installed (python3-pil): not compared\n");
            skip();
        }
        fit(h, w, STINT_FIT_CROP, size);
        expect_near(wanted, size, arguments);

        const sti_data_cut cut = {
            .top = h / 7, .left = w / 5, .height = h / 2, .width = 2 * w / 3};
        if (cut.height < size || cut.width < size)
            continue; /* it grows there: linearly, which BOX does not */
        void *scratch =
            malloc(sti_fit_scratch_bytes(STINT_FIT_AUTO, 0, true, h, w, size));
        sti_fit_cut(&view, &cut, size, size, image, scratch);
        free(scratch);
        (void)snprintf(arguments, sizeof arguments, "cut %d %d %d %d %d %d %d", h, w,
                       size, (int)cut.top, (int)cut.left, (int)cut.height,
                       (int)cut.width);
        assert_true(ask_pillow(arguments, h, w, size));
        expect_near(wanted, size, arguments);
    }
}

static void pad_keeps_all_and_leaves_a_border(void **state)
{
    (void)state;
    const int h = 40, w = 80, size = 20;
    fill_picture();
    fit(h, w, STINT_FIT_PAD, size);
    for (int i = 0; i < size * size * 3; i++) {
        const int y = i / 3 / size, x = i / 3 % size;
        if (y < 5 || y >= 15)
            wanted[i] = 128;
        else
            wanted[i] =
                (uint8_t)mean(w, (int64_t)(y - 5) * 4, (int64_t)(y - 4) * 4,
                              (int64_t)x * 4, (int64_t)(x + 1) * 4, 1, 1, i % 3);
    }
    expect_near(wanted, size, "pad");
    fit(160, 1, STINT_FIT_PAD, 8); /* a line stays a line */
    for (int i = 0; i < 8 * 8 * 3; i++)
        assert_true(i / 3 % 8 == 3 || image[i] == 128);
}

static void every_fit_copies_what_fits(void **state)
{
    (void)state;
    fill_picture();
    for (int how = STINT_FIT_AUTO; how <= STINT_FIT_PAD; how++) {
        fit(16, 16, (stint_data_fit)how, 16);
        assert_memory_equal(image, picture, 16 * 16 * 3);
    }
}

/* Small pictures grow, and a flat one stays flat whatever is done. */
static void flat_stays_flat(void **state)
{
    (void)state;
    static const int odd[][3] = {{1, 1, 9}, {3, 50, 32}, {159, 2, 12}, {5, 7, 64}};
    memset(picture, 128, sizeof picture);
    for (int s = 0; s < 4; s++)
        for (int how = STINT_FIT_AUTO; how <= STINT_FIT_PAD; how++) {
            fit(odd[s][0], odd[s][1], (stint_data_fit)how, odd[s][2]);
            for (int i = 0; i < odd[s][2] * odd[s][2] * 3; i++)
                assert_int_equal(image[i], 128);
        }
}

static void cuts_lie_inside_and_depend_on_sample_and_epoch(void **state)
{
    (void)state;
    const int h = 120, w = 90;
    double least = 1, most = 0;
    int same_sample = 0, same_epoch = 0;
    for (int sample = 0; sample < 500; sample++) {
        sti_data_augment augment = {.scale_crop = 0.08, .seed = 3, .epoch = 1};
        const sti_data_cut a = sti_fit_draw_cut(&augment, sample, h, w);
        const sti_data_cut again = sti_fit_draw_cut(&augment, sample, h, w);
        const sti_data_cut next = sti_fit_draw_cut(&augment, sample + 1, h, w);
        augment.epoch = 2;
        const sti_data_cut later = sti_fit_draw_cut(&augment, sample, h, w);
        assert_memory_equal(&a, &again, sizeof a);
        same_sample += memcmp(&a, &later, sizeof a) == 0;
        same_epoch += memcmp(&a, &next, sizeof a) == 0;
        assert_true(a.top >= 0 && a.left >= 0 && a.height >= 1 && a.width >= 1);
        assert_true(a.top + a.height <= h && a.left + a.width <= w);
        const double share = (double)(a.height * a.width) / (h * w);
        const double aspect = (double)a.width / (double)a.height;
        least = fmin(least, share);
        most = fmax(most, share);
        assert_true(share > 0.08 * 0.93 && aspect > 0.7 && aspect < 1.43);
    }
    assert_true(same_sample < 5 && same_epoch < 5);
    assert_true(least < 0.12 && most > 0.8); /* the whole range is drawn from */
}

/* A strip that no cut fits into: the largest part in its middle. */
static void strips_give_their_middle(void **state)
{
    (void)state;
    const sti_data_augment augment = {.scale_crop = 0.9, .seed = 1};
    const sti_data_cut a = sti_fit_draw_cut(&augment, 0, 10, 1000);
    assert_int_equal(a.height, 10);
    assert_int_equal(a.width, 13);
    assert_int_equal(a.left, (1000 - 13) / 2);
    const sti_data_cut b = sti_fit_draw_cut(&augment, 0, 1000, 10);
    assert_int_equal(b.height, 13);
    assert_int_equal(b.top, (1000 - 13) / 2);
}

/* ---- whole datasets ---- */

/* One photo in eight orientations in a folder: one tensor, whatever the fit. */
static void eight_orientations_are_one_tensor(void **state)
{
    (void)state;
    enum { H = 30, W = 44, SIZE = 16 };
    static uint8_t upright[H * W * 3], stored[H * W * 3], file[IMAGE_FILE_MAX];
    uint8_t exif[64], pixels[2][SIZE * SIZE * 3];
    image_pixels(H, W, 3, upright);
    for (int o = 0; o <= 8; o++) { /* 0: upright, without a tag */
        int h = H, w = W;
        size_t n = o ? image_exif(exif, 0, 3, 1, (uint32_t)o) : 0;
        image_store(H, W, 3, o ? o : 1, upright, stored, &h, &w);
        fixture_write(fixture_path("turned/train/a/%d.png", o), file,
                      image_png(h, w, 3, stored, exif, n, o & 1, file));
    }
    fixture_write(fixture_path("turned/train/b/0.png"), file,
                  image_png(H, W, 3, upright, NULL, 0, 0, file));
    for (int how = STINT_FIT_AUTO; how <= STINT_FIT_PAD + 1; how++) {
        const bool as_is = how > STINT_FIT_PAD; /* without a size */
        stint_data_desc desc = {.path = fixture_path("turned"),
                                .size = as_is ? 0 : SIZE,
                                .fit = as_is ? STINT_FIT_AUTO : (stint_data_fit)how};
        stint_data *data = NULL;
        sti_data_decoders *decoders = NULL;
        static uint8_t whole[2][H * W * 3];
        uint8_t *to[2] = {as_is ? whole[0] : pixels[0], as_is ? whole[1] : pixels[1]};
        assert_int_equal(stint_data_open(&desc, &data), STINT_OK);
        assert_int_equal(sti_data_decoders_create(data, 1, &decoders), STINT_OK);
        assert_int_equal(sti_data_decode(data, 0, decoders, 0, to[0]), STINT_OK);
        if (as_is)
            assert_memory_equal(to[0], upright, sizeof upright);
        for (int i = 1; i <= 8; i++) {
            if (sti_data_decode(data, i, decoders, 0, to[1]) != STINT_OK)
                fail_msg("%s", stint_last_error());
            assert_memory_equal(to[0], to[1],
                                as_is ? sizeof upright : sizeof pixels[0]);
        }
        sti_data_decoders_destroy(decoders);
        stint_data_close(data);
    }
}

/* scale_crop in batches: other pixels every epoch, the same for any number of threads,
 * and none of it in an evaluation. */
static void batches_are_cut(void **state)
{
    (void)state;
    enum { SIZE = 8, COUNT = 6, FLOATS = COUNT * SIZE * SIZE * 3 };
    static float x[4][FLOATS];
    const sti_data_norm norm = {.deviation = {1, 1, 1}};
    const int32_t samples[COUNT] = {0, 1, 2, 3, 4, 5};
    for (int i = 0; i < COUNT; i++)
        fixture_png_file(fixture_path("cuts/train/%c/%d.png", 'a' + i % 2, i), i, 40);
    stint_data_desc desc = {.path = fixture_path("cuts"), .size = SIZE, .cuts = true};
    stint_data *data = NULL;
    sti_data_decoders *decoders = NULL;
    assert_int_equal(stint_data_open(&desc, &data), STINT_OK);
    assert_int_equal(sti_data_decoders_create(data, 3, &decoders), STINT_OK);
    for (int k = 0; k < 4; k++) {
        const sti_team team = {k == 1 ? 3 : 1};
        const sti_data_augment augment = {.scale_crop = k == 3 ? 0 : 0.08,
                                          .epoch = k == 2 ? 2 : 1};
        assert_int_equal(sti_data_batch(data, &team, decoders, samples, COUNT, &augment,
                                        &norm, x[k], NULL),
                         STINT_OK);
    }
    assert_memory_equal(x[0], x[1], sizeof x[0]);
    assert_memory_not_equal(x[0], x[2], sizeof x[0]);
    assert_memory_not_equal(x[0], x[3], sizeof x[0]);
    sti_data_decoders_destroy(decoders);
    stint_data_close(data);
    /* Without room for it, it is a mistake of ours and said. */
    desc.cuts = false;
    assert_int_equal(stint_data_open(&desc, &data), STINT_OK);
    assert_int_equal(sti_data_decoders_create(data, 1, &decoders), STINT_OK);
    assert_int_equal(sti_data_batch(data, &(sti_team){1}, decoders, samples, COUNT,
                                    &(sti_data_augment){.scale_crop = 0.5}, &norm, x[0],
                                    NULL),
                     STINT_E_BUG);
    sti_data_decoders_destroy(decoders);
    stint_data_close(data);
}

static void mixed_sizes_get_the_line_to_add(void **state)
{
    (void)state;
    uint8_t pixels[64 * 64 * 3];
    fixture_png_file(fixture_path("mixed/train/a/0.png"), 0, 10);
    fixture_png_file(fixture_path("mixed/train/b/1.png"), 1, 12);
    stint_data_desc desc = {.path = fixture_path("mixed"), .usual_size = 224};
    stint_data *data = NULL;
    sti_data_decoders *decoders = NULL;
    assert_int_equal(stint_data_open(&desc, &data), STINT_OK);
    assert_int_equal(sti_data_decoders_create(data, 1, &decoders), STINT_OK);
    assert_int_equal(sti_data_decode(data, 1, decoders, 0, pixels), STINT_E_INPUT);
    assert_non_null(strstr(stint_last_error(), "add `size = 224` under [data]"));
    sti_data_decoders_destroy(decoders);
    stint_data_close(data);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(crop_is_the_mean_of_areas),
        cmocka_unit_test(pillow_agrees),
        cmocka_unit_test(pad_keeps_all_and_leaves_a_border),
        cmocka_unit_test(every_fit_copies_what_fits),
        cmocka_unit_test(flat_stays_flat),
        cmocka_unit_test(cuts_lie_inside_and_depend_on_sample_and_epoch),
        cmocka_unit_test(strips_give_their_middle),
        cmocka_unit_test(eight_orientations_are_one_tensor),
        cmocka_unit_test(batches_are_cut),
        cmocka_unit_test(mixed_sizes_get_the_line_to_add),
    };
    return cmocka_run_group_tests_name("data_fit", tests, fixture_begin, fixture_end);
}
