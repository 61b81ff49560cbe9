/* Image files: orientation, kinds, damage. */
#include "media/image_fixture.h"

#if STINT_HAVE_WEBP
#include <webp/encode.h>
#endif

#include "base/fail.h"
#include "base/memory.h"
#include "media/exif.h"
#include "media/image.h"

enum { H = 11, W = 17, PIXELS_MAX = H * W * 4 };

static uint8_t file[IMAGE_FILE_MAX];

/* Decoded and upright; fails the test where it cannot be. */
static sti_image_info decode(size_t n_bytes, int channels, uint8_t *out)
{
    sti_image_info info;
    sti_image_view view;
    sti_image_fault fault;
    sti_image_decoder *decoder;
    uint8_t *copy = malloc(n_bytes); /* exactly: sanitizers see a byte too many */
    memcpy(copy, file, n_bytes);
    assert_int_equal(sti_image_probe(copy, n_bytes, true, &info), 1);
    assert_false(info.later);
    uint8_t *buffer = malloc((size_t)(info.width * info.height * 4));
    assert_int_equal(sti_image_decoder_create(&decoder), STINT_OK);
    if (sti_image_decode(decoder, copy, n_bytes, &info, channels, buffer, &view,
                         &fault) != STINT_OK)
        fail_msg("%s", stint_last_error());
    assert_int_equal(view.height, info.height);
    assert_int_equal(view.width, info.width);
    sti_image_view_copy(&view, out);
    sti_image_decoder_destroy(decoder);
    free(buffer);
    free(copy);
    return info;
}

/* Expects a failure whose words have the piece. */
static void refused(size_t n_bytes, stint_status wanted, sti_image_fault why,
                    const char *piece)
{
    sti_image_info info;
    sti_image_view view;
    sti_image_fault fault;
    sti_image_decoder *decoder;
    static uint8_t buffer[1 << 16];
    assert_int_equal(sti_image_probe(file, n_bytes, true, &info), 1);
    assert_int_equal(sti_image_decoder_create(&decoder), STINT_OK);
    assert_int_equal(
        sti_image_decode(decoder, file, n_bytes, &info, 3, buffer, &view, &fault),
        wanted);
    assert_int_equal(fault, why);
    if (!strstr(stint_last_error(), piece))
        fail_msg("'%s' is not in: %s", piece, stint_last_error());
    sti_image_decoder_destroy(decoder);
}

static void png_in_eight_orientations_is_one_picture(void **state)
{
    (void)state;
    uint8_t upright[PIXELS_MAX], stored[PIXELS_MAX], seen[PIXELS_MAX], exif[64];
    for (int c = 1; c <= 3; c += 2)
        for (int o = 1; o <= 8; o++)
            for (int variant = 0; variant < 4; variant++) {
                int h, w;
                image_pixels(H, W, c, upright);
                image_store(H, W, c, o, upright, stored, &h, &w);
                size_t n =
                    image_exif(exif, variant & 1, variant == 2 ? 4 : 3, 1, (uint32_t)o);
                sti_image_info info = decode(
                    image_png(h, w, c, stored, exif, n, variant & 2, file), c, seen);
                assert_int_equal(info.orientation, o);
                assert_int_equal(info.height, H);
                assert_int_equal(info.width, W);
                assert_memory_equal(seen, upright, (size_t)(H * W * c));
            }
}

/* JPEG is not without loss: the upright picture is what the stored pixels decode to,
 * put upright by hand. */
static void jpeg_in_eight_orientations_is_turned(void **state)
{
    (void)state;
    uint8_t stored[PIXELS_MAX], plain[PIXELS_MAX], back[PIXELS_MAX], seen[PIXELS_MAX];
    uint8_t exif[64];
    image_pixels(H, W, 3, stored);
    decode(image_jpeg(H, W, 3, stored, NULL, 0, file), 3, plain);
    for (int o = 1; o <= 8; o++) {
        int h, w;
        size_t n = image_exif(exif, o & 1, 3, 1, (uint32_t)o);
        sti_image_info info =
            decode(image_jpeg(H, W, 3, stored, exif, n, file), 3, seen);
        assert_int_equal(info.height, o >= 5 ? W : H);
        image_store((int)info.height, (int)info.width, 3, o, seen, back, &h, &w);
        assert_int_equal(h, H);
        assert_memory_equal(back, plain, sizeof plain * 3 / 4);
    }
}

