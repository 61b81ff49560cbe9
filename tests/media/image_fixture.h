/* Image files made by hand for tests: with EXIF data, and of kinds that no library here
 * writes. */
#ifndef STI_TESTS_IMAGE_FIXTURE_H
#define STI_TESTS_IMAGE_FIXTURE_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#include "base/text.h"
#include "media/image_encode.h"

enum { IMAGE_FILE_MAX = 1 << 16 };

/* Pixels [h, w, c] where no two rows, columns or corners are alike. */
static inline void image_pixels(int h, int w, int c, uint8_t *out)
{
    for (int y = 0; y < h; y++)
        for (int x = 0; x < w; x++)
            for (int k = 0; k < c; k++)
                *out++ = (uint8_t)(20 + 7 * x + 13 * y + 40 * k + (x * y) % 5);
}

/* [h, w, c] with rows and columns changed. */
static inline void image_transpose(int h, int w, int c, const uint8_t *in, uint8_t *out)
{
    for (int y = 0; y < h; y++)
        for (int x = 0; x < w; x++)
            memcpy(out + (x * h + y) * c, in + (y * w + x) * c, (size_t)c);
}

/* [h, w, c] mirrored left to right, top to bottom, or both. */
static inline void image_mirror(int h, int w, int c, int sideways, int upside,
                                const uint8_t *in, uint8_t *out)
{
    for (int y = 0; y < h; y++)
        for (int x = 0; x < w; x++)
            memcpy(out + (y * w + x) * c,
                   in + ((upside ? h - 1 - y : y) * w + (sideways ? w - 1 - x : x)) * c,
                   (size_t)c);
}

/* An upright picture as a camera that writes `orientation` would have stored it. EXIF
 * names the side of the picture where the stored first row and column are: 1 top left,
 * 2 top right, 3 bottom right, 4 bottom left, 5 left top, 6 right top, 7 right bottom,
 * 8 left bottom. h, w: upright; *h_out, *w_out: stored. */
static inline void image_store(int h, int w, int c, int orientation, const uint8_t *in,
                               uint8_t *out, int *h_out, int *w_out)
{
    static const int right[] = {0, 0, 1, 1, 0, 0, 1, 1, 0};
    static const int bottom[] = {0, 0, 0, 1, 1, 0, 0, 1, 1};
    uint8_t *turned = malloc((size_t)(h * w * c));
    assert_non_null(turned);
    image_mirror(h, w, c, right[orientation], bottom[orientation], in, turned);
    *h_out = orientation >= 5 ? w : h;
    *w_out = orientation >= 5 ? h : w;
    if (orientation >= 5)
        image_transpose(h, w, c, turned, out);
    else
        memcpy(out, turned, (size_t)(h * w * c));
    free(turned);
}

static inline size_t image_put(uint8_t *out, const void *bytes, size_t n)
{
    memcpy(out, bytes, n);
    return n;
}

static inline size_t image_put_number(uint8_t *out, uint32_t value, int bytes, int big)
{
    for (int i = 0; i < bytes; i++)
        out[i] = (uint8_t)(value >> 8 * (big ? bytes - 1 - i : i));
    return (size_t)bytes;
}

/* A TIFF header with two tags, of which the second is the orientation. */
static inline size_t image_exif(uint8_t *out, int big, int type, int count,
                                uint32_t value)
{
    size_t n = image_put(out, big ? "MM" : "II", 2);
    n += image_put_number(out + n, 42, 2, big);
    n += image_put_number(out + n, 8, 4, big);
    n += image_put_number(out + n, 2, 2, big);
    n += image_put_number(out + n, 0x0100, 2, big); /* width: to be passed over */
    n += image_put_number(out + n, 3, 2, big);
    n += image_put_number(out + n, 1, 4, big);
    n += image_put_number(out + n, 9, 2, big);
    n += image_put_number(out + n, 0, 2, big);
    n += image_put_number(out + n, 0x0112, 2, big);
    n += image_put_number(out + n, (uint32_t)type, 2, big);
    n += image_put_number(out + n, (uint32_t)count, 4, big);
    n += image_put_number(out + n, value, type == 4 ? 4 : 2, big);
    if (type != 4)
        n += image_put_number(out + n, 0, 2, big);
    return n + image_put_number(out + n, 0, 4, big);
}

/* A PNG file with the block as its chunk eXIf, after the pixels if late. */
static inline size_t image_png(int h, int w, int c, const uint8_t *pixels,
                               const uint8_t *exif, size_t exif_bytes, int late,
                               uint8_t *out)
{
    sti_text png = {0};
    uint8_t chunk[256];
    assert_int_equal(sti_png_encode(pixels, h, w, c, &png), STINT_OK);
    size_t at = late ? png.length - 12 : 33, n = image_put(out, png.data, at);
    if (exif_bytes) {
        size_t m = image_put(chunk, "eXIf", 4);
        m += image_put(chunk + m, exif, exif_bytes);
        n += image_put_number(out + n, (uint32_t)exif_bytes, 4, 1);
        n += image_put(out + n, chunk, m);
        n += image_put_number(out + n, (uint32_t)crc32(0, chunk, (uInt)m), 4, 1);
    }
    n += image_put(out + n, png.data + at, png.length - at);
    sti_text_fini(&png);
    return n;
}

/* A JPEG file with the block as its APP1 segment. */
static inline size_t image_jpeg(int h, int w, int c, const uint8_t *pixels,
                                const uint8_t *exif, size_t exif_bytes, uint8_t *out)
{
    sti_text jpeg = {0};
    assert_int_equal(sti_jpeg_encode(pixels, h, w, c, 95, &jpeg), STINT_OK);
    size_t n = image_put(out, jpeg.data, 2);
    if (exif_bytes) {
        n += image_put(out + n, "\xff\xe1", 2);
        n += image_put_number(out + n, (uint32_t)exif_bytes + 8, 2, 1);
        n += image_put(out + n, "Exif\0\0", 6);
        n += image_put(out + n, exif, exif_bytes);
    }
    n += image_put(out + n, jpeg.data + 2, jpeg.length - 2);
    sti_text_fini(&jpeg);
    return n;
}

#endif