static void nonsense_orientations_are_passed_over(void **state)
{
    static const struct {
        int type, count;
        uint32_t value;
    } cases[] = {{3, 1, 0}, {3, 1, 9}, {3, 1, 65535},  {3, 2, 6},
                 {2, 1, 6}, {7, 4, 6}, {4, 1, 0x60000}};
    uint8_t pixels[PIXELS_MAX], seen[PIXELS_MAX], exif[64];
    (void)state;
    image_pixels(H, W, 3, pixels);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        size_t n = image_exif(exif, 1, cases[i].type, cases[i].count, cases[i].value);
        sti_image_info info =
            decode(image_png(H, W, 3, pixels, exif, n, 0, file), 3, seen);
        assert_true(info.bad_orientation);
        assert_int_equal(info.orientation, 1);
        assert_memory_equal(seen, pixels, H * W * 3);
    }
}

static void damaged_exif_is_no_orientation(void **state)
{
    (void)state;
    uint8_t exif[64];
    const size_t n = image_exif(exif, 0, 3, 1, 6);
    assert_int_equal(sti_exif_orientation(exif, n), 6);
    for (size_t cut = 0; cut < 10 + 2 * 12; cut++) {
        uint8_t *copy = malloc(cut ? cut : 1);
        memcpy(copy, exif, cut);
        assert_int_equal(sti_exif_orientation(copy, cut), 0);
        free(copy);
    }
    exif[4] = 0xff; /* a directory beyond the end */
    exif[7] = 0xff;
    assert_int_equal(sti_exif_orientation(exif, n), 0);
    memcpy(exif, "XX", 2);
    assert_int_equal(sti_exif_orientation(exif, n), 0);
}

/* The first bytes of a file are enough, except where a tag may follow. */
static void a_start_tells_the_size(void **state)
{
    (void)state;
    uint8_t pixels[PIXELS_MAX], exif[64];
    sti_image_info info;
    image_pixels(H, W, 3, pixels);
    size_t e = image_exif(exif, 0, 3, 1, 6);
    size_t n = image_png(H, W, 3, pixels, exif, e, 0, file);
    assert_int_equal(sti_image_probe(file, 100, false, &info), 1);
    assert_false(info.later);
    assert_int_equal(info.width, H);
    n = image_png(H, W, 3, pixels, exif, e, 1, file);
    assert_int_equal(sti_image_probe(file, 40, false, &info), 1);
    assert_true(info.later);
    assert_int_equal(sti_image_probe(file, n, true, &info), 1);
    assert_false(info.later);
    assert_int_equal(info.orientation, 6);
    for (size_t cut = 0; cut < 33; cut++)
        assert_int_equal(sti_image_probe(file, cut, false, &info), 0);
    assert_int_equal(
        sti_image_probe((const uint8_t *)"GIF89a..........", 16, true, &info), -1);
}

/* ---- BMP ---- */

typedef struct bmp_case {
    int bits, head, compression, top_down, colours;
} bmp_case;

static uint32_t bmp_pixel(const bmp_case *c, const uint8_t *rgb)
{
    if (c->bits == 16 && c->compression == 3)
        return (uint32_t)(rgb[0] >> 3) << 11 | (uint32_t)(rgb[1] >> 2) << 5 |
               rgb[2] >> 3;
    if (c->bits == 16)
        return (uint32_t)(rgb[0] >> 3) << 10 | (uint32_t)(rgb[1] >> 3) << 5 |
               rgb[2] >> 3;
    return (uint32_t)rgb[0] << 16 | (uint32_t)rgb[1] << 8 | rgb[2];
}

/* pixels [H, W, 3]; with a palette the index is the red value's top bits. */
static size_t write_bmp(const bmp_case *c, const uint8_t *pixels)
{
    const int entry = c->head == 12 ? 3 : 4;
    const size_t masks = c->compression == 3 && c->head == 40 ? 12 : 0;
    const size_t at = 14 + (size_t)c->head + masks + (size_t)(entry * c->colours);
    const size_t row = (size_t)(W * c->bits + 31) / 32 * 4;
    memset(file, 0, at + row * H);
    image_put(file, "BM", 2);
    image_put_number(file + 10, (uint32_t)at, 4, 0);
    image_put_number(file + 14, (uint32_t)c->head, 4, 0);
    if (c->head == 12) {
        image_put_number(file + 18, W, 2, 0);
        image_put_number(file + 20, H, 2, 0);
        image_put_number(file + 24, (uint32_t)c->bits, 2, 0);
    } else {
        image_put_number(file + 18, W, 4, 0);
        image_put_number(file + 22, (uint32_t)(c->top_down ? -H : H), 4, 0);
        image_put_number(file + 28, (uint32_t)c->bits, 2, 0);
        image_put_number(file + 30, (uint32_t)c->compression, 4, 0);
        image_put_number(file + 46, (uint32_t)c->colours, 4, 0);
    }
    if (c->compression == 3) {
        image_put_number(file + 54, 0xf800, 4, 0);
        image_put_number(file + 58, 0x07e0, 4, 0);
        image_put_number(file + 62, 0x001f, 4, 0);
    }
    for (int i = 0; i < c->colours; i++)
        for (int k = 0; k < 3; k++) /* blue, green, red: as the value, and half of it */
            file[14 + c->head + entry * i + k] =
                (uint8_t)(i * 255 / (c->colours - 1) /
                          (k == 0 && c->bits == 4 ? 2 : 1));
    for (int y = 0; y < H; y++)
        for (int x = 0; x < W; x++) {
            const uint8_t *rgb = pixels + (y * W + x) * 3;
            uint8_t *line = file + at + (size_t)(c->top_down ? y : H - 1 - y) * row;
            if (c->bits > 8)
                image_put_number(line + x * c->bits / 8, bmp_pixel(c, rgb), c->bits / 8,
                                 0);
            else
                line[x * c->bits / 8] |= (uint8_t)((rgb[0] >> (8 - c->bits))
                                                   << (8 - c->bits - x * c->bits % 8));
        }
    return at + row * H;
}

static int bmp_wanted(const bmp_case *c, const uint8_t *rgb, int k)
{
    if (c->bits >= 24)
        return rgb[k];
    if (c->bits == 16) {
        const int depth = c->compression == 3 && k == 1 ? 6 : 5, top = (1 << depth) - 1;
        return ((rgb[k] >> (8 - depth)) * 255 + top / 2) / top;
    }
    const int value = (rgb[0] >> (8 - c->bits)) * 255 / (c->colours - 1);
    return k == 2 && c->bits == 4 ? value / 2 : value;
}

static void bmp_of_every_depth(void **state)
{
    static const bmp_case cases[] = {
        {24, 40, 0, 0, 0}, {24, 12, 0, 0, 0},  {32, 40, 0, 1, 0},  {32, 124, 0, 0, 0},
        {16, 40, 0, 0, 0}, {16, 40, 3, 0, 0},  {8, 40, 0, 0, 256}, {4, 40, 0, 1, 16},
        {1, 40, 0, 0, 2},  {8, 12, 0, 0, 256},
    };
    uint8_t pixels[PIXELS_MAX], seen[PIXELS_MAX];
    (void)state;
    image_pixels(H, W, 3, pixels);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const bmp_case *c = &cases[i];
        sti_image_info info = decode(write_bmp(c, pixels), 3, seen);
        assert_int_equal(info.kind, STI_IMAGE_BMP);
        assert_int_equal(info.channels, c->bits == 8 || c->bits == 1 ? 1 : 3);
        for (int p = 0; p < H * W; p++)
            for (int k = 0; k < 3; k++)
                if (seen[3 * p + k] != bmp_wanted(c, pixels + 3 * p, k))
                    fail_msg("case %zu pixel %d channel %d: %d, wanted %d", i, p, k,
                             seen[3 * p + k], bmp_wanted(c, pixels + 3 * p, k));
    }
    size_t n = write_bmp(&cases[0], pixels);
    refused(n - 1, STINT_E_INPUT, STI_IMAGE_CUT_SHORT, "cut short");
    image_put_number(file + 30, 1, 4, 0);
    refused(n, STINT_E_INPUT, STI_IMAGE_UNSUPPORTED, "turn it into PNG");
}

/* ---- WebP ---- */

/* One pixel, made by cwebp -lossless: known for what it is in every build. */
static const uint8_t tiny_webp[] = {'R',  'I',  'F',  'F',  0x1a, 0,   0,    0,    'W',
                                    'E',  'B',  'P',  'V',  'P',  '8', 'L',  0x0d, 0,
                                    0,    0,    0x2f, 0,    0,    0,   0x10, 7,    0x10,
                                    0x11, 0x11, 0x88, 0x88, 0xfe, 7,   0};

static void webp_is_known_and_read_where_it_can_be(void **state)
{
    (void)state;
    sti_image_info info;
    image_put(file, tiny_webp, sizeof tiny_webp);
    assert_int_equal(sti_image_probe(file, sizeof tiny_webp, true, &info), 1);
    assert_int_equal(info.kind, STI_IMAGE_WEBP);
    assert_int_equal(info.width, 1);
    assert_int_equal(info.height, 1);
#if STINT_HAVE_WEBP
    uint8_t upright[PIXELS_MAX], stored[PIXELS_MAX], seen[PIXELS_MAX], exif[64];
    image_pixels(H, W, 3, upright);
    for (int o = 1; o <= 8; o++) {
        uint8_t *webp = NULL;
        int h, w;
        image_store(H, W, 3, o, upright, stored, &h, &w);
        size_t m = WebPEncodeLosslessRGB(stored, w, h, 3 * w, &webp);
        assert_true(m > 12);
        size_t n = image_put(file, "RIFF\0\0\0\0WEBPVP8X\x0a\0\0\0\x08\0\0\0", 24);
        n += image_put_number(file + n, (uint32_t)(w - 1), 3, 0);
        n += image_put_number(file + n, (uint32_t)(h - 1), 3, 0);
        n += image_put(file + n, webp + 12, m - 12);
        size_t e = image_exif(exif, 0, 3, 1, (uint32_t)o);
        n += image_put(file + n, "EXIF", 4);
        n += image_put_number(file + n, (uint32_t)e, 4, 0);
        n += image_put(file + n, exif, e);
        image_put_number(file + 4, (uint32_t)(n - 8), 4, 0);
        WebPFree(webp);
        assert_int_equal(sti_image_probe(file, 40, false, &info), 1);
        assert_true(info.later);
        info = decode(n, 3, seen);
        assert_int_equal(info.orientation, o);
        assert_memory_equal(seen, upright, H * W * 3);
        refused(n / 2, STINT_E_INPUT, STI_IMAGE_CUT_SHORT, "cut short");
    }
#else
    refused(sizeof tiny_webp, STINT_E_UNSUPPORTED, STI_IMAGE_UNSUPPORTED,
            "libwebp-dev");
#endif
}

/* ---- encoding, names, memory ---- */

static void encoded_pictures_are_read_back(void **state)
{
    (void)state;
    uint8_t pixels[PIXELS_MAX], seen[PIXELS_MAX];
    for (int c = 1; c <= 3; c += 2) {
        for (int i = 0; i < H * W * c; i++) /* smooth, so that JPEG stays near */
            pixels[i] = (uint8_t)(40 * (i % c) + 3 * (i / c % W) + 2 * (i / c / W));
        sti_image_info info =
            decode(image_jpeg(H, W, c, pixels, NULL, 0, file), c, seen);
        assert_int_equal(info.channels, c);
        for (int i = 0; i < H * W * c; i++)
            assert_in_range(seen[i] + 3 - pixels[i], 0, 6);
        info = decode(image_png(H, W, c, pixels, NULL, 0, 0, file), c, seen);
        assert_int_equal(info.channels, c);
        assert_memory_equal(seen, pixels, (size_t)(H * W * c));
    }
}

static void names_promise_kinds(void **state)
{
    (void)state;
    assert_int_equal(sti_image_kind_of_name("a/b.JPEG"), STI_IMAGE_JPEG);
    assert_int_equal(sti_image_kind_of_name("b.webp"), STI_IMAGE_WEBP);
    assert_int_equal(sti_image_kind_of_name("b.Bmp"), STI_IMAGE_BMP);
    assert_int_equal(sti_image_kind_of_name("b.gif"), -1);
    assert_int_equal(sti_image_kind_of_name("png"), -1);
    assert_string_equal(sti_image_kind_name(STI_IMAGE_WEBP), "WebP");
}

static void allocation_failures_are_clean(void **state)
{
    (void)state;
    uint8_t pixels[PIXELS_MAX];
    image_pixels(H, W, 3, pixels);
    for (int64_t n = 1; n <= 3; n++) {
        sti_image_decoder *decoder = NULL;
        sti_text text = {0};
        sti_alloc_fail_nth(n);
        stint_status st = sti_png_encode(pixels, H, W, 3, &text);
        sti_alloc_fail_nth(0);
        assert_int_equal(st, STINT_E_MEMORY);
        sti_text_fini(&text);
        sti_alloc_fail_nth(n);
        st = sti_image_decoder_create(&decoder);
        sti_alloc_fail_nth(0);
        assert_int_equal(st, n == 1 ? STINT_E_MEMORY : STINT_OK);
        sti_image_decoder_destroy(decoder);
    }
}

/* A JPEG header of 50 x 35 and three components, the first sampled hv, in one frame of
 * this kind, and the start of a scan of so many of them. Its length. */
static size_t jpeg_head(uint8_t frame, uint8_t hv, uint8_t scanned, uint8_t *out)
{
    const uint8_t head[] = {0xff, 0xd8, 0xff, frame, 0,    17, 8,  0,       35,
                            0,    50,   3,    1,     hv,   0,  2,  0x11,    1,
                            3,    0x11, 1,    0xff,  0xda, 0,  12, scanned, 1,
                            0,    2,    0x11, 3,     0x11, 0,  63, 0};
    memcpy(out, head, sizeof head);
    return sizeof head;
}

/* What decoding is said to take: coefficients of several scans by hand. */
static void headers_tell_what_decoding_takes(void **state)
{
    (void)state;
    static const struct {
        uint8_t frame, hv, scanned;
        size_t coefficients;
    } cases[] = {
        {0xc0, 0x22, 3, 0},
        {0xc0, 0x11, 3, 0},
        {0xc2, 0x11, 3, (size_t)3 * 7 * 5 * 128}, /* 8 x 8: 7 across, 5 down */
        {0xc2, 0x22, 3, (size_t)(8 * 6 + 2 * 4 * 3) * 128}, /* 16 x 16: 4 across, 3 */
        {0xc2, 0x21, 1, (size_t)(8 * 5 + 2 * 4 * 5) * 128},
        {0xc0, 0x22, 1, (size_t)(8 * 6 + 2 * 4 * 3) * 128}, /* one component a scan */
    };
    uint8_t bytes[64];
    sti_image_info info, one;
    assert_int_equal(
        sti_image_probe(bytes, jpeg_head(0xc0, 0x11, 3, bytes), true, &one), 1);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const size_t n =
            jpeg_head(cases[i].frame, cases[i].hv, cases[i].scanned, bytes);
        assert_int_equal(sti_image_probe(bytes, n, true, &info), 1);
        assert_int_equal(info.buffer_bytes[0], 50 * 35);
        assert_int_equal(info.buffer_bytes[1], 3 * 50 * 35);
        assert_int_equal(info.library_bytes - one.library_bytes, cases[i].coefficients);
        assert_false(info.scans_later);
        /* Before the scan is in sight several are planned for, and that is said. */
        assert_int_equal(sti_image_probe(bytes, 23, false, &info), 1);
        assert_true(info.library_bytes > one.library_bytes);
        assert_int_equal(info.scans_later, cases[i].frame == 0xc0);
        assert_int_equal(sti_image_probe(bytes, 14, false, &info), 1);
        assert_true(info.scans_later);
        assert_true(info.library_bytes >= one.library_bytes + 6 * 50 * 35);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(png_in_eight_orientations_is_one_picture),
        cmocka_unit_test(jpeg_in_eight_orientations_is_turned),
        cmocka_unit_test(nonsense_orientations_are_passed_over),
        cmocka_unit_test(damaged_exif_is_no_orientation),
        cmocka_unit_test(a_start_tells_the_size),
        cmocka_unit_test(headers_tell_what_decoding_takes),
        cmocka_unit_test(bmp_of_every_depth),
        cmocka_unit_test(webp_is_known_and_read_where_it_can_be),
        cmocka_unit_test(encoded_pictures_are_read_back),
        cmocka_unit_test(names_promise_kinds),
        cmocka_unit_test(allocation_failures_are_clean),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
